import CPalbeMallocCounter
import PalbeUnits
import PalbeVP8
import Testing

@Suite struct VP8RoundTripTests {
  @Test(
    "RFC 6386: pictures come back nearly as they were, odd sizes too",
    arguments: [(160, 96), (175, 143), (2, 2)])
  func roundTrip(width: Int, height: Int) throws {
    var encoder = try VP8Encoder(VP8Configuration(width: width, height: height))
    var decoder = try VP8Decoder()
    for frame in 0..<10 {
      let picture = VP8Pictures.gradient(frame, width: width, height: height)
      let encoded = try VP8Pictures.encode(&encoder, picture, frame: frame)
      #expect(encoded.info.byteCount == encoded.bytes.count)
      #expect(encoded.info.isKeyFrame == (frame == 0))
      #expect((0...63).contains(encoded.info.quantizer))
      let header = try VP8FrameHeader.parse(encoded.bytes)
      #expect(header.isKeyFrame == (frame == 0))
      #expect(header.isShown)
      if let size = header.size { #expect(size == (width, height)) }
      let decoded = try #require(try decoder.decode(encoded.bytes))
      #expect(decoded.width == width && decoded.height == height)
      #expect(VP8Pictures.meanDifference(picture.y, decoded.y) < 4)
      #expect(VP8Pictures.meanDifference(picture.u, decoded.u) < 5)
      #expect(VP8Pictures.meanDifference(picture.v, decoded.v) < 5)
    }
  }

  @Test("a key frame comes on demand and a new decoder can start there") func keyFrameOnDemand() throws {
    var encoder = try VP8Encoder(VP8Configuration(width: 160, height: 96))
    var late = try VP8Decoder()
    for frame in 0..<12 {
      let picture = VP8Pictures.gradient(frame)
      let encoded = try VP8Pictures.encode(&encoder, picture, frame: frame, forceKeyFrame: frame == 7)
      #expect(encoded.info.isKeyFrame == (frame == 0 || frame == 7))
      guard frame >= 7 else { continue }
      let decoded = try #require(try late.decode(encoded.bytes))
      #expect(VP8Pictures.meanDifference(picture.y, decoded.y) < 4)
    }
  }

  @Test("without a demand no key frame comes, not even after a cut") func noKeyFrameByItself() throws {
    var encoder = try VP8Encoder(VP8Configuration(width: 160, height: 96))
    for frame in 0..<40 {
      let picture = frame < 20 ? VP8Pictures.gradient(frame) : I420Image(width: 160, height: 96, luma: 200)
      #expect(try VP8Pictures.encode(&encoder, picture, frame: frame).info.isKeyFrame == (frame == 0))
    }
  }

  @Test("the bitrate is kept within a fifth, and changes when told") func bitrate() throws {
    var encoder = try VP8Encoder(
      VP8Configuration(width: 320, height: 180, bitrate: .kilobitsPerSecond(600)))
    func rate(_ frames: Range<Int>) throws -> Double {
      var bytes = 0
      for frame in frames {
        // Grain that cannot be predicted: the encoder needs all it may use. Twenty pictures in turn save
        // time.
        let picture = VP8Pictures.gradient(frame % 20, width: 320, height: 180, grain: 40)
        bytes += try VP8Pictures.encode(&encoder, picture, frame: frame).bytes.count
      }
      return Double(bytes) * 8 * 30 / Double(frames.count) / 1_000
    }
    _ = try rate(0..<30)
    #expect((480...720).contains(try rate(30..<90)))
    try encoder.setBitrate(.kilobitsPerSecond(300))
    _ = try rate(90..<120)
    #expect((240...360).contains(try rate(120..<180)))
  }

  @Test("the same pictures give the same bytes") func deterministic() throws {
    var first = try VP8Encoder(VP8Configuration(width: 160, height: 96))
    var second = try VP8Encoder(VP8Configuration(width: 160, height: 96))
    for frame in 0..<5 {
      let picture = VP8Pictures.gradient(frame, grain: 8)
      let one = try VP8Pictures.encode(&first, picture, frame: frame)
      #expect(one == (try VP8Pictures.encode(&second, picture, frame: frame)))
    }
  }

  @Test("pictures with equal or earlier times still encode, one frame each") func timesThatDoNotAdvance()
    throws
  {
    var encoder = try VP8Encoder(VP8Configuration(width: 160, height: 96))
    for frame in [5, 5, 3, 0, 9] {
      #expect(try !VP8Pictures.encode(&encoder, VP8Pictures.gradient(frame), frame: frame).bytes.isEmpty)
    }
  }

  @Test("encoding and decoding into used memory allocate nothing") func allocations() throws {
    var encoder = try VP8Encoder(VP8Configuration(width: 160, height: 96))
    var decoder = try VP8Decoder()
    let pictures = (0..<10).map { VP8Pictures.gradient($0) }
    var decoded = I420Image(width: 160, height: 96)
    var buffer = [UInt8]()
    buffer.reserveCapacity(encoder.maximumFrameByteCount)
    var last: UInt64 = .max
    for (frame, picture) in pictures.enumerated() {
      buffer.removeAll(keepingCapacity: true)
      let instant = Instant(nanoseconds: Int64(frame) * 33_333_333)
      let before = palbe_malloc_count()
      try buffer.append(addingCapacity: encoder.maximumFrameByteCount) { output throws(VP8Error) in
        _ = try encoder.encode(picture, capturedAt: instant, into: &output)
      }
      _ = try decoder.decode(buffer.span, into: &decoded)
      last = palbe_malloc_count() - before
    }
    #expect(last == 0)
  }
}
