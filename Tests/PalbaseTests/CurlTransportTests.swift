import Foundation
import PalbeSDKKit
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@testable import Palbase

/// Serves one body with ranges, and says what it got.
private final class FileHandler: WebServerHandler {
  let content: [UInt8]
  let requests = Mutex<[HTTPRequest]>([])
  init(_ content: [UInt8]) { self.content = content }

  func respond(to request: HTTPRequest, with responder: HTTPResponder) {
    requests.withLock { $0.append(request) }
    guard request.path != "/silent" else {
      silent.withLock { $0.append(responder) }
      return
    }
    responder.send(respond(to: request))
  }
  private let silent = Mutex<[HTTPResponder]>([])

  func respond(to request: HTTPRequest) -> HTTPResponse {
    switch request.path {
    case "/echo":
      return HTTPResponse(
        status: 200, headers: [.init("x-method", request.method), .init("x-two", "a"), .init("x-two", "b")],
        body: request.body)
    case "/missing": return .text("nothing here", status: 404)
    case "/file":
      guard let range = request.header("range"), let start = Int(range.dropFirst(6).dropLast()) else {
        return HTTPResponse(status: 200, body: content)
      }
      guard start < content.count else { return .text("", status: 416) }
      return HTTPResponse(
        status: 206,
        headers: [.init("content-range", "bytes \(start)-\(content.count - 1)/\(content.count)")],
        body: Array(content[start...]))
    case "/wrong-part":
      return HTTPResponse(status: 206, headers: [.init("content-range", "bytes 0-1/9")], body: [0, 1])
    default: return HTTPResponse(status: 204)
    }
  }

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    .reject(.text("no", status: 404))
  }
}

@Suite("HTTP: the transport over libcurl, against a real server", .timeLimit(.minutes(2)))
struct CurlTransportTests {
  private let folder: TemporaryFolder
  private let handler = FileHandler((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
  private let server: WebServer
  private let transport = CurlTransport()

  init() throws {
    folder = try TemporaryFolder()
    var limits = WebServerLimits()
    limits.additionalHeaderNames = ["range", "x-sent"]
    limits.requestTimeout = .seconds(600)
    server = try WebServer(host: "127.0.0.1", port: 0, limits: limits, handler: handler)
  }

  private func request(_ method: String, _ path: String) -> TransportRequest {
    TransportRequest(method: method, url: "http://127.0.0.1:\(server.port)\(path)")
  }

  private func get(_ path: String, to file: String, limit: Int64 = 1 << 30, resumes: Bool = false)
    -> TransportRequest
  {
    var request = request("GET", path)
    request.sink = .file(path: folder.path(file), limit: limit, resumes: resumes)
    return request
  }

  private func contents(_ file: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.path(file))))
  }

  @Test("Methods, headers and bodies go over and come back", arguments: ["GET", "POST", "PUT", "DELETE"])
  func methods(method: String) async throws {
    var request = request(method, "/echo")
    request.headers = [.init("X-Sent", "yes"), .init("X-Broken", "a\r\nX-Evil: b")]
    if method != "GET" { request.body = .bytes(Array("body".utf8)) }
    let answer = try await transport.send(request)
    #expect(answer.status == 200 && answer.headers["x-method"] == method)
    #expect(answer.headers["x-two"] == "a, b")
    #expect(answer.body == (method == "GET" ? [] : Array("body".utf8)))
    let seen = handler.requests.withLock { $0[0] }
    #expect(seen.header("x-sent") == "yes" && seen.header("x-broken") == nil && seen.header("x-evil") == nil)
    #expect(seen.header("expect") == nil)
  }

  @Test("An empty POST, a HEAD, a 204 and a 404 are answers")
  func bodiless() async throws {
    #expect(try await transport.send(request("POST", "/echo")).body == [])
    #expect(try await transport.send(request("HEAD", "/file")).status == 200)
    #expect(try await transport.send(request("POST", "/other")).status == 204)
    let missing = try await transport.send(request("GET", "/missing"))
    #expect(missing.status == 404 && missing.body == Array("nothing here".utf8))
  }

  @Test("300 requests at once, and one after another over kept connections")
  func many() async throws {
    let transport = transport
    let one = request("POST", "/echo")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<300 {
        group.addTask {
          var request = one
          request.body = .bytes(Array("\(index)".utf8))
          let answer = try await transport.send(request)
          #expect(answer.body == Array("\(index)".utf8))
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("A file goes up with progress, also a part of it")
  func upload() async throws {
    let bytes = Array(handler.content)
    try Data(bytes).write(to: URL(fileURLWithPath: folder.path("up")))
    let seen = Mutex<[TransferProgress]>([])
    var request = request("PUT", "/echo")
    request.body = .file(path: folder.path("up"), range: 0..<Int64(bytes.count))
    request.progress = { progress in seen.withLock { $0.append(progress) } }
    #expect(try await transport.send(request).body == bytes)
    let last = try #require(seen.withLock { $0.last })
    #expect(last.sent == bytes.count && last.sendTotal == bytes.count && last.received == bytes.count)
    request.body = .file(path: folder.path("up"), range: 100..<228)
    #expect(try await transport.send(request).body == Array(bytes[100..<228]))
  }

  @Test("A file that is missing, or shorter than was said, is a fault of the file's")
  func uploadFaults() async throws {
    var missing = request("PUT", "/echo")
    missing.body = .file(path: folder.path("none"), range: 0..<1)
    await #expect(throws: TransportFault.failed(.file(ENOENT), mayHaveArrived: false)) {
      try await transport.send(missing)
    }
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: folder.path("short")))
    missing.body = .file(path: folder.path("short"), range: 0..<10)
    await #expect(throws: TransportFault.failed(.file(EIO), mayHaveArrived: true)) {
      try await transport.send(missing)
    }
  }

  @Test("A download goes into a file, and goes on where it was cut; what is not the file is not written")
  func download() async throws {
    let answer = try await transport.send(get("/file", to: "down"))
    #expect(answer.status == 200 && answer.body.isEmpty)
    #expect(try contents("down") == handler.content)
    try Data(handler.content[..<123_456]).write(to: URL(fileURLWithPath: folder.path("down")))
    #expect(try await transport.send(get("/file", to: "down", resumes: true)).status == 206)
    #expect(try contents("down") == handler.content)
    #expect(handler.requests.withLock { $0.last?.header("range") } == "bytes=123456-")
    let full = try await transport.send(get("/file", to: "down", resumes: true))
    #expect(full.status == 416)
    #expect(try contents("down") == handler.content)
    let missing = try await transport.send(get("/missing", to: "none"))
    #expect(missing.status == 404 && missing.body == Array("nothing here".utf8))
    #expect(!FileManager.default.fileExists(atPath: folder.path("none")))
    // Without `resumes` the file begins anew.
    #expect(try await transport.send(get("/file", to: "down")).status == 200)
    #expect(try contents("down") == handler.content)
  }

  @Test("A server that sends another part than was asked for, or too much, spoils no file")
  func downloadFaults() async throws {
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: folder.path("down")))
    await #expect(throws: TransportFault.self) {
      try await transport.send(get("/wrong-part", to: "down", resumes: true))
    }
    #expect(try contents("down") == [1, 2, 3])
    await #expect(throws: TransportFault.failed(.answerTooLarge, mayHaveArrived: true)) {
      try await transport.send(get("/file", to: "large", limit: 100_000))
    }
    await #expect(throws: TransportFault.failed(.file(ENOENT), mayHaveArrived: true)) {
      try await transport.send(get("/file", to: "no/such/folder"))
    }
    var small = request("GET", "/file")
    small.sink = .memory(limit: 1_000)
    await #expect(throws: TransportFault.failed(.answerTooLarge, mayHaveArrived: true)) {
      try await transport.send(small)
    }
  }

  @Test("Nobody there, an unknown name, no answer in time: each its own fault")
  func unreachable() async throws {
    let closed = try WebServer(host: "127.0.0.1", port: 0, handler: handler)
    let port = closed.port
    closed.stop()
    await #expect(throws: TransportFault.failed(.noConnection, mayHaveArrived: false)) {
      try await transport.send(TransportRequest(method: "GET", url: "http://127.0.0.1:\(port)/"))
    }
    await #expect(throws: TransportFault.failed(.unknownHost, mayHaveArrived: false)) {
      try await transport.send(TransportRequest(method: "GET", url: "http://no-such-host.invalid/"))
    }
    var silent = request("GET", "/silent")
    silent.timeout = .milliseconds(200)
    let late = silent
    await #expect(throws: TransportFault.failed(.timedOut, mayHaveArrived: true)) {
      try await transport.send(late)
    }
    await #expect(throws: TransportFault.self) {
      try await transport.send(TransportRequest(method: "GET", url: "file:///etc/hostname"))
    }
  }

  @Test("A cancelled task ends its transfer")
  func cancelled() async throws {
    let transport = transport
    let silent = request("GET", "/silent")
    let task = Task { () throws(TransportFault) in try await transport.send(silent) }
    while handler.requests.withLock({ $0.isEmpty }) { await Task.yield() }
    task.cancel()
    await #expect(throws: TransportFault.cancelled) { try await task.value }
    let dead = Task { () throws(TransportFault) -> TransportAnswer in
      withUnsafeCurrentTask { $0?.cancel() }
      return try await transport.send(silent)
    }
    await #expect(throws: TransportFault.cancelled) { try await dead.value }
  }

  @Test("TLS: the file's authority is trusted and no other; the system's do not know it")
  func trust() async throws {
    let files = CertificateFiles(certificate: folder.path("cert.pem"), key: folder.path("key.pem"))
    try TestCertificates.first.write(toFile: files.certificate, atomically: true, encoding: .utf8)
    try TestCertificates.firstKey.write(toFile: files.key, atomically: true, encoding: .utf8)
    try TestCertificates.second.write(toFile: folder.path("second.pem"), atomically: true, encoding: .utf8)
    let secure = try WebServer(host: "127.0.0.1", port: 0, certificate: files, handler: handler)
    var echo = TransportRequest(method: "POST", url: "https://localhost:\(secure.port)/echo")
    echo.body = .bytes([7])
    let request = echo
    let trusting = CurlTransport(trustedCertificateFile: files.certificate)
    #expect(try await trusting.send(request).body == [7])
    for other in [
      transport, CurlTransport(trustedCertificateFile: folder.path("second.pem")),
      CurlTransport(trustedCertificateFile: folder.path("none.pem")),
    ] {
      await #expect(throws: TransportFault.failed(.notTrusted, mayHaveArrived: false)) {
        try await other.send(request)
      }
    }
  }

  @Test("Three processes with one session, stale all the time: no refresh token is used twice")
  func processes() async throws {
    let web = try WebFakeServer(FakeServer { Timebase.system.wallMilliseconds() })
    let vaultFolder = folder.path("vault")
    let vault = try FileKeyVault(folder: vaultFolder, random: Timebase.system.randomSource)
    let http = HTTPClient(server: try #require(ServerURL(web.url)), transport: transport, time: .system)
    let sessions = SessionAuthority(vault: vault, http: http, lockPath: vaultFolder + "/session.lock")
    _ = try await sessions.signIn("sign-up", ["email": "a@b.c", "password": "long enough"])
    let probes = try (0..<3).map { _ in try ToolProcess("sdk-probe", ["tokens", vaultFolder, web.url, "8"]) }
    for probe in probes {
      let result = probe.finish()
      #expect(result.code == 0 && result.output == "done\n", "\(result.errors)")
    }
    #expect(web.fake.sessionCount == 1)
    let used = web.fake.usedRefreshTokens
    #expect(used.count == Set(used).count && used.count >= 8)
    let repeated = web.fake.requests.filter { $0.path == "/v1/auth/refresh" }
    #expect(repeated.count == used.count)
  }
}
