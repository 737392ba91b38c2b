/// The wall clock, in microseconds since 1970. It may jump; what must not jump with it counts in `Instant`.
public struct WallTime: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// Microseconds since 1970-01-01T00:00Z.
  public var microseconds: Int64
  /// A time.
  public init(microseconds: Int64) { self.microseconds = microseconds }

  /// Whole seconds since 1970.
  public var seconds: Int64 { microseconds / 1_000_000 }

  public static func < (left: WallTime, right: WallTime) -> Bool { left.microseconds < right.microseconds }
  /// Saturates.
  public static func + (time: WallTime, delta: TimeDelta) -> WallTime {
    let (sum, overflow) = time.microseconds.addingReportingOverflow(delta.wholeMicroseconds)
    return overflow ? WallTime(microseconds: delta > .zero ? .max : .min) : WallTime(microseconds: sum)
  }
  /// Saturates.
  public static func - (later: WallTime, earlier: WallTime) -> TimeDelta {
    let (difference, isTooFar) = later.microseconds.subtractingReportingOverflow(earlier.microseconds)
    let (nanoseconds, isTooLong) = difference.multipliedReportingOverflow(by: 1_000)
    guard !isTooFar, !isTooLong else { return TimeDelta(nanoseconds: later > earlier ? .max : .min) }
    return TimeDelta(nanoseconds: nanoseconds)
  }
  /// Saturates.
  public static func - (time: WallTime, delta: TimeDelta) -> WallTime { time + -delta }
}
