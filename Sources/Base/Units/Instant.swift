/// A point on a monotonic clock, in nanoseconds since an origin the shell chose.
///
/// Cores never read a clock: the shell passes an `Instant` in, a test passes a virtual one.
public struct Instant: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// Nanoseconds since the clock's origin.
  public var nanoseconds: Int64

  @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// The clock's origin.
  public static let zero = Instant(nanoseconds: 0)

  /// Later than every instant a clock can reach.
  public static let distantFuture = Instant(nanoseconds: .max)

  @inlinable public static func < (left: Instant, right: Instant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  /// Saturates instead of overflowing, so that `.distantFuture + delta` stays the far future.
  @inlinable public static func + (instant: Instant, delta: TimeDelta) -> Instant {
    let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(delta.nanoseconds)
    return overflow ? Instant(nanoseconds: delta.nanoseconds > 0 ? .max : .min) : Instant(nanoseconds: sum)
  }

  @inlinable public static func - (instant: Instant, delta: TimeDelta) -> Instant {
    let (sum, overflow) = instant.nanoseconds.subtractingReportingOverflow(delta.nanoseconds)
    return overflow ? Instant(nanoseconds: delta.nanoseconds > 0 ? .min : .max) : Instant(nanoseconds: sum)
  }

  @inlinable public static func - (later: Instant, earlier: Instant) -> TimeDelta {
    let (difference, overflow) = later.nanoseconds.subtractingReportingOverflow(earlier.nanoseconds)
    return overflow
      ? TimeDelta(nanoseconds: later > earlier ? .max : .min) : TimeDelta(nanoseconds: difference)
  }

  @inlinable public static func += (instant: inout Instant, delta: TimeDelta) { instant = instant + delta }
}

/// A signed span of time, in nanoseconds.
public struct TimeDelta: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// The span in nanoseconds; negative when it points backwards.
  public var nanoseconds: Int64

  @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// No time at all.
  public static let zero = TimeDelta(nanoseconds: 0)

  /// A span of whole nanoseconds.
  @inlinable public static func nanoseconds(_ value: Int) -> TimeDelta {
    TimeDelta(nanoseconds: Int64(value))
  }
  /// A span of whole microseconds.
  @inlinable public static func microseconds(_ value: Int) -> TimeDelta {
    TimeDelta(nanoseconds: Int64(value) * 1_000)
  }
  /// A span of whole milliseconds.
  @inlinable public static func milliseconds(_ value: Int) -> TimeDelta {
    TimeDelta(nanoseconds: Int64(value) * 1_000_000)
  }
  /// A span of whole seconds.
  @inlinable public static func seconds(_ value: Int) -> TimeDelta {
    TimeDelta(nanoseconds: Int64(value) * 1_000_000_000)
  }
  /// Days of 24 hours.
  @inlinable public static func days(_ value: Int) -> TimeDelta { .seconds(value * 86_400) }
  /// A reading of a clock as systems give it; saturates, as a clock that was set to a year after 2262 has to.
  @inlinable public static func reading(seconds: Int, nanoseconds: Int) -> TimeDelta {
    let (whole, isTooLong) = Int64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, isTooLate) = whole.addingReportingOverflow(Int64(nanoseconds))
    return TimeDelta(nanoseconds: isTooLong || isTooLate ? (seconds < 0 ? .min : .max) : sum)
  }
  /// Rounds to the nearest nanosecond; `value` in seconds, below 292 years.
  @inlinable public static func seconds(_ value: Double) -> TimeDelta {
    TimeDelta(nanoseconds: Int64(value * 1_000_000_000 + (value < 0 ? -0.5 : 0.5)))
  }

  /// Whole microseconds, rounded towards zero.
  @inlinable public var wholeMicroseconds: Int64 { nanoseconds / 1_000 }
  /// Whole milliseconds, rounded towards zero.
  @inlinable public var wholeMilliseconds: Int64 { nanoseconds / 1_000_000 }
  /// The span as a fraction, for reports.
  @inlinable public var inMilliseconds: Double { Double(nanoseconds) / 1_000_000 }
  /// The span as a fraction, for reports.
  @inlinable public var inSeconds: Double { Double(nanoseconds) / 1_000_000_000 }

  @inlinable public static func < (left: TimeDelta, right: TimeDelta) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
  @inlinable public static func + (left: TimeDelta, right: TimeDelta) -> TimeDelta {
    TimeDelta(nanoseconds: left.nanoseconds + right.nanoseconds)
  }
  @inlinable public static func - (left: TimeDelta, right: TimeDelta) -> TimeDelta {
    TimeDelta(nanoseconds: left.nanoseconds - right.nanoseconds)
  }
  @inlinable public static func * (delta: TimeDelta, factor: Int) -> TimeDelta {
    TimeDelta(nanoseconds: delta.nanoseconds * Int64(factor))
  }
  @inlinable public static func / (delta: TimeDelta, divisor: Int) -> TimeDelta {
    TimeDelta(nanoseconds: delta.nanoseconds / Int64(divisor))
  }
  @inlinable public static prefix func - (delta: TimeDelta) -> TimeDelta {
    TimeDelta(nanoseconds: -delta.nanoseconds)
  }
}

/// The wall clock as NTP writes it: seconds since 1900 in 32.32 fixed point (RFC 3550 §4).
public struct NTPTime: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// Seconds in the upper 32 bits, their fraction in the lower 32.
  public var rawValue: UInt64

  @inlinable public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// From nanoseconds since 1970; what is before then is 1970.
  @inlinable public init(unixNanoseconds: Int64) {
    let (whole, part) = UInt64(max(0, unixNanoseconds)).quotientAndRemainder(dividingBy: 1_000_000_000)
    let seconds = whole + 2_208_988_800
    let fraction = part << 32 / 1_000_000_000
    self.rawValue = seconds << 32 | fraction
  }

  /// The middle 32 bits: 16 bits of seconds, 16 of fraction (the LSR field of a report block).
  @inlinable public var middle: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

  @inlinable public static func < (left: NTPTime, right: NTPTime) -> Bool { left.rawValue < right.rawValue }
}
