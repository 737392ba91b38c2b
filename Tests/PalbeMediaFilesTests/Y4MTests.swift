import PalbeMediaFiles
import PalbeUnits
import Testing

@Suite struct Y4MTests {
  private static func picture(_ seed: UInt64, width: Int, height: Int) -> I420Image {
    var random = RandomSource(seed: seed)
    let chroma = ((width + 1) / 2) * ((height + 1) / 2)
    return I420Image(
      width: width, height: height, y: random.bytes(width * height), u: random.bytes(chroma),
      v: random.bytes(chroma))!
  }

  private static func file(_ header: String = "YUV4MPEG2 W4 H2 F30:1", frames: Int = 2) -> [UInt8] {
    var bytes = Array((header + "\n").utf8)
    for frame in 0..<frames {
      bytes += Array((frame % 2 == 0 ? "FRAME\n" : "FRAME Ip\n").utf8)
      bytes += (0..<12).map { UInt8($0 + 16 * frame) }
    }
    return bytes
  }

  @Test("what is written reads back, odd sizes too", arguments: [(4, 2), (5, 3), (64, 36)])
  func roundTrip(width: Int, height: Int) throws {
    let folder = try Temporary()
    let sent = (0..<3).map { Self.picture(UInt64($0), width: width, height: height) }
    let header = Y4MHeader(width: width, height: height, framesPerSecond: 25)
    var writer = try Y4MWriter(path: folder.path("a.y4m"), header: header)
    for picture in sent { try writer.write(picture) }
    try writer.finish()
    var reader = try Y4MReader(path: folder.path("a.y4m"))
    #expect(reader.header == header)
    #expect(reader.pictureCount == 3)
    var picture = I420Image(width: 1, height: 1)
    for _ in 0..<2 {
      for expected in sent {
        #expect(try reader.read(into: &picture))
        #expect(picture == expected)
      }
      #expect(try !reader.read(into: &picture))
      #expect(try !reader.skip())
      try reader.rewind()
    }
    #expect(try reader.skip())
    #expect(try reader.read(into: &picture))
    #expect(picture == sent[1])
    #expect(reader.index == 2)
  }

  @Test("planes are luma, then blue, then red; frame parameters are ignored") func planes() throws {
    var reader = try Y4MReader(bytes: Self.file(), name: "a.y4m")
    var picture = I420Image(width: 4, height: 2)
    _ = try reader.skip()
    #expect(try reader.read(into: &picture))
    #expect(picture.y == Array(16..<24) && picture.u == [24, 25] && picture.v == [26, 27])
  }

  @Test(
    "headers as other programs write them are read",
    arguments: [
      ("W640 H360 F30:1 Ip A1:1 C420jpeg", 640, 360, 30, 1), ("H2 W2 F30000:1001", 2, 2, 30_000, 1_001),
      ("W4096 H4096 F1:1 I? A0:0 C420mpeg2 XYSCSS=420MPEG2", 4_096, 4_096, 1, 1),
      ("W16 H16 F240:1 C420paldv XCOLORRANGE=LIMITED", 16, 16, 240, 1), ("W16 H16 F25:1 C420", 16, 16, 25, 1),
    ])
  func headers(line: String, width: Int, height: Int, numerator: Int, denominator: Int) throws {
    let header = try Y4MHeader.parse("YUV4MPEG2 " + line)
    #expect(header.width == width && header.height == height)
    #expect(header.rate == (numerator, denominator))
  }

  @Test(
    "a malformed file is refused in one line that names what was wrong",
    arguments: [
      ("YUV4MPEG W4 H2 F30:1", "not a Y4M file (YUV4MPEG2)"), ("", "not a Y4M file (YUV4MPEG2)"),
      ("YUV4MPEG2 H2 F30:1", "the header is without a width: expected W640"),
      ("YUV4MPEG2 W4 F30:1", "the header is without a height: expected H360"),
      ("YUV4MPEG2 W4 H2", "the header is without a frame rate: expected F30:1"),
      ("YUV4MPEG2 W1 H2 F30:1", "the width is \"1\": expected 2 to 4096"),
      ("YUV4MPEG2 W4 H4097 F30:1", "the height is \"4097\": expected 2 to 4096"),
      ("YUV4MPEG2 W4x H2 F30:1", "the width is \"4x\": expected 2 to 4096"),
      (
        "YUV4MPEG2 W99999999999999999999 H2 F30:1",
        "the width is \"99999999999999999999\": expected 2 to 4096"
      ),
      ("YUV4MPEG2 W4 H2 F30", "the frame rate is \"30\": expected 1 to 240 a second, as F30:1"),
      ("YUV4MPEG2 W4 H2 F0:1", "the frame rate is \"0:1\": expected 1 to 240 a second, as F30:1"),
      ("YUV4MPEG2 W4 H2 F30:0", "the frame rate is \"30:0\": expected 1 to 240 a second, as F30:1"),
      ("YUV4MPEG2 W4 H2 F241:1", "the frame rate is \"241:1\": expected 1 to 240 a second, as F30:1"),
      ("YUV4MPEG2 W4 H2 F30:1 It", "the interlacing is It: only Ip (progressive) can be read"),
      ("YUV4MPEG2 W4 H2 F30:1 C444", "the colour format is C444: only C420 with 8 bits can be read"),
      ("YUV4MPEG2 W4 H2 F30:1 C420p10", "the colour format is C420p10: only C420 with 8 bits can be read"),
    ])
  func refusals(line: String, text: String) throws {
    let error = #expect(throws: MediaFileError.self) {
      _ = try Y4MReader(bytes: Self.file(line), name: "a.y4m")
    }
    #expect(error?.description == "a.y4m: " + text)
  }

  @Test("a file that is cut off is refused when it is opened") func truncation() throws {
    let bytes = Self.file()
    let whole = Self.file(frames: 1).count
    for count in 0..<bytes.count where count != whole {
      let error = #expect(throws: MediaFileError.self, "\(count)") {
        _ = try Y4MReader(bytes: Array(bytes[..<count]), name: "a.y4m")
      }
      #expect(error?.description.hasPrefix("a.y4m: ") == true)
    }
    let cut = #expect(throws: MediaFileError.self) {
      _ = try Y4MReader(bytes: Array(bytes.dropLast()), name: "a.y4m")
    }
    #expect(cut?.description == "a.y4m: picture 2 is cut off: expected 12 bytes, found 11")
    let other = #expect(throws: MediaFileError.self) {
      _ = try Y4MReader(bytes: Self.file(frames: 1) + Array("frame\n".utf8), name: "a.y4m")
    }
    #expect(other?.description == "a.y4m: the line at byte 40 is another: expected \"FRAME\"")
    let empty = #expect(throws: MediaFileError.self) {
      _ = try Y4MReader(bytes: Self.file(frames: 0), name: "a.y4m")
    }
    #expect(empty?.description == "a.y4m: there are no pictures in it")
    let missing = #expect(throws: MediaFileError.self) { _ = try Y4MReader(path: "/nonexistent/a.y4m") }
    #expect(missing?.description == "/nonexistent/a.y4m: cannot open it: No such file or directory")
  }

  @Test("a first line without an end is not read past its limit") func longLine() throws {
    #expect(throws: MediaFileError.self) {
      _ = try Y4MReader(bytes: [UInt8](repeating: UInt8(ascii: "Y"), count: 100_000), name: "a.y4m")
    }
  }

  @Test("a picture of another size is not written") func otherSize() throws {
    let folder = try Temporary()
    let path = folder.path("a.y4m")
    var writer = try Y4MWriter(path: path, header: Y4MHeader(width: 4, height: 2, framesPerSecond: 30))
    let error = #expect(throws: MediaFileError.self) { try writer.write(I420Image(width: 6, height: 2)) }
    #expect(error?.description == "\(path): the picture is 6x2: expected 4x2")
  }
}
