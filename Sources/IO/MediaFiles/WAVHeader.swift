import PalbeWire

/// What a WAV file's header says: RIFF/WAVE with 16-bit PCM samples.
public struct WAVHeader: Equatable, Sendable {
  /// 1 or 2; two channels are interleaved.
  public var channels: Int
  /// Samples a second and channel, 1,000 to 192,000.
  public var sampleRate: Int
  /// Where the samples are in the file, in bytes; a whole number of sample frames.
  public var data: Range<Int>

  /// Sample frames (one sample a channel) in the file.
  public var frameCount: Int { data.count / (2 * channels) }

  /// Bytes of a file's start that hold everything before the samples in files we read.
  public static let maximumByteCount = 65_536

  /// Walks the chunks at the start of a file up to its samples.
  ///
  /// - Parameters:
  ///   - start: the file's first `maximumByteCount` bytes, or all of it when it is shorter.
  ///   - fileByteCount: bytes in the whole file. The data chunk must be inside it; a length of 0 or
  ///     0xffffffff, as programs write that could not seek back, means up to the end.
  public static func parse(
    _ start: Span<UInt8>, fileByteCount: Int
  ) throws(MediaFileError.Problem) -> WAVHeader {
    let kind = "a WAV file (RIFF/WAVE)"
    guard start.count >= 12, tag(start, 0) == "RIFF", tag(start, 8) == "WAVE" else {
      throw .notRecognised(expected: kind)
    }
    var header: WAVHeader?
    var offset = 12
    while offset + 8 <= start.count {
      let name = tag(start, offset)
      let length = Int(little32(start, offset + 4))
      let body = offset + 8
      if name == "fmt " {
        header = try parseFormat(start, body: body, length: length)
      } else if name == "data" {
        guard var header else {
          throw .malformed(what: "the first chunk", found: "\"data\"", expected: "\"fmt \" before it")
        }
        let available = max(0, fileByteCount - body)
        let toTheEnd = length == 0 || length == 0xffff_ffff
        guard toTheEnd || length <= available else {
          throw .truncated(what: "the sample data", expected: length, found: available)
        }
        let bytes = toTheEnd ? available : length
        let frame = 2 * header.channels
        guard bytes >= frame else { throw .empty(what: "samples") }
        header.data = body..<body + bytes / frame * frame
        return header
      }
      // A chunk of odd length is followed by a padding byte.
      offset = body + length + length & 1
    }
    if header == nil {
      throw .malformed(what: "the header", found: "without a \"fmt \" chunk", expected: "one")
    }
    throw .malformed(
      what: "the header", found: "without a \"data\" chunk", expected: "one in its first 64 KiB")
  }

  private static func parseFormat(
    _ bytes: Span<UInt8>, body: Int, length: Int
  ) throws(MediaFileError.Problem) -> WAVHeader {
    guard length >= 16, body + 16 <= bytes.count else {
      throw .truncated(what: "the \"fmt \" chunk", expected: 16, found: min(length, bytes.count - body))
    }
    var format = little16(bytes, body)
    if format == 0xfffe {
      // WAVE_FORMAT_EXTENSIBLE: the format is the first field of the sub-format's GUID.
      guard length >= 40, body + 40 <= bytes.count else {
        throw .truncated(what: "the \"fmt \" chunk", expected: 40, found: min(length, bytes.count - body))
      }
      format = little16(bytes, body + 24)
    }
    let bits = little16(bytes, body + 14)
    guard format == 1, bits == 16 else {
      let name = format == 1 ? "\(bits)-bit PCM" : format == 3 ? "floating point" : "format \(format)"
      throw .unsupported(what: "the sample format", found: name, expected: "16-bit PCM")
    }
    let channels = Int(little16(bytes, body + 2))
    guard channels == 1 || channels == 2 else {
      throw .unsupported(what: "the number of channels", found: "\(channels)", expected: "1 or 2")
    }
    let rate = Int(little32(bytes, body + 4))
    guard (1_000...192_000).contains(rate) else {
      throw .malformed(what: "the sample rate", found: "\(rate) Hz", expected: "1000 to 192000 Hz")
    }
    let align = Int(little16(bytes, body + 12))
    guard align == 2 * channels else {
      throw .malformed(what: "the bytes a sample frame", found: "\(align)", expected: "\(2 * channels)")
    }
    return WAVHeader(channels: channels, sampleRate: rate, data: 0..<0)
  }

  /// The 44 bytes before `dataByteCount` bytes of samples.
  static func encode(channels: Int, sampleRate: Int, dataByteCount: Int) -> [UInt8] {
    var bytes = [UInt8]()
    func append(_ value: Int, _ count: Int) {
      for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }
    bytes += "RIFF".utf8
    append(36 + dataByteCount, 4)
    bytes += "WAVEfmt ".utf8
    append(16, 4)
    append(1, 2)
    append(channels, 2)
    append(sampleRate, 4)
    append(sampleRate * channels * 2, 4)
    append(channels * 2, 2)
    append(16, 2)
    bytes += "data".utf8
    append(dataByteCount, 4)
    return bytes
  }

  private static func little16(_ bytes: Span<UInt8>, _ at: Int) -> UInt16 { bytes.uint16(at: at).byteSwapped }
  private static func little32(_ bytes: Span<UInt8>, _ at: Int) -> UInt32 { bytes.uint32(at: at).byteSwapped }
  private static func tag(_ bytes: Span<UInt8>, _ at: Int) -> String {
    String(decoding: (at..<at + 4).map { bytes[$0] }, as: UTF8.self)
  }
}
