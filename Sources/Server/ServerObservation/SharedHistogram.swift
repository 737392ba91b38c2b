import Synchronization

/// How often something happened, by its size; any thread may add.
///
///     let latency = SharedHistogram(bounds: [0.01, 0.1, 1])
///     latency.observe(0.05)
///     text.family("request_seconds", .histogram, "How long.") { latency.write(into: &$0) }
public final class SharedHistogram: Sendable {
  /// Upper bounds, rising.
  public let bounds: [Double]
  private let state: Mutex<(counts: [UInt64], sum: Double)>

  /// Nothing happened yet.
  public init(bounds: [Double]) {
    self.bounds = bounds
    state = Mutex((Array(repeating: 0, count: bounds.count + 1), 0))
  }

  /// It happened once.
  public func observe(_ value: Double) {
    let place = bounds.firstIndex { value <= $0 } ?? bounds.count
    state.withLock {
      $0.counts[place] += 1
      $0.sum += value
    }
  }

  /// Its samples in a family.
  public func write(into text: inout Exposition, _ labels: [(String, String)] = []) {
    let (counts, sum) = state.withLock { $0 }
    text.samples(bounds: bounds, counts: counts, sum: sum, labels)
  }
}
