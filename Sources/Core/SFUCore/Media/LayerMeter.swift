import PalbeCongestion
import PalbeUnits

/// What each temporal layer of a source takes, over a few seconds.
struct LayerMeter {
  private static let window = TimeDelta.milliseconds(500)
  /// After a pause what was before says nothing.
  private static let longestWindow = TimeDelta.seconds(3)

  private var bytes = InlineArray<4, Int>(repeating: 0)
  private var rates = InlineArray<4, Double>(repeating: 0)
  private var start: Instant?
  /// Windows measured.
  private var count = 0

  /// Takes note of a packet of a layer, 0 to 3.
  mutating func note(byteCount: Int, layer: UInt8, at now: Instant) {
    if start == nil { start = now }
    bytes[Int(layer & 3)] += byteCount
  }

  /// The rate of a layer and all below, and zero before it is known or for a layer that does not exist.
  func rate(_ layer: Int) -> DataRate {
    guard count > 0, rates[layer] > 0 else { return .zero }
    var sum = 0.0
    for index in 0...layer { sum += rates[index] }
    return DataRate(bitsPerSecond: Int64(sum))
  }

  /// Ends a window that is over.
  mutating func update(at now: Instant) {
    guard let start, now - start >= Self.window else { return }
    let elapsed = now - start
    // The first windows count fully: a source begins with little.
    let weight = count < 4 || elapsed > Self.longestWindow ? 1 / Double(min(count, 2) + 1) : 0.25
    for layer in 0..<4 {
      let rate = Double(bytes[layer] * 8) / elapsed.inSeconds
      let smoothed = rates[layer] + weight * (rate - rates[layer])
      // What has not come for long is gone, not small.
      rates[layer] = bytes[layer] == 0 && smoothed < 1_000 ? 0 : smoothed
      bytes[layer] = 0
    }
    self.start = now
    count += 1
  }
}
