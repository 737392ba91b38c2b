public import PalbeUnits

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
  public static func - (time: WallTime, delta: TimeDelta) -> WallTime { time + -delta }
}

/// Both clocks, read together by the shell.
public struct ServerTime: Hashable, Sendable {
  /// For what others see, and what outlives the process.
  public var wall: WallTime
  /// For leases and timers.
  public var instant: Instant
  /// Both readings.
  public init(wall: WallTime, instant: Instant) {
    self.wall = wall
    self.instant = instant
  }

  /// A time by which things expire: the wall clock, held back while it runs ahead of the steady one, so that nothing is
  /// dropped because somebody set the clock.
  /// - Parameter start: both clocks when the process began.
  public func expiryTime(since start: ServerTime) -> WallTime {
    min(wall, start.wall + (instant - start.instant))
  }
}
