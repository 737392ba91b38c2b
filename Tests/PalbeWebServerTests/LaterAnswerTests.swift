import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@Suite("Web server: answers that come later")
struct LaterAnswerTests {
  private let get = "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
  private let post = "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"

  private func responder(_ index: Int, of server: TestServer) async -> HTTPResponder {
    await server.handler.wait { $0.responders.count > index }
    return server.handler.log.withLock { $0.responders[index] }
  }

  @Test("An answer from another thread is sent, once, and the connection stays")
  func later() async throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    for (index, request) in [get, post, get, post].enumerated() {
      client.send(request)
      let responder = await responder(index, of: server)
      responder.send(.text("answer \(index)"))
      responder.send(.text("twice"))
      #expect(client.response().body == "answer \(index)")
    }
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().body == "OK")
  }

  @Test("What a client sends meanwhile waits for its turn")
  func pipelined() async throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    client.send(post + get + "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    let first = await responder(0, of: server)
    client.send(get)
    #expect(server.handler.log.withLock { $0.responders.count == 1 && $0.requests.isEmpty })
    first.send(.text("1"))
    #expect(client.response().body == "1")
    await responder(1, of: server).send(.text("2"))
    #expect(client.response().body == "2")
    #expect(client.response().body == "OK")
    await responder(2, of: server).send(.text("3"))
    #expect(client.response().body == "3")
  }

  @Test("Answers out of order, by many threads, find their clients")
  func manyAtOnce() async throws {
    let server = try TestServer()
    let clients = try (0..<50).map { _ in try RawClient(port: server.port) }
    for (index, client) in clients.enumerated() {
      client.send(post)
      _ = await responder(index, of: server)
    }
    let responders = server.handler.log.withLock { $0.responders }
    await withTaskGroup { group in
      for (index, responder) in responders.enumerated().reversed() {
        group.addTask { responder.send(.text("\(index)")) }
      }
    }
    for (index, client) in clients.enumerated() { #expect(client.response().body == "\(index)") }
  }

  @Test("A long answer comes whole and ends the connection")
  func long() async throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port, receiveBuffer: 4_096)
    client.send(get)
    let body = String(repeating: "abcdefgh", count: 250_000)
    await responder(0, of: server).send(.text(body))
    let answer = client.response()
    #expect(answer.body == body && answer.head.contains("connection: close"))
    #expect(client.readToEnd().isEmpty)
  }

  @Test("The answer for a client that is gone goes nowhere")
  func gone() async throws {
    let server = try TestServer()
    for index in 0..<20 {
      let client = try RawClient(port: server.port)
      client.send(index % 2 == 0 ? get : post)
      let responder = await responder(index, of: server)
      client.reset()
      responder.send(.text("late"))
    }
    let client = try RawClient(port: server.port)
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().body == "OK")
  }

  @Test("The time for a request's head is not the time for its answer")
  func longerThanItsHead() async throws {
    var limits = WebServerLimits.patient
    limits.requestTimeout = .seconds(1)
    limits.responseTimeout = .seconds(4)
    let server = try TestServer(limits: limits)
    for request in [get, post] {
      let client = try RawClient(port: server.port)
      client.send(request)
      #expect(client.response().status == 503)
    }
  }

  @Test("Without an answer in time the client gets the late one, at once if the handler forgets it")
  func late() async throws {
    var limits = WebServerLimits.patient
    limits.responseTimeout = .milliseconds(1)
    let server = try TestServer(limits: limits)
    let client = try RawClient(port: server.port)
    client.send(get)
    #expect(client.response().status == 503)
    await responder(0, of: server).send(.text("too late"))
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().body == "OK")
    let forgetful = try TestServer()
    let other = try RawClient(port: forgetful.port)
    other.send("GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(other.response().status == 503)
  }

  @Test("A server that stops ends those who wait")
  func stops() async throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    client.send(get)
    let responder = await responder(0, of: server)
    server.server.stop()
    responder.send(.text("nobody"))
    #expect(client.readToEnd().isEmpty)
  }

  @Test("A body that the handler refuses is not read; all bodies together are bounded")
  func bodies() throws {
    var limits = WebServerLimits.patient
    limits.requestBodyByteCount = 1 << 20
    limits.bodiesByteCount = 100_000
    let server = try TestServer(limits: limits)
    let refused = try RawClient(port: server.port)
    refused.send("POST /unwanted HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n")
    #expect(refused.response().status == 401)
    let head = "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 60001\r\n\r\n"
    let body = String(repeating: "z", count: 60_000)
    let slow = try RawClient(port: server.port)
    slow.send(head + body)
    // Read by the server once a further request on another connection is answered.
    let ping = try RawClient(port: server.port)
    for _ in 0..<20 {
      ping.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(ping.response().body == "OK")
    }
    let surplus = try RawClient(port: server.port)
    surplus.send(head + body + "z")
    #expect(surplus.response().status == 503)
    slow.send("z")
    #expect(slow.response().body == body + "z")
    let next = try RawClient(port: server.port)
    next.send(head + body + "z")
    #expect(next.response().status == 200)
  }
}
