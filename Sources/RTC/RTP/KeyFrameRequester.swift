import PalbeUnits

/// When to ask a sender for a key frame, however many want one.
///
///     idle ── want ──▶ wanted, asks at once ── every `interval` ──▶ asks again …
///       ▲                    │
///       └── a key frame came ┘
///
/// Two requests are never closer than `interval` together.
public struct KeyFrameRequester: Sendable {
  /// The least time between two requests.
  public let interval: TimeDelta
  /// Requests made.
  public private(set) var count: UInt64 = 0
  private var isWanted = false
  private var lastAskedAt: Instant?

  /// Nothing is wanted yet.
  public init(interval: TimeDelta) { self.interval = interval }

  /// A key frame is needed from now on.
  public mutating func want() { isWanted = true }

  /// One came, or nobody wants one any more.
  public mutating func rest() { isWanted = false }

  /// When `poll` asks, in the past when it would have before; nil when nothing is wanted.
  public var nextDeadline: Instant? {
    guard isWanted else { return nil }
    return lastAskedAt.map { $0 + interval } ?? .zero
  }

  /// True when a request is to be sent now; it then counts as sent.
  public mutating func poll(at now: Instant) -> Bool {
    guard let nextDeadline, nextDeadline <= now else { return false }
    lastAskedAt = now
    count += 1
    return true
  }
}
