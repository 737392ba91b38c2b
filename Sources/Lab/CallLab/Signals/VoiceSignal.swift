import Foundation
import PalbeCall

/// A voice-like signal at 48 kHz: harmonics of 120 Hz under the formants of two vowels in turn, four
/// syllables a second, and after six syllables a pause of half a second.
package struct VoiceSignal: AudioSource {
  /// Samples in one period of 120 Hz.
  private static let period = 400
  /// Samples in a syllable, a quarter of a second.
  private static let syllable = 12_000
  private static let syllablesInPhrase = 8
  private static let voicedSyllables = 6

  // One period of each vowel, and one syllable's loudness.
  private let vowels: [[Float]]
  private let envelope: [Float]
  private var index = 0

  /// `level` is the loudest sample in dB below full scale.
  package init(level: Double = -9) {
    let peak = Float(32_767 * pow(10, level / 20))
    vowels = [[700, 1_220, 2_600], [300, 2_200, 3_000]].map { Self.vowel(formants: $0, peak: peak) }
    envelope = (0..<Self.syllable).map { sample in
      // Sound for four fifths of the syllable.
      let phase = Double(sample) / (0.8 * Double(Self.syllable))
      return phase >= 1 ? 0 : Float(sin(.pi * phase) * sin(.pi * phase))
    }
  }

  private static func vowel(formants: [Double], peak: Float) -> [Float] {
    let waves = (0..<period).map { sample in
      (1...30).map { harmonic -> Double in
        let frequency = Double(harmonic) * 120
        let resonance = formants.map { formant in
          let distance = (frequency - formant) / 150
          return 1 / (1 + distance * distance)
        }
        let strength = (0.05 + resonance.reduce(0, +)) / Double(harmonic).squareRoot()
        // Phases that do not line up, or all energy would fall into one pulse.
        return strength
          * sin(2 * .pi * Double(harmonic * sample) / Double(period) + Double(harmonic * harmonic))
      }.reduce(0, +)
    }
    let loudest = waves.map { abs($0) }.max() ?? 1
    return waves.map { Float($0 / loudest) * peak }
  }

  package mutating func next(into frame: inout [Int16]) {
    for offset in frame.indices {
      let number = index / Self.syllable % Self.syllablesInPhrase
      if number < Self.voicedSyllables {
        let wave = vowels[number % 2][index % Self.period]
        frame[offset] = Int16(wave * envelope[index % Self.syllable])
      } else {
        frame[offset] = 0
      }
      index += 1
    }
  }
}
