/// Annex B byte streams: units behind start codes `00 00 01`, and the bytes that keep payloads from looking like one
/// (ITU-T H.264 §7.4.1.1 and Annex B; the same in H.265).
enum NALUnits {
  /// Where the first unit begins whose header's first byte fits; the start code lies in front.
  static func first(in bytes: Span<UInt8>, where fits: (UInt8) -> Bool) -> Int? {
    var zeros = 0
    for index in bytes.indices {
      let byte = bytes[index]
      if byte == 1, zeros >= 2, index + 1 < bytes.count, fits(bytes[index + 1]) { return index + 1 }
      zeros = byte == 0 ? zeros + 1 : 0
    }
    return nil
  }

  /// Bytes that escaping can add to `byteCount` bytes: one behind every two zeros.
  static func maximumEscapes(_ byteCount: Int) -> Int { byteCount / 2 }

  /// Writes `bytes` to `buffer` from `start` on, with a 3 behind two zeros wherever a byte up to 3 follows. Returns the end.
  ///
  /// The buffer has room for `maximumEscapes` more bytes.
  @_lifetime(buffer: copy buffer)
  static func escape(_ bytes: Span<UInt8>, into buffer: inout MutableSpan<UInt8>, at start: Int) -> Int {
    var end = start
    var zeros = 0
    for index in bytes.indices {
      let byte = bytes[index]
      if zeros >= 2, byte <= 3 {
        buffer[end] = 3
        end += 1
        zeros = 0
      }
      buffer[end] = byte
      end += 1
      zeros = byte == 0 ? zeros + 1 : 0
    }
    return end
  }

  /// Takes the added bytes of `buffer[range]` out, in place. Returns the new end.
  @_lifetime(buffer: copy buffer)
  static func unescape(_ buffer: inout MutableSpan<UInt8>, _ range: Range<Int>) -> Int {
    var end = range.lowerBound
    var zeros = 0
    for index in range {
      let byte = buffer[index]
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      buffer[end] = byte
      end += 1
      zeros = byte == 0 ? zeros + 1 : 0
    }
    return end
  }
}
