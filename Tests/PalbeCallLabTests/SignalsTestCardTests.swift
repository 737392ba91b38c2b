import PalbeCall
import PalbeCallLab
import PalbeUnits
import PalbeVP8
import Testing

@Suite struct SignalsTestCardTests {
  /// Made once: the textures take a while in a debug build.
  private static let card = TestCard()
  private static let small = TestCard(width: 320, height: 180)

  private static func picture(_ number: UInt32, of card: TestCard = small) -> I420Image {
    var picture = I420Image(width: card.width, height: card.height)
    card.render(number, into: &picture)
    return picture
  }

  @Test(
    "the number is read back from the pixels",
    arguments: [0, 1, 2, 29, 30, 255, 256, 17_999, 18_000, 65_535, 1 << 20, 0x5555_5555, .max - 1, .max]
      as [UInt32])
  func numbers(number: UInt32) {
    #expect(TestCard.readNumber(in: Self.picture(number)) == number)
  }

  @Test("as a source it counts frames, and draws the same into used memory") func source() throws {
    var card = Self.small
    #expect(card.width == 320 && card.height == 180)
    var used = I420Image(width: 320, height: 180, luma: 200)
    for index in [0, 1, 7, 8] {
      let isThere = card.next(frameIndex: index, into: &used)
      #expect(isThere)
      #expect(TestCard.readNumber(in: used) == UInt32(index))
      let fresh = card.next(frameIndex: index)
      #expect(fresh == used)
    }
    var other = I420Image(width: 2, height: 2)
    _ = card.next(frameIndex: 8, into: &other)
    #expect(other == used)
  }

  @Test("every frame differs from the next in more than its number") func moves() {
    for number in 0..<5 as Range<UInt32> {
      let (first, second) = (Self.picture(number), Self.picture(number + 1))
      let below = 320 * 40
      #expect(zip(first.y[below...], second.y[below...]).filter { $0 != $1 }.count > 2_000)
    }
  }

  @Test("a picture that is half one frame and half the next reads as one of them or not at all")
  func torn() {
    let (before, after) = (Self.picture(0x1234_5677), Self.picture(0x1234_5678))
    for rows in [2, 6, 8, 10, 14] {
      let cut = rows * 320
      let torn = I420Image(
        width: 320, height: 180, y: Array(after.y[..<cut] + before.y[cut...]), u: after.u, v: after.v)!
      let number = TestCard.readNumber(in: torn)
      #expect(number == nil || number == 0x1234_5677 || number == 0x1234_5678)
    }
    for share in [1, 2, 3] {
      let mixed = zip(before.y, after.y).map { UInt8((Int($0) * share + Int($1) * (4 - share)) / 4) }
      let number = TestCard.readNumber(
        in: I420Image(width: 320, height: 180, y: mixed, u: after.u, v: after.v)!)
      #expect(number == nil || number == 0x1234_5677 || number == 0x1234_5678)
    }
  }

  @Test("a flat picture, noise and a picture that is too small carry no number") func noNumber() {
    #expect(TestCard.readNumber(in: I420Image(width: 320, height: 180)) == nil)
    #expect(TestCard.readNumber(in: I420Image(width: 64, height: 64)) == nil)
    #expect(TestCard.readNumber(in: I420Image(width: 320, height: 12)) == nil)
    var random = RandomSource(seed: 3)
    let chroma = [UInt8](repeating: 128, count: 160 * 90)
    for _ in 0..<5 {
      let noise = I420Image(width: 320, height: 180, y: random.bytes(320 * 180), u: chroma, v: chroma)!
      #expect(TestCard.readNumber(in: noise) == nil)
    }
    // One column turned over: the check fails.
    var flipped = Self.picture(77)
    var luma = flipped.mutableLuma
    for row in 0..<16 {
      for column in 80..<88 { luma[row * 320 + column] = row < 8 ? 208 : 48 }
    }
    #expect(flipped != Self.picture(77))
    #expect(TestCard.readNumber(in: flipped) == nil)
  }

  @Test("issue 2: after VP8 at 1 Mbit/s SSIM is at least 0.95 and every number is read") func throughVP8()
    throws
  {
    let card = Self.card
    var encoder = try VP8Encoder(VP8Configuration())
    var decoder = try VP8Decoder()
    var decoded = I420Image(width: 640, height: 360)
    for index in 0..<20 {
      let picture = Self.picture(UInt32(index), of: card)
      let bytes = try [UInt8](capacity: encoder.maximumFrameByteCount) { output throws(VP8Error) in
        _ = try encoder.encode(
          picture, capturedAt: Instant(nanoseconds: Int64(index) * 33_333_333), into: &output)
      }
      _ = try decoder.decode(bytes.span, into: &decoded)
      #expect(TestCard.readNumber(in: decoded) == UInt32(index))
      #expect(try #require(SSIM.luma(picture, decoded)) >= 0.95)
    }
  }

  @Test("at 30 kbit/s the picture suffers and the number does not") func throughBadVP8() throws {
    let card = Self.small
    var encoder = try VP8Encoder(VP8Configuration(width: 320, height: 180, bitrate: .kilobitsPerSecond(30)))
    var decoder = try VP8Decoder()
    var decoded = I420Image(width: 320, height: 180)
    var worst = 1.0
    for index in 0..<60 {
      let picture = Self.picture(UInt32(index), of: card)
      let bytes = try [UInt8](capacity: encoder.maximumFrameByteCount) { output throws(VP8Error) in
        _ = try encoder.encode(
          picture, capturedAt: Instant(nanoseconds: Int64(index) * 33_333_333), into: &output)
      }
      _ = try decoder.decode(bytes.span, into: &decoded)
      #expect(TestCard.readNumber(in: decoded) == UInt32(index))
      worst = min(worst, SSIM.luma(picture, decoded) ?? 1)
    }
    #expect(worst < 0.95)
  }
}
