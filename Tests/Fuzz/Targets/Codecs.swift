import PalbeOpus
import PalbeUnits
import PalbeVP8

extension FuzzTarget {
  /// A stream of packets, each after one byte that says how it is used and one for its length.
  static let opusPacket = FuzzTarget(name: "opus-packet") { bytes in
    guard let mode = bytes.first, var decoder = try? OpusDecoder(channels: Int(mode & 1) + 1) else { return }
    forEachPart(of: bytes, lengthBytes: 1) { kind, packet in
      let count = OpusDecoder.sampleCount(of: packet.span)
      let samples = try? [Int16](capacity: Opus.maximumSamplesPerPacket * 2) { output throws(OpusError) in
        switch kind % 8 {
        case 0: try decoder.conceal(samples: (Int(kind) / 8 + 1) * 120, into: &output)
        case 1: try decoder.decodeFEC(from: packet.span, samples: 960, into: &output)
        default: try decoder.decode(packet.span, into: &output)
        }
      }
      if kind % 8 > 1, let samples { precondition(samples.count == (count ?? 0) * decoder.channels) }
    }
  }

  /// A stream of frames, each after one byte that is ignored and two for its length; small pictures only.
  static let vp8Frame = FuzzTarget(name: "vp8-frame") { bytes in
    guard var decoder = try? VP8Decoder(maximumPixels: 1 << 16) else { return }
    var picture = I420Image(width: 1, height: 1)
    forEachPart(of: bytes, lengthBytes: 2) { _, frame in
      guard let isShown = try? decoder.decode(frame.span, into: &picture), isShown else { return }
      precondition(
        picture.width * picture.height <= 1 << 16 && picture.y.count == picture.width * picture.height)
    }
  }

  private static func forEachPart(
    of bytes: [UInt8], lengthBytes: Int, _ body: (_ kind: UInt8, _ part: [UInt8]) -> Void
  ) {
    var offset = 0
    while offset + 1 + lengthBytes <= bytes.count {
      let kind = bytes[offset]
      let length = bytes[offset + 1..<offset + 1 + lengthBytes].reduce(0) { $0 << 8 | Int($1) }
      offset += 1 + lengthBytes
      let end = min(bytes.count, offset + length)
      body(kind, Array(bytes[offset..<end]))
      offset = end
    }
  }
}
