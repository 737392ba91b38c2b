import PalbeWebServer

extension BackendServer.Configuration {
  /// Refuses what a start would be refused for, without touching the data: places that cannot be listened on, a certificate, keys of
  /// identity providers.
  func checkOutside(withAccounts: Bool) throws {
    if withAccounts { try accounts.checkKeyFiles() }
    try checkFiles()
    try checkPlace(port, "'bind_address' (--host) and 'port' (--port)")
    if let metrics { try checkPlace(metrics.port, "'bind_address' (--host) and 'prometheus.port'") }
  }

  /// What `serve` needs besides the folder and its ports, as far as it can be looked at without making anything.
  package func check() throws {
    try accounts.checkKeyFiles()
    try checkFiles()
    switch pushes {
    case .command, .socket: try pushes?.check()
    // A look would make it.
    case .file, nil: break
    }
  }

  private func checkFiles() throws {
    do throws(CertificateError) { try certificate?.check() } catch {
      throw BackendServer.Failure(description: "the certificate cannot be used: \(error.description)")
    }
  }

  private func checkPlace(_ port: UInt16, _ keys: String) throws {
    guard port != 0 else { return }
    do throws(WebServerError) { try WebServer.check(host: host, port: port) } catch {
      throw BackendServer.Failure(
        description: "cannot listen on \(host), port \(port): \(error); see \(keys)")
    }
  }
}
