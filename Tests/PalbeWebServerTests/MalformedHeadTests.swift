import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Testing

@Suite("Web server: what is no request (RFC 9112)")
struct MalformedHeadTests {
  /// Answers with the reason, and says OK to what is one.
  private final class Speaker: WebServerHandler {
    func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision { .reject(.text("no")) }
    func respond(to request: HTTPRequest) -> HTTPResponse { .text("OK") }
    func refusal(_ refusal: RequestRefusal, of request: HTTPRequest) -> HTTPResponse {
      HTTPResponse(
        status: refusal.status, headers: [.init("content-type", "application/json")],
        body: Array("{\"reason\":\"\(refusal.reason)\"}".utf8))
    }
  }

  private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
  private static let cases: [(String, Int)] = [
    // Bug: white space before the colon hid the header, and its body was the next request.
    ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length : 37\r\n\r\n" + get, 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length\t: 37\r\n\r\n" + get, 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding : chunked\r\n\r\n{}" + get, 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTRANSFER-ENCODING  : chunked\r\n\r\n{}" + get, 400),
    // A line without a colon takes the next one with it: its body is of unknown length.
    ("POST / HTTP/1.1\r\nHost: x\r\nfoo\r\nContent-Length: 2\r\n\r\n{}" + get, 411),
    // Bug: closed without a word.
    ("GET / HTTP/1.1\r\nHost: x\r\nY-Extra: " + String(repeating: "a", count: 50_000) + "\r\n\r\n", 431),
    ("GET /" + String(repeating: "a", count: 50_000) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431),
    // Bug: the library's own bare 403.
    ("BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n", 400), ("CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("\u{16}\u{03}\u{01}\u{02}\u{00}\u{01}\u{00}\u{01}", 400),
  ]
  /// Of which the library tells too late for an answer when nothing came before them.
  private static let later: [(String, Int)] = [
    ("GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n", 400), ("GET /a%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: x\r\nY-Extra: " + String(repeating: "a", count: 90_000) + "\r\n\r\n", 431),
    ("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n", 400),
  ]

  @Test("Refused in the handler's words, once, and nothing after it is a request")
  func refused() throws {
    var limits = WebServerLimits.patient
    limits.requestHeadByteCount = 16_384
    let server = try WebServer(host: "127.0.0.1", port: 0, limits: limits, handler: Speaker())
    defer { server.stop() }
    // The first request of a connection, and one after another.
    for isSecond in [false, true] {
      for (text, status) in Self.cases + Self.later {
        let client = try RawClient(port: server.port)
        if isSecond {
          client.send(Self.get)
          #expect(client.response().body == "OK")
        }
        client.send(text)
        let answer = client.response()
        if answer.status == 0, !isSecond, Self.later.contains(where: { $0.0 == text }) { continue }
        #expect(answer.status == status, "\(text.prefix(100).debugDescription)")
        #expect(answer.head.contains("application/json") && answer.body.hasPrefix("{\"reason\":"))
        #expect(client.readToEnd().isEmpty, "\(text.prefix(100).debugDescription)")
      }
    }
    // Who says nothing hears nothing.
    let silent = try RawClient(port: server.port)
    silent.shutdownSending()
    #expect(silent.readToEnd().isEmpty)
    let kept = try RawClient(port: server.port)
    kept.send(Self.get)
    #expect(kept.response().body == "OK")
    kept.shutdownSending()
    #expect(kept.readToEnd().isEmpty)
  }
}
