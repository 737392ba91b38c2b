import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@Suite("Web server: what one address may do (issue 4, Defence)")
struct AddressLimitTests {
  private func server(_ change: (inout AddressLimits) -> Void) throws -> TestServer {
    var limits = WebServerLimits.patient
    limits.perAddress.includesLoopback = true
    change(&limits.perAddress)
    return try TestServer(limits: limits)
  }

  @Test("Connections at once")
  func connections() throws {
    let server = try server { $0.connectionCount = 2 }
    let first = try RawClient(port: server.port)
    let second = try RawClient(port: server.port)
    #expect(first.upgrade() && second.upgrade())
    let third = try RawClient(port: server.port)
    third.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(third.readToEnd().isEmpty)
    first.send(RawClient.frame(2, [1]))
    #expect(first.readFrame()?.payload == [1])
    // A place that becomes free is given again.
    first.send(RawClient.frame(8, []))
    while first.readFrame() != nil {}
    let fourth = try RawClient(port: server.port)
    #expect(fourth.upgrade())
  }

  @Test("New connections in a time")
  func newConnections() throws {
    let server = try server {
      $0.connectionsPerSecond = 1
      $0.connectionBurst = 3
    }
    var answered = 0
    for _ in 0..<10 {
      let client = try RawClient(port: server.port)
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      if client.response().status == 200 { answered += 1 }
    }
    // A slow machine may earn a further one.
    #expect((3..<10).contains(answered))
  }

  @Test("Requests and upgrades in a time: 429, and nothing reaches the handler")
  func requests() throws {
    let server = try server {
      $0.requestsPerSecond = 1
      $0.requestBurst = 2
    }
    var refused = 0
    for _ in 0..<10 {
      let client = try RawClient(port: server.port)
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      let answer = client.response()
      if answer.status == 429, answer.head.contains("retry-after: 1") { refused += 1 }
    }
    #expect((1...8).contains(refused))
    #expect(server.handler.log.withLock { $0.requests.count } == 10 - refused)
    let upgrade = try RawClient(port: server.port)
    upgrade.send(RawClient.upgradeRequest("/ws"))
    let status = upgrade.response().status
    #expect(status == 429 || status == 101)
  }

  @Test("This machine is not limited unless that is wanted: a proxy may run on it")
  func loopback() throws {
    let server = try server {
      $0.includesLoopback = false
      $0.connectionCount = 1
      $0.connectionBurst = 1
      $0.requestBurst = 1
    }
    let clients = try (0..<5).map { _ in try RawClient(port: server.port) }
    for client in clients {
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(client.response().body == "OK")
    }
  }
}
