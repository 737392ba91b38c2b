import Foundation

/// Levels of sound in dB below full scale.
package enum Loudness {
  /// The root mean square of the samples; -infinity for silence or nothing.
  package static func rms(_ samples: [Int16]) -> Double {
    guard !samples.isEmpty else { return -.infinity }
    let energy = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
    return 10 * log10(energy / Double(samples.count) / (32_767 * 32_767))
  }

  /// The loudest sample; -infinity for silence or nothing.
  package static func peak(_ samples: [Int16]) -> Double {
    let loudest = samples.reduce(0) { max($0, abs(Int($1))) }
    return 20 * log10(Double(loudest) / 32_767)
  }
}
