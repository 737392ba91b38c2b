import Foundation

/// Measures how clean a known tone is after a call, at 48 kHz.
///
/// Each window of 100 ms is fitted by a cos + b sin + c, least squares: what fits is signal, what is left
/// over is noise. No alignment is needed, and a jump of the phase between windows costs nothing; one inside a
/// window counts as noise.
package struct ToneMeter: Sendable {
  /// What was measured.
  package struct Result: Equatable, Sendable {
    /// Windows in which the tone was heard.
    package var toneWindows: Int
    /// Windows after the first with the tone that were below -60 dB of full scale.
    package var silentWindows: Int
    /// All signal energy over all noise energy of windows with sound, in dB: one bad window weighs much.
    package var meanSNR: Double
    /// The middle window's ratio, in dB.
    package var medianSNR: Double
    /// The tone's peak in dB below full scale.
    package var level: Double
  }

  private static let window = 4_800

  private let cosines: [Double]
  private let sines: [Double]
  private let inverse: [Double]
  private var pending: [Int16] = []
  private var ratios: [Double] = []
  private var signal = 0.0
  private var noise = 0.0
  private var silent = 0

  /// For a tone of `frequency` Hz, 40 to 20,000.
  package init(frequency: Double) {
    precondition((40...20_000).contains(frequency))
    let turn = 2 * Double.pi * frequency / 48_000
    cosines = (0..<Self.window).map { cos(turn * Double($0)) }
    sines = (0..<Self.window).map { sin(turn * Double($0)) }
    let ones = [Double](repeating: 1, count: Self.window)
    let basis = [cosines, sines, ones]
    var gram = [Double](repeating: 0, count: 9)
    for row in 0..<3 {
      for column in 0..<3 {
        gram[3 * row + column] = zip(basis[row], basis[column]).reduce(0) { $0 + $1.0 * $1.1 }
      }
    }
    inverse = Self.invert(gram)
  }

  /// The inverse of a 3x3 matrix by cofactors.
  private static func invert(_ m: [Double]) -> [Double] {
    func cofactor(_ row: Int, _ column: Int) -> Double {
      let (r1, r2) = ((row + 1) % 3, (row + 2) % 3)
      let (c1, c2) = ((column + 1) % 3, (column + 2) % 3)
      return m[3 * r1 + c1] * m[3 * r2 + c2] - m[3 * r1 + c2] * m[3 * r2 + c1]
    }
    let determinant = (0..<3).reduce(0) { $0 + m[$1] * cofactor(0, $1) }
    return (0..<9).map { cofactor($0 % 3, $0 / 3) / determinant }
  }

  /// Takes the next samples that were heard.
  package mutating func add(_ samples: [Int16]) {
    pending += samples
    var start = 0
    while pending.count - start >= Self.window {
      measure(pending[start..<start + Self.window])
      start += Self.window
    }
    pending.removeFirst(start)
  }

  private mutating func measure(_ samples: ArraySlice<Int16>) {
    var (c, s, one, energy) = (0.0, 0.0, 0.0, 0.0)
    for (offset, sample) in samples.enumerated() {
      let value = Double(sample)
      c += value * cosines[offset]
      s += value * sines[offset]
      one += value
      energy += value * value
    }
    let products = [c, s, one]
    let fit = (0..<3).map { row in (0..<3).reduce(0) { $0 + inverse[3 * row + $1] * products[$1] } }
    let count = Double(Self.window)
    let tone = (fit[0] * fit[0] + fit[1] * fit[1]) / 2 * count
    // What a fit leaves over is orthogonal to it.
    let rest = max(energy - zip(fit, products).reduce(0) { $0 + $1.0 * $1.1 }, 1e-9)
    if energy < count * 32.768 * 32.768 {
      if !ratios.isEmpty { silent += 1 }
    } else {
      signal += tone
      noise += rest
      ratios.append(10 * log10(max(tone, 1e-9) / rest))
    }
  }

  /// What was measured in whole windows so far; nil before the first with sound.
  package var result: Result? {
    guard !ratios.isEmpty else { return nil }
    let heard = Double(ratios.count * Self.window)
    return Result(
      toneWindows: ratios.filter { $0 > 0 }.count, silentWindows: silent, meanSNR: 10 * log10(signal / noise),
      medianSNR: ratios.sorted()[ratios.count / 2],
      level: 10 * log10(2 * signal / heard / (32_767 * 32_767)))
  }
}
