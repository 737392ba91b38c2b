import PalbeUnits

extension TimeDelta {
  /// Days of 24 hours.
  static func days(_ count: Int) -> TimeDelta { .seconds(count * 86_400) }
}
