import PalbeLiveKit
import PalbeUnits
import PalbeWire
import Testing

@_spi(Testing) @testable import PalbeSFUServer

@Suite("The signaling port over real sockets (LiveKit protocol 1.0 and 1.1)")
struct HTTPTests {
  let server: SFUServer
  var port: UInt16 { server.signalingAddress.port }

  init() throws { server = try SFUServer.onLoopback() }

  @Test("/ is the health check")
  func health() {
    let answer = HTTP.ask(port, "/")
    #expect(answer.status == 200)
    #expect(answer.body == "OK")
    #expect(HTTP.ask(port, "/", method: "HEAD").status == 200)
    #expect(HTTP.ask(port, "/", method: "POST", headers: "Content-Length: 0\r\n").status == 404)
  }

  @Test("the statuses of the upgrade, and the same from /rtc/v1/validate")
  func statuses() {
    let token = Tokens.join(room: "hall", identity: "anna")
    let item = JoinRequests.item()
    let expired = Tokens.join(room: "hall", identity: "anna", expiresIn: -120)
    let rows: [(query: String, headers: String, status: Int)] = [
      ("join_request=\(item)&access_token=\(token)", "", 101),
      ("join_request=\(item)", "Authorization: Bearer \(token)\r\n", 101),
      ("join_request=\(JoinRequests.percentEncoded(item))", "Authorization: Bearer \(token)\r\n", 101),
      ("join_request=\(item)", "", 401),
      ("join_request=\(item)", "Authorization: \(token)\r\n", 401),
      ("join_request=\(item)&access_token=\(expired)", "", 401),
      ("join_request=\(item)&access_token=\(Tokens.join(room: "hall", identity: "a", secret: "x"))", "", 401),
      ("access_token=\(token)", "", 400),
      ("join_request=%21&access_token=\(token)", "", 400),
      ("join_request=\(item)&access_token=\(Tokens.join(room: "", identity: "anna"))", "", 400),
      ("join_request=\(item)&access_token=\(Tokens.join(room: "hall", identity: ""))", "", 400),
    ]
    for row in rows {
      let upgrade = HTTP.ask(port, "/rtc/v1?" + row.query, headers: row.headers, upgrades: true)
      #expect(upgrade.status == row.status, "\(row)")
      let validate = HTTP.ask(port, "/rtc/v1/validate?" + row.query, headers: row.headers)
      #expect(validate.status == (row.status == 101 ? 200 : row.status), "\(row)")
      #expect(validate.body == "success" || row.status != 101)
      #expect(validate.head.contains("access-control-allow-origin: *"))
      if row.status != 101 { #expect(upgrade.body == validate.body && !upgrade.body.isEmpty) }
    }
  }

  @Test("paths: nothing without an upgrade but validate, a second slash counts for nothing")
  func paths() {
    let query = "?join_request=\(JoinRequests.item())&access_token=\(Tokens.join(room: "r", identity: "i"))"
    #expect(HTTP.ask(port, "/rtc" + query, upgrades: true).status == 101)
    #expect(HTTP.ask(port, "/rtc/validate" + query).status == 200)
    #expect(HTTP.ask(port, "/rtc" + query).status == 404)
    #expect(HTTP.ask(port, "/rtc/v1" + query).status == 404)
    #expect(HTTP.ask(port, "/nothing").status == 404)
    #expect(HTTP.ask(port, "/rtc/v1/more" + query, upgrades: true).status == 404)
    #expect(HTTP.ask(port, "//rtc/v1" + query, upgrades: true).status == 101)
    #expect(HTTP.ask(port, "//rtc//v1/validate" + query).status == 200)
    // A browser client takes these words for something else (livekit protocol 1.0, fact 2).
    #expect(!HTTP.ask(port, "/rtc/validate").body.contains("room does not exist"))
  }

  @Test("CORS: any origin, any header")
  func preflight() {
    let answer = HTTP.ask(
      port, "/rtc/v1/validate", method: "OPTIONS",
      headers: "Origin: https://a.example\r\nAccess-Control-Request-Headers: authorization, x-a\r\n")
    #expect(answer.status == 204)
    #expect(answer.head.contains("access-control-allow-origin: *"))
    #expect(answer.head.contains("access-control-allow-headers: authorization, x-a"))
    #expect(answer.head.contains("access-control-allow-methods: options, head, get, post, patch, delete"))
    #expect(answer.head.contains("access-control-max-age: 86400"))
  }

  @Test("a request line of 24 kB is read")
  func longLine() {
    // Random, so that gzip does not shrink it.
    var random = RandomSource(seed: 24)
    var request = JoinRequests.request()
    request.metadata = Base64.encode(random.bytes(18_000))
    let item = JoinRequests.item(request)
    #expect(item.utf8.count > 16_384)
    let target = "/rtc/v1?join_request=\(item)&access_token=\(Tokens.join(room: "r", identity: "i"))"
    #expect(HTTP.ask(port, target, upgrades: true).status == 101)
  }

  @Test("after stop nobody listens, and a second stop does nothing")
  func stops() {
    server.stop()
    server.stop()
    #expect(HTTP.ask(port, "/").status == 0)
  }
}
