import PalbeUnits
import PalbeVP8

/// Pictures and loops that several tests use.
enum VP8Pictures {
  /// A gradient that moves two pixels a frame, with some grain.
  static func gradient(_ frame: Int, width: Int = 160, height: Int = 96, grain: UInt64 = 0) -> I420Image {
    var picture = I420Image(width: width, height: height)
    var random = RandomSource(seed: UInt64(frame))
    var luma = picture.mutableLuma
    for y in 0..<height {
      for x in 0..<width {
        let value = 40 + (x + 2 * frame) % width * 120 / width + y * 60 / height
        luma[y * width + x] = UInt8(min(235, value + (grain == 0 ? 0 : Int(random.next() % grain))))
      }
    }
    var u = picture.mutableU
    for index in u.indices { u[index] = UInt8(100 + index % 17) }
    var v = picture.mutableV
    for index in v.indices { v[index] = UInt8(140 - index % 13) }
    return picture
  }

  static func encode(
    _ encoder: inout VP8Encoder, _ picture: I420Image, frame: Int, forceKeyFrame: Bool = false
  ) throws -> (bytes: [UInt8], info: VP8EncodedFrame) {
    var info: VP8EncodedFrame?
    let bytes = try [UInt8](capacity: encoder.maximumFrameByteCount) { output throws(VP8Error) in
      info = try encoder.encode(
        picture, capturedAt: Instant(nanoseconds: Int64(frame) * 33_333_333), forceKeyFrame: forceKeyFrame,
        into: &output)
    }
    return (bytes, info!)
  }

  static func meanDifference(_ first: [UInt8], _ second: [UInt8]) -> Double {
    Double(zip(first, second).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }) / Double(first.count)
  }

  /// FNV-1a over the three planes.
  static func hash(_ picture: I420Image) -> UInt64 {
    (picture.y + picture.u + picture.v).reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}

// The testing macros cannot pass a span on.
extension VP8Decoder {
  mutating func decode(_ frame: [UInt8]) throws(VP8Error) -> I420Image? { try decode(frame.span) }
}

extension VP8FrameHeader {
  static func parse(_ frame: [UInt8]) throws(VP8Error) -> VP8FrameHeader { try parse(frame.span) }
}
