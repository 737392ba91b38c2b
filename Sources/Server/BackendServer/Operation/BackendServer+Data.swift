import Glibc
import PalbeBackendCore

/// What is done with the data of a server, whether it runs or not.
extension BackendServer {
  static let controlName = "control"

  /// Makes a copy of a data folder: by the server that uses it, or here when none does.
  package static func backUp(_ path: String, to target: String) throws {
    let folder: DataFolder
    do throws(DataFolder.Failure) { folder = try DataFolder(path) } catch {
      guard let answer = ControlSocket.ask("backup " + absolute(target), at: path + "/" + controlName) else {
        throw error
      }
      guard answer == "ok" else { throw Failure(description: answer) }
      return
    }
    try folder.takeLogs()
    let names = ["messages.sqlite", "accounts.sqlite"].filter { access(folder.path($0), F_OK) == 0 }
    try DataBackup(of: folder.root, to: target).run(
      names.map { DataBackup.file($0, in: folder.root) })
    withExtendedLifetime(folder) {}
  }

  /// Looks at a folder that no server uses.
  /// - Parameter hasAccounts: false when somebody else knows the sessions.
  package static func check(
    _ path: String, repairs: Bool, hasAccounts: Bool = true
  ) throws -> [DataCheck.Finding] {
    let folder = try DataFolder(path)
    defer { withExtendedLifetime(folder) {} }
    let lost = folder.lostLogs
    // What is lost stays noted, for who starts a server with it.
    if lost.isEmpty { try folder.takeLogs() }
    var findings = lost.map { DataCheck.Finding(lostLog: $0) }
    var check = DataCheck(folder.root, repairs: repairs, hasAccounts: hasAccounts)
    findings += check.run()
    return findings
  }

  /// The running server's own backup.
  static func backUp(
    _ root: String, to target: String, loop: BackendLoop, blobs: BlobStore,
    others: [DataBackup.Source]
  ) -> String {
    blobs.holdDeletions()
    defer { blobs.releaseDeletions() }
    do {
      let messages = DataBackup.Source(name: "messages.sqlite") { path in
        let outcome = Awaited<StoreFault?>()
        loop.copy(to: path) { outcome.set($0) }
        if let fault = outcome.wait() { throw Failure(description: "cannot copy messages.sqlite: \(fault)") }
      }
      try DataBackup(of: root, to: target).run([messages] + others)
      return "ok"
    } catch { return "\(error)" }
  }

  private static func absolute(_ path: String) -> String {
    guard path.first != "/", let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return String(cString: folder) + "/" + path
  }
}
