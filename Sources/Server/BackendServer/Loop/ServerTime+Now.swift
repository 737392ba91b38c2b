import PalbeBackendCore
import PalbeEventLoop
import PalbeUnits

extension ServerTime {
  /// Both clocks.
  static var now: ServerTime {
    ServerTime(
      wall: WallTime(microseconds: WallClock.unixNanoseconds() / 1_000), instant: MonotonicClock.now())
  }
}
