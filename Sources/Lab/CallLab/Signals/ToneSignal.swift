import Foundation
import PalbeCall

/// A sine at 48 kHz whose phase never jumps.
package struct ToneSignal: AudioSource {
  /// In Hz.
  package let frequency: Double
  private let amplitude: Double
  private var index = 0

  /// - Parameters:
  ///   - frequency: in Hz, below 24,000.
  ///   - level: dB below full scale of the peak; -12 unless told otherwise.
  package init(frequency: Double, level: Double = -12) {
    self.frequency = frequency
    amplitude = 32_767 * pow(10, level / 20)
  }

  package mutating func next(into frame: inout [Int16]) {
    for offset in frame.indices {
      // The phase as a fraction of a turn keeps its precision for hours.
      let turns = (Double(index) * frequency / 48_000).truncatingRemainder(dividingBy: 1)
      frame[offset] = Int16((amplitude * sin(2 * .pi * turns)).rounded())
      index += 1
    }
  }
}
