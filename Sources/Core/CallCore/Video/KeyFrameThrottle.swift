import PalbeUnits

/// Passes requests for key frames on to our encoder, at most one in `interval`.
///
/// A request within the interval waits for its end, and is met by a key frame that is sent meanwhile.
struct KeyFrameThrottle: Sendable {
  static let interval = TimeDelta.milliseconds(300)

  private var isPending = false
  private var lastPassed: Instant?

  /// A receiver asks.
  mutating func request() { isPending = true }

  /// A key frame leaves.
  mutating func sentKeyFrame() { isPending = false }

  /// When a request is to be passed on; nil without one.
  var nextDeadline: Instant? {
    guard isPending else { return nil }
    return lastPassed.map { $0 + Self.interval } ?? .zero
  }

  /// True when the encoder is to make a key frame.
  mutating func poll(at now: Instant) -> Bool {
    guard let nextDeadline, nextDeadline <= now else { return false }
    isPending = false
    lastPassed = now
    return true
  }
}
