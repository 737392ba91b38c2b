import PalbeUnits

/// A clock that moves when a test says so.
public struct VirtualClock: Sendable {
  public private(set) var now: Instant

  public init(startingAt now: Instant = Instant(nanoseconds: 1_000_000_000)) { self.now = now }

  public mutating func advance(by delta: TimeDelta) { now += delta }
  /// Moves to `instant`; never backwards.
  public mutating func advance(to instant: Instant) { now = max(now, instant) }
}
