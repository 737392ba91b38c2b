import PalbeUnits
import PalbeWire

/// A frame that looks encoded to everything between encoder and decoder, and carries its number and when it
/// was made.
struct SyntheticFrame: Equatable {
  var isKeyFrame: Bool
  var number: UInt32
  var sentAt: Instant

  /// VP8: the lowest bit of the first byte is zero in a key frame.
  func video(byteCount: Int) -> [UInt8] {
    var writer = ByteWriter()
    writer.uint8(isKeyFrame ? 0x10 : 0x11)
    writer.append([0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x01, 0x00, 0x00])
    return fill(&writer, byteCount)
  }

  /// Opus: hybrid, 20 ms, one frame.
  func audio(byteCount: Int) -> [UInt8] {
    var writer = ByteWriter()
    writer.uint8(0x78)
    return fill(&writer, byteCount)
  }

  private func fill(_ writer: inout ByteWriter, _ byteCount: Int) -> [UInt8] {
    writer.uint32(number)
    writer.uint64(UInt64(bitPattern: sentAt.nanoseconds))
    var filler = RandomSource(seed: UInt64(number))
    writer.append(filler.bytes(max(0, byteCount - writer.bytes.count)))
    return writer.bytes
  }

  init(isKeyFrame: Bool = false, number: UInt32, sentAt: Instant) {
    self.isKeyFrame = isKeyFrame
    self.number = number
    self.sentAt = sentAt
  }

  /// Nil for what was not made here, or was changed.
  init?(video bytes: [UInt8]) {
    guard bytes.count >= 22 else { return nil }
    self.init(isKeyFrame: bytes[0] & 1 == 0, bytes: bytes, at: 10)
    guard bytes == video(byteCount: bytes.count) else { return nil }
  }

  /// Nil for what was not made here, or was changed.
  init?(audio bytes: [UInt8]) {
    guard bytes.count >= 13 else { return nil }
    self.init(isKeyFrame: false, bytes: bytes, at: 1)
    guard bytes == audio(byteCount: bytes.count) else { return nil }
  }

  private init(isKeyFrame: Bool, bytes: [UInt8], at offset: Int) {
    let span = bytes.span
    self.isKeyFrame = isKeyFrame
    number = span.uint32(at: offset)
    let high = UInt64(span.uint32(at: offset + 4))
    sentAt = Instant(nanoseconds: Int64(bitPattern: high << 32 | UInt64(span.uint32(at: offset + 8))))
  }
}
