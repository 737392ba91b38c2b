public import PalbeUnits

/// What goes wrong again and again is logged when it begins, and then once a minute with how often it was.
///
///     if let count = failures.note(at: now) { log.write(.warning, "pushes failed", [("count", "\(count)")]) }
public struct Recurrence: Sendable {
  /// The shortest time between two lines.
  public static let interval = TimeDelta.seconds(60)

  private var loggedAt: Instant?
  private var count: UInt64 = 0

  /// It has not happened yet.
  public init() {}

  /// Notes that it happened. Not nil when that is to be logged: how often since the last line, this time included.
  public mutating func note(_ times: UInt64 = 1, at now: Instant) -> UInt64? {
    count += times
    if let loggedAt, now - loggedAt < Self.interval { return nil }
    defer { count = 0 }
    loggedAt = now
    return count
  }
}
