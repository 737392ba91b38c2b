import PalbeUnits

/// When to ask a publisher for a key frame, however many subscribers want one.
///
///     idle ── want ──▶ wanted, asks at once ── every `interval` ──▶ asks again …
///       ▲                    │
///       └── a key frame came ┘
///
/// Two requests are never closer than `interval` together.
struct KeyFrameRequester {
  let interval: TimeDelta
  private(set) var isWanted = false
  private var lastAskedAt: Instant?

  init(interval: TimeDelta) { self.interval = interval }

  mutating func want() { isWanted = true }

  mutating func keyFrameArrived() { isWanted = false }

  /// Nobody wants one any more.
  mutating func cancel() { isWanted = false }

  /// When `poll` asks; in the past when it would have before.
  var nextDeadline: Instant? {
    guard isWanted else { return nil }
    return lastAskedAt.map { $0 + interval } ?? .zero
  }

  /// True when a request is to be sent now.
  mutating func poll(at now: Instant) -> Bool {
    guard let nextDeadline, nextDeadline <= now else { return false }
    lastAskedAt = now
    return true
  }
}
