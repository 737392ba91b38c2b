import PalbeUnits

/// Reports frames that cannot be opened when it begins, and once a second while it goes on.
struct FailureReport: Hashable, Sendable {
  static let interval = TimeDelta.seconds(1)

  /// Frames that could not be opened so far.
  private(set) var total: UInt64 = 0
  private var reported: UInt64 = 0
  private var lastReport: Instant?

  /// So many more frames failed.
  mutating func add(_ count: UInt64 = 1) { total += count }

  /// When there is something to report.
  var nextDeadline: Instant? {
    guard total > reported else { return nil }
    return lastReport.map { $0 + Self.interval } ?? .zero
  }

  /// The failures so far, when a report is due.
  mutating func poll(at now: Instant) -> UInt64? {
    guard let nextDeadline, nextDeadline <= now else { return nil }
    lastReport = now
    reported = total
    return total
  }
}
