import PalbeUnits

/// The clocks of a device, read together by the shell.
///
/// What must fall due across a restart is counted by all three (S0-85): within one boot the steady clock and the wall
/// clock, after a reboot the wall clock alone.
package struct ChatTime: Hashable, Sendable {
  /// For what others see, and what outlives the boot.
  package var wall: WallTime
  /// For timers, and for spans within one boot.
  package var instant: Instant
  /// A token that differs after a reboot; `instant` compares only between readings with the same one.
  package var boot: UInt64

  /// The three readings.
  package init(wall: WallTime, instant: Instant, boot: UInt64) {
    (self.wall, self.instant, self.boot) = (wall, instant, boot)
  }
}
