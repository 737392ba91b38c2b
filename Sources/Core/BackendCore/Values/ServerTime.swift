public import PalbeUnits

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
