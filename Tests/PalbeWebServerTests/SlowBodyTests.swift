import Glibc
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeWebServer

@Suite("Web server: bodies and heads that come too slowly")
struct SlowBodyTests {
  private let start = Instant(nanoseconds: 1_000_000_000)

  /// When a body is given up of which `bytes` come in each second; nil when it is not within a day.
  private func end(of pace: BodyPace, bytes: (Int) -> Int) -> Int? {
    var pace = pace
    for second in 1...86_400 {
      pace.received(bytes(second))
      if pace.isTooSlow(at: start + .seconds(second)) { return second }
    }
    return nil
  }

  @Test("Each window has to bring its bytes; a fast beginning is no credit, and a slow line is fast enough")
  func pace() {
    let streamed = BodyPace(rate: 1_024, window: .seconds(30), time: nil, at: start)
    #expect(end(of: streamed) { _ in 1 } == 30)
    #expect(end(of: streamed) { _ in 1_023 } == 30)
    #expect(end(of: streamed) { _ in 1_024 } == nil)
    // One that comes in bursts.
    #expect(end(of: streamed) { $0 % 25 == 0 ? 50_000 : 0 } == nil)
    #expect(end(of: streamed) { $0 < 100 ? 10 << 20 : 1 } == 150)
    // In memory, all of it has a time.
    let collected = BodyPace(rate: 1_024, window: .seconds(10), time: .seconds(120), at: start)
    #expect(end(of: collected) { _ in 0 } == 10)
    #expect(end(of: collected) { _ in 1 << 20 } == 120)
    #expect(end(of: BodyPace(rate: 0, window: .seconds(10), time: nil, at: start)) { _ in 0 } == nil)
    // While we do not read, nothing is late.
    var waiting = streamed
    waiting.pause()
    let later = start + .seconds(1_000)
    var verdicts = [waiting.isTooSlow(at: later)]
    waiting.resume(at: later)
    for second in [29, 30] { verdicts.append(waiting.isTooSlow(at: later + .seconds(second))) }
    #expect(verdicts == [false, false, true])
  }

  @Test(
    "Bug: a byte now and then held a connection for ever; now 408, also in a head, and others pass",
    .timeLimit(.minutes(1)))
  func trickled() async throws {
    var limits = WebServerLimits.patient
    limits.requestTimeout = .seconds(1)
    limits.streamTimeout = .seconds(1)
    limits.bodyRate = 10_000
    let server = try StreamServer(limits: limits)
    let head = "HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n"
    let slow = try ["PUT /stream \(head)", "POST /small \(head)", "GET / HTTP/1.1\r\nHost: x\r\nY-Extra: "]
      .map {
        let client = try RawClient(port: server.port)
        client.send($0)
        return client
      }
    let fast = try ["PUT /stream \(head)", "POST /small \(head)"].map {
      let client = try RawClient(port: server.port)
      client.send($0)
      return client
    }
    let piece = [UInt8](repeating: 120, count: 50_000)
    for turn in 0..<36 {
      usleep(50_000)
      for client in slow { client.send("a") }
      if turn % 2 == 0 { for client in fast { client.send(piece) } }
    }
    for client in slow {
      let answer = client.response()
      #expect(answer.status == 408 && answer.head.contains("connection: close"))
      #expect(client.readToEnd().isEmpty)
    }
    await server.handler.wait { $0.abortedCount == 1 }
    for client in fast { #expect(client.response().status == 200) }
    // A body in memory has a time for all of it, however fast it comes.
    limits.bodyRate = 0
    limits.bodyTimeout = .seconds(1)
    let strict = try StreamServer(limits: limits)
    let client = try RawClient(port: strict.port)
    client.send("POST /small \(head)")
    for _ in 0..<20 where client.send(Array(piece[..<100])) { usleep(100_000) }
    #expect(client.response().status == 408)
  }
}
