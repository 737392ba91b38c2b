/// Finds by how much a heard signal lags what was played.
package enum Alignment {
  /// Where a heard signal lies in the played one.
  package struct Match: Equatable, Sendable {
    /// Samples by which the heard signal lags; negative when it leads.
    package var lag: Int
    /// -1 to 1, near 1 when the waveform survived.
    package var correlation: Double
  }

  private static let coarseStep = 8

  /// The lag up to `maximumLag` samples either way at which the normalised cross-correlation is greatest.
  ///
  /// Searched first on both signals averaged over 8 samples, then around the best on the samples themselves.
  /// Nil when either signal is silent or too short to overlap.
  package static func find(_ heard: [Int16], in played: [Int16], maximumLag: Int) -> Match? {
    let coarse = best(
      average(heard), average(played), lags: -maximumLag / coarseStep...maximumLag / coarseStep)
    guard let coarse else { return nil }
    let centre = coarse.lag * coarseStep
    return best(
      heard.map(Float.init), played.map(Float.init), lags: centre - coarseStep...centre + coarseStep)
  }

  private static func average(_ samples: [Int16]) -> [Float] {
    (0..<samples.count / coarseStep).map { block in
      Float(samples[block * coarseStep..<(block + 1) * coarseStep].reduce(0) { $0 + Int($1) })
    }
  }

  private static func best(_ heard: [Float], _ played: [Float], lags: ClosedRange<Int>) -> Match? {
    var result: Match?
    for lag in lags {
      // heard[i + lag] belongs to played[i].
      let range = max(0, -lag)..<max(max(0, -lag), min(played.count, heard.count - lag))
      guard range.count >= min(played.count, heard.count) / 4, !range.isEmpty else { continue }
      var (product, first, second): (Float, Float, Float) = (0, 0, 0)
      for index in range {
        product += played[index] * heard[index + lag]
        first += played[index] * played[index]
        second += heard[index + lag] * heard[index + lag]
      }
      guard first > 0, second > 0 else { continue }
      let correlation = Double(product) / (Double(first) * Double(second)).squareRoot()
      if correlation > result?.correlation ?? -2 { result = Match(lag: lag, correlation: correlation) }
    }
    return result
  }
}
