import PalbeUnits

/// The lowest value of the last while: minima of equal spans of time in a ring.
struct WindowedMinimum: Sendable {
  private var minima: [Double]
  private let span: Int64
  /// The span that `newest` lies in, counted from the clock's origin.
  private var newest: Int64 = 0
  private var isEmpty = true

  /// - Parameters:
  ///   - spans: how many spans are kept.
  ///   - span: the length of one.
  init(spans: Int, of span: TimeDelta) {
    minima = [Double](repeating: .infinity, count: spans)
    self.span = span.nanoseconds
  }

  /// Takes a value in. One from before the window is ignored.
  mutating func add(_ value: Double, at now: Instant) {
    let number = now.nanoseconds / span
    let count = Int64(minima.count)
    if isEmpty || number - newest >= count {
      for index in minima.indices { minima[index] = .infinity }
      newest = number
      isEmpty = false
    }
    while newest < number {
      newest += 1
      minima[slot(newest)] = .infinity
    }
    guard newest - number < count else { return }
    let slot = slot(number)
    minima[slot] = min(minima[slot], value)
  }

  /// The lowest value; nil when there is none.
  var value: Double? {
    guard !isEmpty else { return nil }
    var lowest = Double.infinity
    for index in minima.indices { lowest = min(lowest, minima[index]) }
    return lowest.isFinite ? lowest : nil
  }

  /// Forgets everything.
  mutating func reset() { isEmpty = true }

  private func slot(_ number: Int64) -> Int {
    let count = Int64(minima.count)
    let rest = number % count
    return Int(rest < 0 ? rest + count : rest)
  }
}
