import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeSFUServer
import PalbeUnits

/// How long it takes from the connect of a subscriber's WebSocket to the first packet of a video that flows: signaling, ICE,
/// the handshake, and the key frame that its publisher is asked for.
///
/// They join one after the other and stay. Between two of them lies more than the server lets pass between two requests for
/// key frames, as it would ask once for all who come within that.
final class JoinBench {
  /// Between two frames of the publisher's, which sends 1 Mbit/s.
  private static let frameInterval: UInt64 = 33_000_000
  private static let pause: UInt64 = 520_000_000

  private let server: SFUServer
  private let identity: DTLSIdentity
  private var publisher: BenchClient
  private var subscribers: [BenchClient] = []
  private var frame = [UInt8](repeating: 0x55, count: 4_000)
  private var timestamp: UInt32 = 0
  private var nextFrameAt = nanoseconds()
  private var nextTurn = 0

  enum JoinError: Error { case noMedia(joined: Int) }

  init() throws {
    server = try SFUServer(.bench)
    try ThreadProbe(name: "sfu-worker-0").pin(to: 1)
    var random = SystemRandom.source()
    identity = try DTLSIdentity(nowUnix: WallClock.unixSeconds, using: &random)
    publisher = try BenchClient(
      port: server.signalingAddress.port, identity, room: "room", name: "publisher", publishes: [.camera])
    publisher.isSource = true
    try wait(for: publisher, until: { $0.isConnected })
  }

  /// Milliseconds of each of `count` subscribers.
  func run(_ count: Int, progress: (String) -> Void) throws -> [Double] {
    var times: [Double] = []
    for number in 0..<count {
      progress("subscriber \(number + 1) of \(count)")
      let subscriber = try BenchClient(
        port: server.signalingAddress.port, identity, room: "room", name: "s\(number)")
      try wait(for: subscriber, until: { $0.received > 0 })
      times.append(Double(nanoseconds() - subscriber.askedAt) / 1e6)
      subscribers.append(subscriber)
      let end = subscriber.askedAt + Self.pause
      while nanoseconds() < end { turn() }
    }
    for client in subscribers + [publisher] { client.end() }
    server.stop()
    return times
  }

  private func wait(for client: BenchClient, until condition: (BenchClient) -> Bool) throws {
    let end = nanoseconds() + 10_000_000_000
    while !condition(client) {
      guard nanoseconds() < end else { throw JoinError.noMedia(joined: subscribers.count) }
      turn()
      client.turn()
      client.drain()
    }
  }

  /// The publisher goes on, and a few of those who are there.
  private func turn() {
    publisher.turn()
    publisher.drain()
    if publisher.isConnected, nanoseconds() >= nextFrameAt {
      nextFrameAt = max(nextFrameAt + Self.frameInterval, nanoseconds() - Self.frameInterval)
      frame[0] = publisher.wantsKeyFrame ? 0x10 : 0x11
      publisher.wantsKeyFrame = false
      timestamp &+= 3_000
      _ = publisher.send(frame, on: .camera, timestamp: timestamp)
    }
    for _ in 0..<min(4, subscribers.count) {
      nextTurn = (nextTurn + 1) % subscribers.count
      subscribers[nextTurn].turn()
      subscribers[nextTurn].drain()
    }
  }

  static func json(_ times: [Double]) -> String {
    "{\"subscribers\":\(times.count),\"first_packet_ms_p50\":\(fixed(quantile(times, 0.5), 1)),"
      + "\"first_packet_ms_p90\":\(fixed(quantile(times, 0.9), 1)),"
      + "\"first_packet_ms_max\":\(fixed(times.max() ?? 0, 1))}"
  }

  static func text(_ times: [Double]) -> String {
    "first packet of \(times.count) who join: median \(fixed(quantile(times, 0.5), 1)) ms, "
      + "90 % within \(fixed(quantile(times, 0.9), 1)) ms, all within \(fixed(times.max() ?? 0, 1)) ms"
  }
}
