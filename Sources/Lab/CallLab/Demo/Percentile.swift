/// Order statistics of what was measured.
enum Percentile {
  /// The smallest value that at least `percent` per cent of all values do not exceed (nearest rank); nil for none.
  static func of<Value: Comparable>(_ values: [Value], percent: Double) -> Value? {
    guard !values.isEmpty else { return nil }
    let rank = (Double(values.count) * min(max(percent, 0), 100) / 100).rounded(.up)
    return values.sorted()[min(max(Int(rank), 1), values.count) - 1]
  }

  /// The middle value, the lower of two.
  static func median<Value: Comparable>(_ values: [Value]) -> Value? { of(values, percent: 50) }

  /// The mean; nil for none.
  static func mean(_ values: [Double]) -> Double? {
    values.isEmpty ? nil : values.reduce(0, +) / Double(values.count)
  }
}
