import Glibc

/// Brings one channel to 48 kHz by a windowed-sinc filter in polyphase form.
///
/// Output sample n lies between two input samples; it is the sum of the 32 input samples around it, weighted
/// by a sinc under a Blackman window for the phase that n has. Rates below 48 kHz only, so the filter never
/// has to cut a band away.
public struct Resampler: Sendable {
  /// Input rates in Hz that `init` takes.
  public static let supportedRates = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]

  private static let taps = 32
  // 48,000 / rate = phases / step in lowest terms.
  private let phases: Int
  private let step: Int
  // `taps` weights for each phase.
  private let weights: [Float]
  // Input samples that later output needs, oldest first.
  private var history: [Float]
  // Position of the next output in the history, in 1/phases of an input sample.
  private var position = 0

  /// Nil unless `rate` is one of `supportedRates`.
  public init?(from rate: Int) {
    guard Self.supportedRates.contains(rate) else { return nil }
    var (a, b) = (48_000, rate)
    while b != 0 { (a, b) = (b, a % b) }
    phases = 48_000 / a
    step = rate / a
    var weights = [Float]()
    weights.reserveCapacity(phases * Self.taps)
    let half = Double(Self.taps / 2)
    for phase in 0..<phases {
      let fraction = Double(phase) / Double(phases)
      let row = (0..<Self.taps).map { tap -> Double in
        let distance = Double(tap) - (half - 1) - fraction
        let window = 0.42 + 0.5 * cos(.pi * distance / half) + 0.08 * cos(2 * .pi * distance / half)
        let sinc = distance == 0 ? 1 : sin(.pi * distance) / (.pi * distance)
        return abs(distance) >= half ? 0 : sinc * window
      }
      // Each phase passes a constant unchanged.
      let sum = row.reduce(0, +)
      weights += row.map { Float($0 / sum) }
    }
    self.weights = weights
    // Half a filter of silence before the first sample, so that output 0 lies on input 0.
    history = [Float](repeating: 0, count: Self.taps / 2 - 1)
  }

  /// Takes more input and appends all output that it allows: 48,000 / rate samples for each, delayed by half
  /// a filter.
  public mutating func resample(_ input: [Int16], into output: inout [Int16]) {
    if phases == 1 {
      output += input
      return
    }
    for sample in input { history.append(Float(sample)) }
    while position / phases + Self.taps <= history.count {
      let first = position / phases
      let row = position % phases * Self.taps
      var sum: Float = 0
      for tap in 0..<Self.taps { sum += history[first + tap] * weights[row + tap] }
      output.append(Int16(max(-32_768, min(32_767, sum + (sum < 0 ? -0.5 : 0.5)))))
      position += step
    }
    let done = min(position / phases, history.count)
    history.removeFirst(done)
    position -= done * phases
  }
}
