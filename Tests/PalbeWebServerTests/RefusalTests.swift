import PalbeUnits
import PalbeWebServer
import Testing

@Suite("Web server: its own refusals in its handler's words")
struct RefusalTests {
  /// Refuses in JSON, and with a status that does not count.
  private final class Speaker: WebServerHandler {
    func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision { .reject(.text("no")) }
    func respond(to request: HTTPRequest) -> HTTPResponse { .text("OK") }
    func refusal(_ refusal: RequestRefusal, of request: HTTPRequest) -> HTTPResponse {
      let id = request.header("x-request-id") ?? "none"
      return HTTPResponse(
        status: 200, headers: [.init("content-type", "application/json"), .init("x-request-id", id)],
        body: Array("{\"path\":\"\(request.path)\",\"bytes\":\(request.body.count)}".utf8))
    }
  }

  @Test("Each comes with the handler's body and headers, its own status, and the headers that it must have")
  func refusals() throws {
    var limits = WebServerLimits.patient
    limits.requestBodyByteCount = 1_000
    limits.bodiesByteCount = 500
    limits.additionalHeaderNames = ["x-request-id"]
    let server = try WebServer(host: "127.0.0.1", port: 0, limits: limits, handler: Speaker())
    defer { server.stop() }
    let upgrade = "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    let cases: [(String, Int, String)] = [
      ("POST /a HTTP/1.1\r\nContent-Length: x\r\n", 400, ""),
      ("POST /a HTTP/1.1\r\n", 411, ""), ("PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", 411, ""),
      ("POST /a HTTP/1.1\r\nContent-Length: 1001\r\n", 413, ""),
      ("POST /a HTTP/1.1\r\nContent-Length: 600\r\n", 503, String(repeating: "z", count: 600)),
      ("GET /a HTTP/1.1\r\nUpgrade: h2c\r\n\(upgrade)", 426, ""),
      ("GET /a HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n\(upgrade)", 426, ""),
      ("POST /a HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\(upgrade)", 400, ""),
    ]
    for (head, status, body) in cases {
      let client = try RawClient(port: server.port)
      client.send("\(head)Host: x\r\nX-Request-Id: r-1\r\n\r\n\(body)")
      let answer = client.response()
      #expect(answer.status == status, "\(head)")
      #expect(answer.body == "{\"path\":\"/a\",\"bytes\":0}", "\(head)")
      #expect(answer.head.contains("x-request-id: r-1") && answer.head.contains("application/json"))
      #expect(answer.head.contains("sec-websocket-version: 13") == head.contains("Version: 8"))
      // What is left of a body is not read as the next request.
      #expect(client.readToEnd().isEmpty)
    }
  }

  @Test("One with a body behind the answer to another; too many of one address, who get no less of an answer")
  func early() throws {
    var limits = WebServerLimits.patient
    limits.perAddress.includesLoopback = true
    limits.perAddress.requestsPerSecond = 1
    limits.perAddress.requestBurst = 3
    let server = try WebServer(host: "127.0.0.1", port: 0, limits: limits, handler: Speaker())
    defer { server.stop() }
    let get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    let client = try RawClient(port: server.port)
    client.send(get + "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na")
    #expect(client.response().body == "OK")
    let refused = client.response()
    #expect(refused.status == 400 && refused.body == "{\"path\":\"/b\",\"bytes\":0}")
    var answers: [(status: Int, head: String, body: String)] = []
    for _ in 0..<6 {
      let client = try RawClient(port: server.port)
      client.send(get)
      let answer = client.response()
      answers.append((answer.status, answer.head, answer.body))
    }
    let surplus = answers.filter { $0.status == 429 }
    #expect((2...5).contains(surplus.count))
    #expect(surplus.allSatisfy { $0.head.contains("retry-after: 1") && $0.body.contains("/a") })
    // Limits that were raised count for who was limited.
    limits.perAddress.requestsPerSecond = 1_000_000
    limits.perAddress.requestBurst = 1_000_000
    server.setAddressLimits(limits.perAddress)
    for _ in 0..<10_000 {
      let client = try RawClient(port: server.port)
      client.send(get)
      if client.response().status == 200 { return }
    }
    Issue.record("still limited")
  }
}
