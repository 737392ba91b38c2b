import Foundation
import Glibc
import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeServerClient
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import PalbeWebTokens
import Synchronization
import Testing

@testable import PalbeBackendServer

/// An identity provider with keys that change.
private final class Provider: Sendable {
  let keys = Mutex<[Key]>([])
  let issuer = "https://id.example"

  final class Key: Sendable {
    let id: String
    let key: Curve25519.Signing.PrivateKey
    init(_ id: String, seed: UInt64) {
      var random = RandomSource(seed: seed)
      self.id = id
      key = Curve25519.Signing.PrivateKey(using: &random)
    }
  }

  init() { rotate(to: "one", seed: 1) }

  func rotate(to id: String, seed: UInt64) { keys.withLock { $0 = [Key(id, seed: seed)] } }

  var keySet: [UInt8] {
    KeySet(keys.withLock { $0 }.map { VerificationKey(id: $0.id, material: .ed25519($0.key.publicKey)) }).json
  }

  func token(_ subject: String, _ change: (inout TokenClaims) -> Void = { _ in }) throws -> String {
    var claims = TokenClaims()
    let now = Int64(Date().timeIntervalSince1970)
    (claims.issuer, claims.subject, claims.audience) = (issuer, subject, ["palbe"])
    (claims.issuedAt, claims.expiry) = (now, now + 600)
    change(&claims)
    let key = keys.withLock { $0[0] }
    return try SignedToken.text(.edDSA, keyID: key.id, claims: claims.json) { span throws(CryptoError) in
      try key.key.signature(for: span)
    }
  }

  func settings(_ source: KeySource, interval: TimeDelta = .zero) throws -> AccountSettings {
    var settings = AccountDesk.cheap
    let provider = try #require(IdentityProvider(issuer: issuer, audiences: ["palbe"]))
    settings.providers = [ProviderSettings(provider: provider, keys: source)]
    settings.keyFetchInterval = interval
    return settings
  }
}

/// Publishes a key set, and counts who asks.
private struct Publisher: WebServerHandler {
  let provider: Provider
  let count = Shared()
  final class Shared: Sendable {
    let value = Mutex(0)
    let status = Mutex(200)
  }

  func respond(to request: HTTPRequest) -> HTTPResponse {
    count.value.withLock { $0 += 1 }
    let status = count.status.withLock { $0 }
    if request.path == "/long" {
      return HTTPResponse(status: 200, body: .init(repeating: 0x20, count: 300_000))
    }
    return HTTPResponse(
      status: status, headers: status == 302 ? [.init("location", "/")] : [], body: provider.keySet)
  }

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    .reject(HTTPResponse(status: 404))
  }
}

@Suite("Accounts: identity providers")
struct IdentityServiceTests {
  private let provider = Provider()
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("Issue 5, 2: a key set in a file; a token that names another key has it read again")
  func file() throws {
    let path = folder.path("keys.json")
    try Data(provider.keySet).write(to: URL(fileURLWithPath: path))
    let desk = try AccountDesk(folder.url.path, provider.settings(.file(path)))
    let first = try desk.post("token", ["id_token": provider.token("anna")])
    #expect(first.status == 200 && first.isTrue("is_new_user"))
    let again = try desk.post("token", ["id_token": provider.token("anna")])
    #expect(again.text("user_id") == first.text("user_id") && !again.isTrue("is_new_user"))

    provider.rotate(to: "two", seed: 2)
    #expect(try desk.post("token", ["id_token": provider.token("ben")]).code == "invalid_credentials")
    try Data(provider.keySet).write(to: URL(fileURLWithPath: path))
    #expect(try desk.post("token", ["id_token": provider.token("ben")]).status == 200)
    // The file is gone: what is known stays.
    try FileManager.default.removeItem(atPath: path)
    #expect(try desk.post("token", ["id_token": provider.token("carl")]).status == 200)

    for change: (inout TokenClaims) -> Void in [
      { $0.issuer = "https://other.example" }, { $0.audience = ["other"] }, { $0.expiry = 1 },
      { $0.subject = nil },
      { $0.notBefore = .init(Date().timeIntervalSince1970) + 1_000 },
    ] {
      let answer = try desk.post("token", ["id_token": provider.token("anna", change)])
      #expect(answer.status == 401 && answer.code == "invalid_credentials")
    }
    for text in ["", "a.b.c", String(repeating: "A", count: 10_000)] {
      #expect(try desk.post("token", ["id_token": text]).code == "invalid_credentials")
    }
  }

  @Test("Issue 5, 2: a key set at an address, fetched once and not again for every unknown key")
  func url() throws {
    let publisher = Publisher(provider: provider)
    let server = try WebServer(host: "127.0.0.1", port: 0, handler: publisher)
    defer { server.stop() }
    let source = try #require(KeySource("http://127.0.0.1:\(server.port)/keys"))
    let desk = try AccountDesk(folder.url.path, provider.settings(source, interval: .seconds(3_600)))
    for name in ["anna", "ben", "carl"] {
      #expect(try desk.post("token", ["id_token": provider.token(name)]).status == 200)
    }
    provider.rotate(to: "two", seed: 2)
    for _ in 0..<5 {
      #expect(
        try desk.post("token", ["id_token": provider.token("anna")]).code == "invalid_credentials")
    }
    #expect(publisher.count.value.withLock { $0 } == 1)
  }

  @Test("A provider that cannot be reached, redirects or answers nonsense: 503, and it works when it is back")
  func unavailable() throws {
    let publisher = Publisher(provider: provider)
    let server = try WebServer(host: "127.0.0.1", port: 0, handler: publisher)
    defer { server.stop() }
    let source = try #require(KeySource("http://127.0.0.1:\(server.port)/keys"))
    publisher.count.status.withLock { $0 = 500 }
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let log = ServerLog(level: .warning, descriptor: ends[1])
    let desk = try AccountDesk(folder.url.path, provider.settings(source), log: log)
    defer { for end in ends { close(end) } }
    // It is asked at the start, and that it is down is told then.
    var bytes = [UInt8](repeating: 0, count: 4_096)
    let text = String(decoding: bytes[..<max(0, read(ends[0], &bytes, bytes.count))], as: UTF8.self)
    #expect(text.contains("warning identity provider's keys not had") && text.contains("status 500"))
    for status in [500, 302, 404] {
      publisher.count.status.withLock { $0 = status }
      let answer = try desk.post("token", ["id_token": provider.token("anna")])
      #expect(answer.status == 503 && answer.code == "unavailable", "\(status)")
    }
    publisher.count.status.withLock { $0 = 200 }
    #expect(try desk.post("token", ["id_token": provider.token("anna")]).status == 200)
    for text in ["http://127.0.0.1:\(server.port)/long", "http://127.0.0.1:1/"] {
      let source = try #require(KeySource(text))
      #expect(throws: KeySource.Failure.self) { try source.load { false } }
    }
    #expect(throws: KeySource.Failure.self) { try source.load { true } }
    #expect(throws: KeySource.Failure.self) { try KeySource.file(folder.path("none")).load { false } }
  }

  @Test(
    "Why a token is refused is in the log with the request's id, and never the token; a set without usable keys is told"
  )
  func reasons() throws {
    let path = folder.path("keys.json")
    try Data(provider.keySet).write(to: URL(fileURLWithPath: path))
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    defer { for end in ends { close(end) } }
    let log = ServerLog(level: .info, descriptor: ends[1])
    /// All that comes until these words do.
    func told(_ words: String) -> String {
      var text = ""
      var bytes = [UInt8](repeating: 0, count: 16_384)
      while !text.contains(words) {
        let count = read(ends[0], &bytes, bytes.count)
        guard count > 0 else { break }
        text += String(decoding: bytes[..<count], as: UTF8.self)
      }
      return text
    }
    do {
      let desk = try AccountDesk(folder.url.path, provider.settings(.file(path)), log: log)
      let cases: [(String, (inout TokenClaims) -> Void)] = [
        ("iss is not identity.issuer", { $0.issuer = "https://other.example" }),
        ("is none of identity.audiences", { $0.audience = ["other"] }), ("exp is over", { $0.expiry = 1 }),
      ]
      for (words, change) in cases {
        let token = try provider.token("anna", change)
        let answer = try desk.post("token", ["id_token": token])
        #expect(answer.code == "invalid_credentials")
        let line = told(words)
        #expect(line.contains(words) && line.contains("request=r1"), "\(line)")
        #expect(!line.contains(token) && !line.contains(token.split(separator: ".")[1]), "\(line)")
      }
      provider.rotate(to: "two", seed: 2)
      #expect(try desk.post("token", ["id_token": provider.token("anna")]).code == "invalid_credentials")
      #expect(told("no key of the provider's key set").contains("request=r1"))
    }
    try Data(#"{"keys":[]}"#.utf8).write(to: URL(fileURLWithPath: path))
    let desk = try AccountDesk(folder.url.path, provider.settings(.file(path)), log: log)
    #expect(told("has no usable key").contains("issuer="))
    withExtendedLifetime(desk) {}
  }

  @Test("A key set over TLS: only from who has a certificate that is trusted")
  func trust() throws {
    let (certificate, key) = (folder.path("cert.pem"), folder.path("key.pem"))
    try Data(TestCertificates.first.utf8).write(to: URL(fileURLWithPath: certificate))
    try Data(TestCertificates.firstKey.utf8).write(to: URL(fileURLWithPath: key))
    let server = try WebServer(
      host: "127.0.0.1", port: 0, certificate: CertificateFiles(certificate: certificate, key: key),
      handler: Publisher(provider: provider))
    defer { server.stop() }
    let url = "https://localhost:\(server.port)/keys"
    let trusted = try #require(KeySource(url, authorities: certificate))
    #expect(try trusted.load { false }.json == provider.keySet)
    #expect(throws: KeySource.Failure.self) { try KeySource.url(url).load { false } }
    let other = folder.path("other.pem")
    try Data(TestCertificates.second.utf8).write(to: URL(fileURLWithPath: other))
    #expect(throws: KeySource.Failure.self) { try KeySource.url(url, authorities: other).load { false } }
  }

  @Test("Addresses of key sets: https, or http on this machine")
  func addresses() {
    for text in ["https://id.example/keys", "http://127.0.0.1:80/", "http://localhost/x", "http://[::1]:9/"] {
      #expect(KeySource(text) == .url(text))
    }
    #expect(KeySource("/etc/keys.json") == .file("/etc/keys.json"))
    for text in [
      "", "http://id.example/keys", "http://127.0.0.1.example/", "http://localhost.example/", "ftp://a/",
      "https://",
      "https://a b/", "file:///etc/passwd", "http://localhost",
    ] {
      #expect(KeySource(text) == nil, "\(text)")
    }
  }
}
