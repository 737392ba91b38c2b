import PalbeUnits

/// Asks a sender for a key frame until one comes, never twice within `interval`.
///
///     want ──▶ due at once, or `interval` after the last request ──poll──▶ due again later ──got──▶ quiet
struct KeyFrameAsker: Sendable {
  static let interval = TimeDelta.milliseconds(500)

  private var isWanted = false
  private var lastAsked: Instant?
  /// Requests made.
  private(set) var count: UInt64 = 0

  /// A key frame is needed from now on.
  mutating func want() { isWanted = true }

  /// A key frame came.
  mutating func got() { isWanted = false }

  /// When to ask; nil when nothing is wanted.
  var nextDeadline: Instant? {
    guard isWanted else { return nil }
    return lastAsked.map { $0 + Self.interval } ?? .zero
  }

  /// True when the request is to be sent now; it then counts as sent.
  mutating func poll(at now: Instant) -> Bool {
    guard let nextDeadline, nextDeadline <= now else { return false }
    lastAsked = now
    count += 1
    return true
  }
}

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
