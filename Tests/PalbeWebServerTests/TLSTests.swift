import Foundation
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@Suite("Web server: TLS (issue 4, Networks)")
struct TLSTests {
  private let folder: TemporaryFolder
  private let files: CertificateFiles

  init() throws {
    folder = try TemporaryFolder()
    files = CertificateFiles(certificate: folder.path("cert.pem"), key: folder.path("key.pem"))
    try write(TestCertificates.first, TestCertificates.firstKey)
    try TestCertificates.first.write(toFile: folder.path("first.pem"), atomically: true, encoding: .utf8)
    try TestCertificates.second.write(toFile: folder.path("second.pem"), atomically: true, encoding: .utf8)
  }

  private func write(_ certificate: String, _ key: String) throws {
    try certificate.write(toFile: files.certificate, atomically: true, encoding: .utf8)
    try key.write(toFile: files.key, atomically: true, encoding: .utf8)
  }

  private func connect(_ server: TestServer, trusting name: String) async throws -> WebSocketClient {
    var options = WebSocketClient.Options()
    options.trustedCertificateFile = folder.path(name)
    return try await WebSocketClient.connect(to: "wss://localhost:\(server.port)/ws", options: options)
  }

  private func expectEcho(_ client: WebSocketClient, _ byte: UInt8) async {
    client.send(binary: [byte])
    for await message in client.messages {
      #expect(message == .binary([byte]))
      return
    }
    Issue.record("the connection ended")
  }

  @Test("WebSockets over TLS; a new certificate counts for new connections, open ones stay")
  func reload() async throws {
    let server = try TestServer(certificate: files)
    let first = try await connect(server, trusting: "first.pem")
    await expectEcho(first, 1)
    #expect(try server.server.reloadCertificate() == TestCertificates.firstExpiry)
    try write(TestCertificates.second, TestCertificates.secondKey)
    try server.server.reloadCertificate()
    // The service thread takes it before the next connection; both wake it in this order.
    let second = try await connect(server, trusting: "second.pem")
    await expectEcho(second, 2)
    await expectEcho(first, 3)
    await #expect(throws: WebSocketClientError.self) { try await connect(server, trusting: "first.pem") }
    await #expect(throws: WebSocketClientError.self) {
      try await WebSocketClient.connect(to: "wss://localhost:\(server.port)/ws")
    }
  }

  @Test(
    "Files that cannot be used are typed errors, at the start and at a reload, which changes nothing then")
  func errors() async throws {
    let server = try TestServer(certificate: files)
    let port = server.port
    let (certificate, key) = (files.certificate, files.key)
    let cases: [(String?, String?, CertificateError)] = [
      (
        TestCertificates.first, TestCertificates.secondKey,
        .keyDoesNotMatch(certificate: certificate, key: key)
      ),
      (TestCertificates.first, TestCertificates.encryptedKey, .notAKey(path: key)),
      (TestCertificates.first, "", .notAKey(path: key)),
      (TestCertificates.firstKey, TestCertificates.firstKey, .notACertificate(path: certificate)),
      (
        TestCertificates.first + "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n",
        TestCertificates.firstKey, .notACertificate(path: certificate)
      ),
      (nil, TestCertificates.firstKey, .unreadable(path: certificate, reason: "No such file or directory")),
      (TestCertificates.first, nil, .unreadable(path: key, reason: "No such file or directory")),
    ]
    for (certificate, key, error) in cases {
      try write(certificate ?? "", key ?? "")
      if certificate == nil { try FileManager.default.removeItem(atPath: files.certificate) }
      if key == nil { try FileManager.default.removeItem(atPath: files.key) }
      #expect(throws: error) { try server.server.reloadCertificate() }
      #expect(throws: WebServerError.certificate(error)) {
        try WebServer(host: "127.0.0.1", port: port, certificate: files, handler: TestHandler())
      }
    }
    await expectEcho(try await connect(server, trusting: "first.pem"), 4)
  }

  @Test("Without TLS there is nothing to reload")
  func plain() throws {
    #expect(try TestServer().server.reloadCertificate() == nil)
  }

  @Test("What is no TLS is closed, and only that")
  func garbage() async throws {
    let server = try TestServer(certificate: files)
    for bytes in [
      Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8), [0x16, 3, 1, 0xff, 0xff],
      [UInt8](repeating: 0, count: 9_000),
      [],
    ] {
      let client = try RawClient(port: server.port)
      client.send(bytes)
      client.shutdownSending()
      let answer = client.readToEnd()
      #expect(!answer.starts(with: Array("HTTP".utf8)))
    }
    await expectEcho(try await connect(server, trusting: "first.pem"), 5)
  }
}
