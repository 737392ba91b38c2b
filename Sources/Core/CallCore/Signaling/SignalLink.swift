import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// The signaling WebSocket: what waits to be sent, the pings, and whether the server is still there.
///
///     joining ──join──▶ open ──silence for the ping timeout, or the socket closes──▶ closed
struct SignalLink: Sendable {
  enum State: Hashable, Sendable {
    /// Until the join response, which must come by this time.
    case joining(until: Instant)
    case open
    case closed
  }

  static let joinTimeout = TimeDelta.seconds(10)
  /// Messages not polled yet; more means that nobody sends them.
  static let outboxLimit = 1_024

  private(set) var state: State
  private var outbox: [[UInt8]] = []
  private var pingInterval = TimeDelta.seconds(5)
  private var pingTimeout = TimeDelta.seconds(15)
  private var nextPing = Instant.distantFuture
  private var lastHeard: Instant
  private var roundTripMilliseconds: Int64 = 0

  init(at now: Instant) {
    state = .joining(until: now + Self.joinTimeout)
    lastHeard = now
  }

  mutating func send(_ message: LiveKit.SignalRequest.Message) {
    guard state != .closed, outbox.count < Self.outboxLimit else { return }
    outbox.append(LiveKit.SignalRequest(message).serialized())
  }

  mutating func poll() -> [UInt8]? { outbox.isEmpty ? nil : outbox.removeFirst() }

  /// Any message shows that the server is there.
  mutating func heard(at now: Instant) { lastHeard = now }

  /// The join response came. Intervals in seconds; what is not 1 to 3,600 is replaced by LiveKit's own.
  mutating func open(pingInterval: Int32, pingTimeout: Int32, at now: Instant) {
    state = .open
    if (1...3_600).contains(pingInterval) { self.pingInterval = .seconds(Int(pingInterval)) }
    if (1...3_600).contains(pingTimeout) { self.pingTimeout = .seconds(Int(pingTimeout)) }
    self.pingTimeout = max(self.pingTimeout, self.pingInterval)
    nextPing = now + self.pingInterval
  }

  /// An answer to our ping.
  mutating func received(_ pong: LiveKit.Pong, unixMilliseconds: Int64) {
    let (trip, overflow) = unixMilliseconds.subtractingReportingOverflow(pong.lastPingTimestamp)
    if !overflow, (0...60_000).contains(trip) { roundTripMilliseconds = trip }
  }

  mutating func close() {
    state = .closed
    nextPing = .distantFuture
  }

  var nextDeadline: Instant? {
    switch state {
    case .joining(let until): until
    case .open: min(nextPing, lastHeard + pingTimeout)
    case .closed: nil
    }
  }

  /// Sends pings; true when the server is gone.
  mutating func handleTimeout(at now: Instant, unixMilliseconds: Int64) -> Bool {
    switch state {
    case .joining(let until): return now >= until
    case .closed: return false
    case .open:
      if now >= lastHeard + pingTimeout { return true }
      if now >= nextPing {
        nextPing = now + pingInterval
        // Older servers know the first form only.
        send(.ping(unixMilliseconds))
        send(
          .pingReq(
            .with {
              $0.timestamp = unixMilliseconds
              $0.rtt = roundTripMilliseconds
            }))
      }
      return false
    }
  }
}
