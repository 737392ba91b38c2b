import CPalbeMallocCounter
import PalbeUnits
import PalbeVP8
import PalbeWire
import Testing

@Suite struct VP8RefusalTests {
  @Test(
    "values out of range are refused",
    arguments: [
      VP8Configuration(width: 1), VP8Configuration(height: 4_097), VP8Configuration(framesPerSecond: 0),
      VP8Configuration(bitrate: .kilobitsPerSecond(29)), VP8Configuration(bitrate: .megabitsPerSecond(51)),
      VP8Configuration(threads: 0), VP8Configuration(speed: 17), VP8Configuration(speed: -1),
    ])
  func configuration(configuration: VP8Configuration) {
    #expect(throws: VP8Error.invalidConfiguration) { _ = try VP8Encoder(configuration) }
  }

  @Test("a picture of another size and a buffer that is too small are refused") func encoderInput() throws {
    var encoder = try VP8Encoder(VP8Configuration(width: 160, height: 96))
    #expect(throws: VP8Error.wrongSize(width: 158, height: 96)) {
      _ = try VP8Pictures.encode(&encoder, I420Image(width: 158, height: 96), frame: 0)
    }
    let error = #expect(throws: VP8Error.self) {
      _ = try [UInt8](capacity: 8) { output throws(VP8Error) in
        _ = try encoder.encode(VP8Pictures.gradient(0), capturedAt: .zero, into: &output)
      }
    }
    guard case .outputTooSmall(let needed, have: 8) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(needed > 8)
  }

  @Test("RFC 6386 §9.1: frames that cannot be are refused before the library sees them") func headers() throws
  {
    var decoder = try VP8Decoder()
    let key = VP8Golden.frames[0].bytes
    var picture = I420Image(width: 1, height: 1)
    for (bytes, expected) in [
      ([], .invalidFrame), ([0x10], .invalidFrame), (VP8Golden.frames[1].bytes, .needsKeyFrame),
      (Array(key[..<10]), .invalidFrame),
      (key.replacing(3, with: 0x9c), .invalidFrame),  // start code
      (key.replacing(0, with: 0x18), .invalidFrame),  // version 4
      (key.replacing(2, with: 0xff), .invalidFrame),  // first partition longer than the frame
      (key.replacing(6, with: 0).replacing(8, with: 18), .invalidFrame),  // no width
    ] as [([UInt8], VP8Error)] {
      #expect(throws: expected) { _ = try decoder.decode(bytes.span, into: &picture) }
    }
    #expect(picture == I420Image(width: 1, height: 1))
  }

  @Test("a key frame's size is checked before memory is taken for it") func hugePicture() throws {
    var decoder = try VP8Decoder()
    var bytes = VP8Golden.frames[0].bytes
    bytes.replaceSubrange(6..<10, with: [0xff, 0x3f, 0xff, 0x3f])
    let before = palbe_malloc_count()
    #expect(throws: VP8Error.pictureTooLarge(width: 16_383, height: 16_383)) {
      _ = try decoder.decode(bytes)
    }
    #expect(palbe_malloc_count() - before < 1_000)
    var small = try VP8Decoder(maximumPixels: 34 * 18)
    #expect(try small.decode(VP8Golden.frames[0].bytes) != nil)
    var smaller = try VP8Decoder(maximumPixels: 34 * 18 - 1)
    #expect(throws: VP8Error.pictureTooLarge(width: 34, height: 18)) {
      _ = try smaller.decode(VP8Golden.frames[0].bytes)
    }
  }

  @Test("every prefix of a frame gives a picture or an error, and a key frame recovers") func truncation()
    throws
  {
    for (index, frame) in VP8Golden.frames.enumerated() {
      for count in 0..<frame.bytes.count {
        var decoder = try VP8Decoder()
        for earlier in VP8Golden.frames[..<index] { _ = try decoder.decode(earlier.bytes) }
        if let picture = try? decoder.decode(Array(frame.bytes[..<count])) {
          #expect(picture.width == 34 && picture.height == 18)
        }
        let recovered = try #require(try decoder.decode(VP8Golden.frames[0].bytes))
        #expect(VP8Pictures.hash(recovered) == VP8Golden.frames[0].hash)
      }
    }
  }

  @Test("frames with flipped bits give a picture or an error, and a key frame recovers") func flippedBits()
    throws
  {
    var decoder = try VP8Decoder(maximumPixels: 1 << 16)
    var random = RandomSource(seed: 20)
    for round in 0..<500 {
      var bytes = VP8Golden.frames[round % 3].bytes
      for _ in 0...random.next() % 4 {
        bytes[Int(random.next() % UInt64(bytes.count))] ^= 1 << UInt8(random.next() % 8)
      }
      _ = try? decoder.decode(bytes)
    }
    let recovered = try #require(try decoder.decode(VP8Golden.frames[0].bytes))
    #expect(VP8Pictures.hash(recovered) == VP8Golden.frames[0].hash)
  }

  @Test("golden: three frames decode to the same pixels everywhere") func golden() throws {
    var decoder = try VP8Decoder()
    for frame in VP8Golden.frames {
      let picture = try #require(try decoder.decode(frame.bytes))
      #expect(VP8Pictures.hash(picture) == frame.hash)
    }
  }
}

extension [UInt8] {
  fileprivate func replacing(_ index: Int, with value: UInt8) -> [UInt8] {
    var copy = self
    copy[index] = value
    return copy
  }
}

/// A key frame and two more of 34x18 pixels, made by libvpx 1.12, and the hash of what they decode to.
enum VP8Golden {
  static let frames: [(bytes: [UInt8], hash: UInt64)] = [
    (
      Hex.decode(
        "7004009d012a22001200390300021c2216162266122004904009c675804f2c7515632ea50cf40fdbd904b87fc0"
          + "fefffef318"
          + "127205eaa6b0b9d5d53a1a50a5b12cb741266c950178f7ff2e6bd7fffdffb37ffdc9f1fffbff66fde9d89b2d16"
          + "168cb74d"
          + "c35ff82150f5fd9eba51b626af2347c1374679d2f4b301f0f9d5f150a2dd236f9745e5a96dc6c3dd2d800000")!,
      0xfde3_8e37_3958_7ee2
    ),
    (
      Hex.decode("110200e35bb8082fef205f40c0a0bfd0001100fee8b297e76383ffe56ffabf16b2f00ef07ffcaca800")!,
      0xd337_ed78_629f_76f8
    ),
    (
      Hex.decode(
        "910200e34bd80c27bf8063f8100292ba8f5c00dda80f08feebcbcb744bfebc275c97254ba53fbe2d1f2eedd7f8"
          + "c9fb5649"
          + "1dd37937d76b36c5def98c00")!,
      0xd7a9_8cde_8bb8_8a00
    ),
  ]
}
