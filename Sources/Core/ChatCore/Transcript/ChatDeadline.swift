import PalbeUnits
import PalbeWire

/// When something falls due, by all three clocks (S0-85).
///
/// Within the boot it was set in, whichever of the two clocks gets there first decides: a wall clock that was
/// set back holds nothing up, nor does a steady clock that slept. After a reboot only the wall clock is left.
package struct ChatDeadline: Hashable, Sendable {
  /// Due by the wall clock.
  package var wall: WallTime
  /// Due by the steady clock, within `boot`.
  package var instant: Instant
  /// The boot that `instant` is of.
  package var boot: UInt64

  /// `delta` from now.
  init(_ delta: TimeDelta, after now: ChatTime) {
    wall = now.wall + delta
    instant = now.instant + delta
    boot = now.boot
  }

  init(wall: WallTime, instant: Instant, boot: UInt64) {
    (self.wall, self.instant, self.boot) = (wall, instant, boot)
  }

  /// True from the moment on.
  package func isDue(at now: ChatTime) -> Bool {
    now.wall >= wall || (now.boot == boot && now.instant >= instant)
  }

  /// When the shell's steady clock should wake us for it.
  package func wake(at now: ChatTime) -> Instant {
    // Saturates: the wall clock may stand anywhere.
    let left = Self.span(from: now.wall, to: wall)
    let (nanoseconds, overflow) = left.multipliedReportingOverflow(by: 1_000)
    let byWall = overflow ? .distantFuture : now.instant + TimeDelta(nanoseconds: nanoseconds)
    return now.boot == boot ? min(byWall, max(instant, now.instant)) : byWall
  }
}

extension ChatDeadline {
  init(from reader: inout ByteReader) throws(WireError) {
    wall = WallTime(microseconds: try reader.int64())
    instant = Instant(nanoseconds: try reader.int64())
    boot = try reader.uint64()
  }

  func encode(into writer: inout ByteWriter) {
    writer.int64(wall.microseconds)
    writer.int64(instant.nanoseconds)
    writer.uint64(boot)
  }

  /// The deadline of a message whose time began at `sentAt` by the sender's clock.
  ///
  /// The sender's clock is believed up to five minutes before the server took the message (2.9l). What has
  /// passed since is told by this device's clock, and is at least what passed before the server.
  static func sent(
    _ expiry: Expiry, sentAt: WallTime, serverAt: WallTime, receivedAt: ChatTime
  ) -> ChatDeadline {
    let start = min(max(sentAt, serverAt - TimeDelta.seconds(300)), serverAt)
    let age = max(span(from: start, to: receivedAt.wall), span(from: start, to: serverAt))
    let left = max(0, Int64(expiry.seconds) * 1_000_000 - age)
    return ChatDeadline(TimeDelta(nanoseconds: left * 1_000), after: receivedAt)
  }

  /// The deadline of a message that is read now.
  static func read(_ expiry: Expiry, at now: ChatTime) -> ChatDeadline {
    ChatDeadline(TimeDelta.seconds(Int(expiry.seconds)), after: now)
  }

  /// Microseconds, 0 at least; saturates.
  private static func span(from start: WallTime, to end: WallTime) -> Int64 {
    let (span, overflow) = end.microseconds.subtractingReportingOverflow(start.microseconds)
    return overflow ? (end > start ? .max : 0) : max(0, span)
  }
}
