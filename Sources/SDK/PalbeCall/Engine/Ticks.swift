import PalbeUnits

/// Deadlines at a fixed rate, each computed from the first: they never drift.
struct Ticks {
  private let start: Instant
  private let perSecond: Int64
  /// The next tick, from 0 up.
  private(set) var index = 0

  /// The first tick is at `start`.
  init(from start: Instant, perSecond: Int) {
    self.start = start
    self.perSecond = Int64(perSecond)
  }

  /// When the next tick is due.
  var deadline: Instant { instant(of: index) }

  private func instant(of index: Int) -> Instant {
    // Whole seconds apart, so that days of nanoseconds do not overflow.
    let (seconds, rest) = Int64(index).quotientAndRemainder(dividingBy: perSecond)
    return start + TimeDelta(nanoseconds: seconds * 1_000_000_000 + rest * 1_000_000_000 / perSecond)
  }

  /// Takes the next tick.
  mutating func advance() { index += 1 }

  /// Leaves out ticks so that the next one is the latest that is due, when more than `limit` of them are.
  /// - Returns: how many were left out.
  @discardableResult
  mutating func skip(at now: Instant, ifBehindBy limit: Int) -> Int {
    let (seconds, rest) = max(0, (now - start).nanoseconds).quotientAndRemainder(dividingBy: 1_000_000_000)
    let latest = Int(seconds * perSecond + rest * perSecond / 1_000_000_000)
    guard latest - index > limit else { return 0 }
    defer { index = latest }
    return latest - index
  }
}
