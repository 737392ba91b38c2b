import PalbeRTP
import PalbeUnits

/// Whether somebody speaks, by the levels in the headers of an audio track's packets (RFC 6464): the sound itself may be
/// encrypted end to end.
///
///     packets ──▶ window of 400 ms ──▶ active when 40 % of it were at -35 dBov or louder ──▶ smoothed level
struct SpeechDetector {
  static let window = TimeDelta.milliseconds(400)
  /// Levels this far below full scale, or closer to it, count as sound.
  private static let threshold: UInt8 = 35
  /// Packets of 20 ms in 40 % of a window.
  private static let activePackets = 8
  /// Steps between silence and full scale, so that not every breath is told to everyone.
  private static let steps: Float = 8

  /// 0 to 1, linear, in steps; 0 while nobody speaks.
  private(set) var level: Float = 0
  private var loudPackets = 0
  private var sum: Float = 0
  private var smoothed: Float = 0

  var isActive: Bool { level > 0 }

  mutating func note(_ audioLevel: AudioLevel) {
    guard audioLevel.level <= Self.threshold else { return }
    loudPackets += 1
    sum += Self.amplitudes[Int(audioLevel.level)]
  }

  /// The end of a window. True when others should be told.
  mutating func endWindow() -> Bool {
    let isSpeech = loudPackets >= Self.activePackets
    let loudness = isSpeech ? sum / Float(loudPackets) : 0
    loudPackets = 0
    sum = 0
    // Half of the new window, so that a cough is no speaker for long; silence counts at once.
    smoothed = isSpeech ? (smoothed == 0 ? loudness : (smoothed + loudness) / 2) : 0
    let before = level
    // Up to the next step.
    level = isSpeech ? min(1, Float(Int(smoothed * Self.steps) + 1) / Self.steps) : 0
    return level != before
  }

  /// 10 to the power of -n / 20.
  private static let amplitudes: [Float] = {
    var values: [Float] = [1]
    for _ in 0..<127 { values.append(values[values.count - 1] * 0.891_250_94) }
    return values
  }()
}
