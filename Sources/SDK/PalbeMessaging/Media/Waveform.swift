import Foundation
import PalbeChatCore
import PalbeWire

/// The peaks of a voice message (S0-42).
///
/// Only sound that lies open can be looked at: WAV with PCM. What is in an M4A takes a decoder, which an app that only chats
/// does not carry (promise 3 of ARCHITECTURE.md); a line made up from its bytes would look like speech and be noise, so there
/// is none, and the app's recorder, which had the samples, passes `peaks`.
enum Waveform {
  /// Peaks in a message at most.
  static let limit = ContentLimits.waveformCount
  /// Peaks that are worked out here.
  static let count = 64

  /// From 0 to 255 each; more than the limit are folded, the loudest of neighbours counts.
  static func folded(_ peaks: [Int]) -> [UInt8] {
    fold(peaks.count, into: limit) { UInt8(clamping: peaks[$0]) }
  }

  /// Nil for sound that is not WAV.
  @concurrent static func peaks(of sound: Data) async -> [UInt8]? { peaks([UInt8](sound).span) }

  static func peaks(_ file: Span<UInt8>) -> [UInt8]? {
    guard let sound = try? Sound(file), sound.frameCount > 0 else { return nil }
    return fold(sound.frameCount, into: count) { sound.loudness($0, in: file) }
  }

  /// Fewer of them: each the greatest of a stretch.
  private static func fold(_ total: Int, into limit: Int, _ value: (Int) -> UInt8) -> [UInt8] {
    guard total > limit else { return (0..<total).map(value) }
    return (0..<limit).map { index in
      ((index * total / limit)..<((index + 1) * total / limit)).reduce(0) { max($0, value($1)) }
    }
  }

  /// Where a WAV file's samples are (Microsoft's RIFF).
  struct Sound {
    var start = 0
    var frameCount = 0
    var channels = 0
    var sampleByteCount = 0
    var isFloat = false

    init(_ file: Span<UInt8>) throws(WireError) {
      var reader = ByteReader(file)
      guard try reader.uint32() == 0x5249_4646 else { throw .invalid(field: "RIFF", value: 0) }
      try reader.skip(4)
      guard try reader.uint32() == 0x5741_5645 else { throw .invalid(field: "WAVE", value: 0) }
      while true {
        let kind = try reader.uint32()
        let length = Int(try reader.uint32().byteSwapped)
        switch kind {
        case 0x666d_7420:  // "fmt "
          var format = try reader.reader(length)
          var code = try format.uint16().byteSwapped
          channels = Int(try format.uint16().byteSwapped)
          try format.skip(10)
          let bits = Int(try format.uint16().byteSwapped)
          if code == 0xfffe {
            // Extensible: the code is at the head of an identifier.
            try format.skip(8)
            code = try format.uint16().byteSwapped
          }
          guard (1...16).contains(channels),
            code == 1 && [8, 16, 24, 32].contains(bits) || code == 3 && bits == 32
          else { throw .invalid(field: "format", value: UInt64(code)) }
          (sampleByteCount, isFloat) = (bits / 8, code == 3)
        case 0x6461_7461:  // "data"
          guard sampleByteCount > 0 else { throw .invalid(field: "data", value: 0) }
          start = reader.offset
          // A recorder that was stopped leaves a length that is not true.
          frameCount = min(length, reader.remaining) / (sampleByteCount * channels)
          return
        default: try reader.skip(length)
        }
        if length % 2 == 1, !reader.isAtEnd { try reader.skip(1) }
      }
    }

    /// The loudest channel of a frame, 0 to 255.
    func loudness(_ frame: Int, in file: Span<UInt8>) -> UInt8 {
      var loudest: UInt32 = 0
      for channel in 0..<channels {
        let place = start + (frame * channels + channel) * sampleByteCount
        var bits: UInt32 = 0
        for byte in 0..<sampleByteCount {
          bits |= UInt32(file[place + byte]) << UInt32(8 * (byte + 4 - sampleByteCount))
        }
        let value: UInt32
        if isFloat {
          let sample = Float(bitPattern: bits).magnitude
          value = sample.isNaN ? 0 : UInt32(min(1, sample) * 2_147_483_520)
        } else {
          // Eight bits have their middle at 128, all others at 0.
          let sample = Int32(bitPattern: sampleByteCount == 1 ? bits ^ 0x8000_0000 : bits)
          value = sample.magnitude
        }
        loudest = max(loudest, value)
      }
      return UInt8(min(255, loudest >> 23))
    }
  }
}
