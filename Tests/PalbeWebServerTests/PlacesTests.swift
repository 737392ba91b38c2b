import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

/// Requirement (Defence): who only connects keeps nobody out, and what the process lacks stops no thread.
@Suite("Web server: places and descriptors")
struct PlacesTests {
  private func server(_ change: (inout WebServerLimits) -> Void) throws -> TestServer {
    var limits = WebServerLimits.patient
    limits.crowdedIdleTime = .zero
    change(&limits)
    return try TestServer(limits: limits)
  }

  private func isAnswered(_ server: TestServer) throws -> Bool {
    let client = try RawClient(port: server.port)
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return client.response().body == "OK"
  }

  @Test("64 idle connections keep nobody from the metrics' port: who is idle longest makes room")
  func idle() throws {
    let server = try server { $0.connectionCount = 64 }
    var idle: [RawClient] = []
    for number in 0..<64 {
      let client = try RawClient(port: server.port)
      // Some have had an answer, and wait between two requests.
      if number < 32 {
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(client.response().body == "OK")
      }
      idle.append(client)
    }
    for number in 0..<8 {
      #expect(try isAnswered(server), "newcomer \(number)")
    }
    #expect(idle[0].readToEnd().isEmpty)
    idle[63].send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(idle[63].response().body == "OK")
  }

  @Test("Half a handshake or head: of those without a first request the oldest makes room, the others stay")
  func fresh() throws {
    let server = try server { $0.freshConnectionCount = 4 }
    let socket = try RawClient(port: server.port)
    #expect(socket.upgrade())
    let half = try (0..<4).map { _ in
      let client = try RawClient(port: server.port)
      client.send("GET / HTTP/1.1\r\nHos")
      return client
    }
    #expect(try isAnswered(server))
    #expect(half[0].readToEnd().isEmpty)
    half[3].send("t: x\r\n\r\n")
    #expect(half[3].response().body == "OK")
    socket.send(RawClient.frame(2, [7]))
    #expect(socket.readFrame()?.payload == [7])
  }

  @Test("A connection that came just now does not make room: the further one is closed")
  func young() throws {
    let server = try server {
      $0.connectionCount = 2
      $0.crowdedIdleTime = .seconds(600)
    }
    let first = try RawClient(port: server.port)
    let second = try RawClient(port: server.port)
    first.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(first.response().body == "OK")
    let surplus = try RawClient(port: server.port)
    surplus.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(surplus.readToEnd().isEmpty)
    second.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(second.response().body == "OK")
  }

  @Test("Without descriptors left those who connect wait, open connections are served, and it is told why")
  func descriptors() throws {
    let reasons = Mutex<[String]>([])
    let server = try WebServer(
      host: "127.0.0.1", port: 0, limits: .patient, handler: TestHandler(),
      whenPaused: { reason in reasons.withLock { $0.append(reason) } })
    defer { server.stop() }
    let witness = try RawClient(port: server.port)
    #expect(witness.upgrade())
    let clients = (0..<3).map { _ in RawClient() }
    let highest = try #require(clients.map(\.descriptor).max())
    try withoutDescriptors(above: highest) {
      for client in clients {
        try client.connect(port: server.port)
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      }
      while reasons.withLock(\.isEmpty) {
        witness.send(RawClient.frame(2, [42]))
        #expect(witness.readFrame()?.payload == [42])
      }
    }
    for client in clients { #expect(client.response().body == "OK") }
    // A pause is 100 ms, so a loop that turned without end would have told more often.
    #expect(reasons.withLock(\.count) < 20)
  }
}
