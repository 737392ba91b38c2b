import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@Suite("Web server: HTTP")
struct HTTPTests {
  @Test("A plain request is answered; the connection stays if the client wants that (RFC 9112 §9.3)")
  func plain() throws {
    let server = try TestServer()
    #expect(server.port != 0)
    let client = try RawClient(port: server.port)
    for _ in 0..<3 {
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      let answer = client.response()
      #expect(answer.status == 200 && answer.body == "OK")
      #expect(answer.head.contains("content-type: text/plain; charset=utf-8"))
      #expect(answer.head.contains("content-length: 2") && !answer.head.contains("connection: close"))
      // Methods and bodies alternate on one connection.
      client.send("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
      #expect(client.response().body == "abc")
      client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(client.response(toHead: true).status == 200)
      client.send("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
      #expect(client.response().status == 200)
    }
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(client.response().head.contains("connection: close") && client.readToEnd().isEmpty)
    let old = try RawClient(port: server.port)
    old.send("GET / HTTP/1.0\r\nHost: x\r\n\r\n")
    #expect(old.response().body == "OK" && old.readToEnd().isEmpty)
  }

  @Test("Requests sent back to back are answered in order, and a WebSocket may follow on the same connection")
  func pipelined() throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    let get = "GET /where HTTP/1.1\r\nHost: x\r\n\r\n"
    client.send(get + get + "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().status == 404)
    #expect(client.response().status == 404)
    #expect(client.response().body == "OK")
    #expect(client.upgrade())
    client.send(RawClient.frame(2, [42]))
    #expect(client.readFrame()?.payload == [42])
  }

  @Test("A request with a body that does not wait for its turn is refused; the library would turn for ever")
  func pipelinedBodies() throws {
    let server = try TestServer()
    let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    let post = "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
    for first in [get, post + "a"] {
      for tail in ["", "b", "b" + get, "b" + post + "c"] {
        let client = try RawClient(port: server.port)
        client.send(first + post + tail)
        #expect(client.response().status == 200)
        #expect(client.response().status == 400)
        client.shutdownSending()
        #expect(client.readToEnd().isEmpty)
      }
      // Cut within the second head: what was read first is used up when the rest comes.
      let client = try RawClient(port: server.port)
      client.send(first + String(post.prefix(20)))
      #expect(client.response().status == 200)
      client.send(String(post.dropFirst(20)))
      client.send("d")
      #expect(client.response().body == "d")
    }
    let client = try RawClient(port: server.port)
    client.send(get)
    #expect(client.response().body == "OK")
  }

  @Test("Bug: a request with a body that followed an answer at once was now and then refused as pipelined")
  func quickBodies() async throws {
    let server = try TestServer()
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<2 {
        group.addTask { [port = server.port] in
          guard let client = try? RawClient(port: port) else { return 0 }
          return (0..<2_000).count { _ in
            client.send("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na")
            return client.response().body == "a"
          }
        }
      }
      for await answered in group { #expect(answered == 2_000) }
    }
  }

  @Test("Headers of every answer, and a client that waits for 100 Continue")
  func commonHeaders() throws {
    var limits = WebServerLimits.patient
    limits.commonHeaders = [.init("access-control-allow-origin", "*"), .init("content-type", "none")]
    let server = try TestServer(limits: limits)
    let client = try RawClient(port: server.port)
    client.send("POST /body HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    #expect(client.response().status == 100)
    client.send("abc")
    let answer = client.response()
    #expect(answer.body == "abc" && answer.head.contains("access-control-allow-origin: *"))
    client.send("POST /body HTTP/1.1\r\nHost: x\r\n\r\n")
    let refusal = client.response()
    #expect(refusal.status == 411 && refusal.head.contains("access-control-allow-origin: *"))
    #expect(refusal.head.contains("content-type: text/plain") && !refusal.head.contains("none"))
  }

  @Test("Method, path, query, headers and address reach the handler decoded")
  func request() throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    client.send(
      "OPTIONS //rtc/%76alidate?access_token=a.b-c_d&join_request=QUJD%3D%3D&raw=QQ==&plus=a+b%2Bc"
        + "&empty=&flag&&x=1&y=a%26b%3Dc HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer abc\r\n"
        + "X-Forwarded-For: 1.2.3.4\r\nOrigin: http://a\r\n\r\n"
    )
    #expect(client.response().status == 404)
    let seen = server.handler.log.withLock { $0.requests[0] }
    #expect(seen.method == "OPTIONS" && seen.path == "/rtc/validate")
    #expect(
      seen.query == [
        .init("access_token", "a.b-c_d"), .init("join_request", "QUJD=="), .init("raw", "QQ=="),
        .init("plus", "a b+c"), .init("empty", ""), .init("flag", ""), .init("x", "1"), .init("y", "a&b=c"),
      ])
    #expect(seen.query("join_request") == "QUJD==" && seen.query("none") == nil)
    #expect(seen.header("authorization") == "Bearer abc" && seen.header("origin") == "http://a")
    #expect(seen.remoteAddress.host == "127.0.0.1" && seen.remoteAddress.port != 0)
  }

  @Test("Request lines of 20 kB and 32 kB are read whole, over 40 kB the answer is 431")
  func longRequestLine() throws {
    let server = try TestServer()
    for count in [20_000, 32_000] {
      let value = String((0..<count).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
      let client = try RawClient(port: server.port)
      client.send("GET /rtc/v1?join_request=\(value)&access_token=t HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(client.response().status == 404)
      let seen = server.handler.log.withLock { $0.requests.last }
      #expect(seen?.query("join_request") == value && seen?.query("access_token") == "t")
      let upgraded = try RawClient(port: server.port)
      #expect(upgraded.upgrade("/rtc/v1?join_request=\(value)"))
      #expect(server.handler.log.withLock { $0.requests.last }?.query("join_request") == value)
    }
    let client = try RawClient(port: server.port)
    client.send("GET /?a=\(String(repeating: "b", count: 60_000)) HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().status == 431)
  }

  @Test("A body comes whole; one that is too long, chunked or of unknown length is refused")
  func bodies() throws {
    var limits = WebServerLimits.patient
    limits.requestBodyByteCount = 100_000
    let server = try TestServer(limits: limits)
    func post(_ headers: String, _ body: String, method: String = "POST") throws -> (Int, String) {
      let client = try RawClient(port: server.port)
      client.send("\(method) /body HTTP/1.1\r\nHost: x\r\n\(headers)\r\n\(body)")
      let answer = client.response()
      return (answer.status, answer.body)
    }
    let long = String(repeating: "z", count: 100_000)
    #expect(try post("Content-Length: 100000\r\n", long) == (200, long))
    #expect(try post("Content-Length: 0\r\n", "") == (200, ""))
    #expect(try post("Content-Length: 0\r\n", "", method: "PUT") == (200, ""))
    #expect(try post("Content-Length: 3\r\n", "abc", method: "PATCH") == (200, "abc"))
    #expect(try post("Content-Length: 100001\r\n", "").0 == 413)
    #expect(try post("Content-Length: 99999999999999999999\r\n", "").0 == 400)
    #expect(try post("Content-Length: -1\r\n", "").0 == 400)
    #expect(try post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n").0 == 411)
    #expect(try post("", "").0 == 411)
  }

  @Test("A large answer arrives whole; HEAD gets none of it")
  func largeAnswer() throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().body.utf8.count == 3_000_000)
    let head = try RawClient(port: server.port)
    head.send("HEAD /large HTTP/1.1\r\nHost: x\r\n\r\n")
    let answer = head.response(toHead: true)
    #expect(answer.status == 200 && answer.head.contains("content-length: 3000000"))
    #expect(head.readToEnd().isEmpty)
  }

  @Test("A header value with a line break is left out")
  func headerInjection() throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    client.send("GET /split HTTP/1.1\r\nHost: x\r\n\r\n")
    let answer = client.response()
    #expect(answer.head.contains("x-good: c") && !answer.head.contains("set-cookie"))
  }

  @Test("It listens on IPv6, and on both stacks at once")
  func families() throws {
    let six = try TestServer(host: "::1")
    let client = try RawClient(port: six.port, ipv6: true)
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().body == "OK")
    #expect(six.handler.log.withLock { $0.requests[0].remoteAddress.host } == "::1")
    let both = try TestServer(host: "::")
    for ipv6 in [false, true] {
      let client = try RawClient(port: both.port, ipv6: ipv6)
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(client.response().body == "OK")
    }
    #expect(both.handler.log.withLock { $0.requests.map(\.remoteAddress.host) } == ["127.0.0.1", "::1"])
  }

  @Test("A port in use, a foreign address and a name are typed errors")
  func startErrors() throws {
    let first = try TestServer()
    let port = first.port
    #expect(throws: WebServerError.portInUse(port)) {
      try WebServer(host: "127.0.0.1", port: port, handler: TestHandler())
    }
    #expect(throws: WebServerError.addressNotAvailable) {
      try WebServer(host: "192.0.2.1", port: 0, handler: TestHandler())
    }
    #expect(throws: WebServerError.addressNotAvailable) {
      try WebServer(host: "localhost", port: 0, handler: TestHandler())
    }
  }

  @Test("The port is free again after stop, and stop may be called twice")
  func stop() throws {
    let server = try WebServer(host: "127.0.0.1", port: 0, handler: TestHandler())
    let port = server.port
    server.stop()
    server.stop()
    let second = try WebServer(host: "127.0.0.1", port: port, handler: TestHandler())
    #expect(second.port == port)
    second.stop()
  }
}
