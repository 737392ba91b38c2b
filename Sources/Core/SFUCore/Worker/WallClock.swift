import PalbeUnits

/// The time of day, told from the monotonic clock and one reading at the start.
struct WallClock: Sendable {
  let origin: Instant
  private let unixTimeAtOrigin: Instant

  init(origin: Instant, unixNanoseconds: Int64) {
    self.origin = origin
    unixTimeAtOrigin = Instant(nanoseconds: unixNanoseconds)
  }

  func unixNanoseconds(at now: Instant) -> Int64 { (unixTimeAtOrigin + (now - origin)).nanoseconds }

  func unixMilliseconds(at now: Instant) -> Int64 { unixNanoseconds(at: now) / 1_000_000 }
}
