import CPalbeImages
import Foundation
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMessaging

@Suite("Thumbnails (S0-41)")
struct ThumbnailTests {
  /// A picture whose corners are red, green, blue and white, clockwise from the upper left.
  private func corners(_ width: Int, _ height: Int) -> Pixels {
    var bytes: [UInt8] = []
    for y in 0..<height {
      for x in 0..<width {
        switch (x < width / 2, y < height / 2) {
        case (true, true): bytes += [255, 0, 0]
        case (false, true): bytes += [0, 255, 0]
        case (false, false): bytes += [0, 0, 255]
        case (true, false): bytes += [255, 255, 255]
        }
      }
    }
    return Pixels(width: width, height: height, bytes: bytes)!
  }

  private func jpeg(_ pixels: Pixels, quality: Int32 = 90) -> [UInt8] {
    let limit = pixels.bytes.count + 4_096
    return [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
      count = palbe_jpeg_write(
        pixels.bytes, UInt32(pixels.width), UInt32(pixels.height), quality, buffer.baseAddress, limit)
    }
  }

  /// A PNG whose bytes are stored, not compressed.
  private func png(_ pixels: Pixels, alpha: UInt8? = nil) -> [UInt8] {
    var lines: [UInt8] = []
    for y in 0..<pixels.height {
      lines.append(0)
      for x in 0..<pixels.width {
        lines += pixels.bytes[((y * pixels.width + x) * 3)...].prefix(3)
        if let alpha { lines.append(alpha) }
      }
    }
    var deflated: [UInt8] = [0x78, 0x01]
    for start in stride(from: 0, to: lines.count, by: 65_535) {
      let block = lines[start..<min(lines.count, start + 65_535)]
      let count = UInt16(block.count)
      deflated.append(start + 65_535 >= lines.count ? 1 : 0)
      for value in [count, ~count] { deflated += [UInt8(value & 255), UInt8(value >> 8)] }
      deflated += block
    }
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in lines {
      low = (low + UInt32(byte)) % 65_521
      high = (high + low) % 65_521
    }
    deflated += big(high << 16 | low)
    let header =
      big(UInt32(pixels.width)) + big(UInt32(pixels.height)) + [8, alpha == nil ? 2 : 6, 0, 0, 0]
    return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + chunk("IHDR", header)
      + chunk("IDAT", deflated) + chunk("IEND", [])
  }

  private func big(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
  }

  private func chunk(_ kind: String, _ body: [UInt8]) -> [UInt8] {
    var crc: UInt32 = 0xffff_ffff
    for byte in Array(kind.utf8) + body {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xedb8_8320 : crc >> 1 }
    }
    return big(UInt32(body.count)) + Array(kind.utf8) + body + big(~crc)
  }

  /// The same file with EXIF that says how the camera was held.
  private func held(_ jpeg: [UInt8], _ orientation: UInt16, isLittle: Bool = false) -> [UInt8] {
    func uint16(_ value: UInt16) -> [UInt8] {
      let bytes = [UInt8(value >> 8), UInt8(value & 255)]
      return isLittle ? bytes.reversed() : bytes
    }
    func uint32(_ value: UInt16) -> [UInt8] { isLittle ? uint16(value) + [0, 0] : [0, 0] + uint16(value) }
    var exif =
      Array("Exif\0\0".utf8) + Array((isLittle ? "II" : "MM").utf8) + uint16(42) + uint32(8) + uint16(2)
    exif += uint16(0x0100) + uint16(3) + uint32(1) + uint16(640) + [0, 0]
    exif += uint16(0x0112) + uint16(3) + uint32(1) + uint16(orientation) + [0, 0] + uint32(0)
    let length = exif.count + 2
    return Array(jpeg[..<2]) + [0xff, 0xe1, UInt8(length >> 8), UInt8(length & 255)] + exif + jpeg[2...]
  }

  /// The colours of the corners, clockwise from the upper left.
  private func look(_ picture: [UInt8]) throws -> [String] {
    let pixels = try #require(Pixels.decode(picture)).pixels
    return [(1, 1), (pixels.width - 2, 1), (pixels.width - 2, pixels.height - 2), (1, pixels.height - 2)].map
    { x, y in
      let place = (y * pixels.width + x) * 3
      switch pixels.bytes[place..<place + 3].map({ $0 > 128 }) {
      case [true, false, false]: return "red"
      case [false, true, false]: return "green"
      case [false, false, true]: return "blue"
      case [true, true, true]: return "white"
      default: return "other"
      }
    }
  }

  @Test(
    "S0-41: at most 320 pixels and 32 KiB of JPEG, in the picture's proportions; a small one is not made larger"
  )
  func sizes() throws {
    for (width, height, wanted) in [
      (640, 322, (320, 161)), (322, 640, (161, 320)), (100, 60, (100, 60)), (4_000, 10, (320, 1)),
      (1, 1, (1, 1)),
    ] {
      for file in [jpeg(corners(width, height)), png(corners(width, height))] {
        let thumbnail = try #require(Thumbnail(file))
        #expect(thumbnail.jpeg.count <= 32 << 10 && (thumbnail.width, thumbnail.height) == (width, height))
        let small = try #require(Pixels.decode([UInt8](thumbnail.jpeg)))
        #expect((small.width, small.height) == wanted)
      }
    }
  }

  @Test("S0-41: a picture of noise fits too")
  func noise() throws {
    var random = RandomSource(seed: 3)
    let bytes = (0..<640 * 640 * 3).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    let thumbnail = try #require(
      Thumbnail(jpeg(Pixels(width: 640, height: 640, bytes: bytes)!, quality: 100)))
    #expect(thumbnail.jpeg.count <= 32 << 10)
  }

  @Test(
    "S0-41: EXIF's eight ways to hold a camera are set right, and no metadata is kept",
    arguments: 1...8 as ClosedRange<UInt16>)
  func orientation(_ value: UInt16) throws {
    let wanted: [UInt16: [String]] = [
      1: ["red", "green", "blue", "white"], 2: ["green", "red", "white", "blue"],
      3: ["blue", "white", "red", "green"], 4: ["white", "blue", "green", "red"],
      5: ["red", "white", "blue", "green"], 6: ["white", "red", "green", "blue"],
      7: ["blue", "green", "red", "white"], 8: ["green", "blue", "white", "red"],
    ]
    for isLittle in [false, true] {
      let file = held(jpeg(corners(64, 32)), value, isLittle: isLittle)
      let thumbnail = try #require(Thumbnail(file))
      #expect(try look([UInt8](thumbnail.jpeg)) == wanted[value])
      #expect((thumbnail.width, thumbnail.height) == (value < 5 ? (64, 32) : (32, 64)))
      #expect(thumbnail.jpeg.range(of: Data("Exif".utf8)) == nil)
    }
    let wrong = held(jpeg(corners(8, 8)), 9)
    let read = Orientation(file: wrong.span)
    #expect(read == .upright)
  }

  @Test("S0-41: what shows through a PNG shows white")
  func alpha() throws {
    let black = Pixels(width: 4, height: 4, bytes: [UInt8](repeating: 0, count: 48))!
    let thumbnail = try #require(Thumbnail(png(black, alpha: 0)))
    #expect(try look([UInt8](thumbnail.jpeg)) == Array(repeating: "white", count: 4))
  }

  @Test("S0-41: a damaged picture has no thumbnail and ends nothing: every prefix, every changed byte")
  func damage() throws {
    for file in [held(jpeg(corners(24, 16)), 6), png(corners(24, 16))] {
      // A PNG's last chunk says only that it ends.
      for end in 0..<file.count - (file[0] == 0x89 ? 12 : 2) {
        #expect(Thumbnail(Array(file[..<end])) == nil)
      }
      for place in file.indices {
        var broken = file
        broken[place] ^= 0xff
        // It may still be a picture; what it must not be is a crash or too large.
        if let thumbnail = Thumbnail(broken) { #expect(thumbnail.jpeg.count <= 32 << 10) }
      }
    }
    for file in [[], Array("GIF89a".utf8), Array("RIFF\0\0\0\0WEBP".utf8), [0xff, 0xd8, 0xff]] as [[UInt8]] {
      #expect(Thumbnail(file) == nil)
    }
  }

  @Test("S0-41: a picture that says it is enormous takes no memory")
  func enormous() throws {
    var file = png(corners(8, 8))
    // IHDR's width; its checksum is then wrong, so libpng's own limit and ours both stand before.
    file.replaceSubrange(16..<20, with: [0x7f, 0xff, 0xff, 0xff])
    #expect(Thumbnail(file) == nil)
    var picture = palbe_picture()
    let small = jpeg(corners(64, 64))
    #expect(palbe_jpeg_read(small, small.count, 640, 64 * 64 - 1, 64 * 64, &picture) == 0)
    #expect(palbe_jpeg_read(small, small.count, 640, 64 * 64, 64 * 64, &picture) == 1)
    palbe_picture_free(&picture)
  }
}

@Suite("Waveforms (S0-42)")
struct WaveformTests {
  private func wav(
    _ samples: [UInt8], bits: UInt16, channels: UInt16 = 1, code: UInt16 = 1, length: UInt32? = nil
  ) -> [UInt8] {
    func little(_ value: UInt32, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    let frame = UInt32(channels * bits / 8)
    let format =
      little(UInt32(code), 2) + little(UInt32(channels), 2) + little(8_000, 4) + little(8_000 * frame, 4)
      + little(frame, 2) + little(UInt32(bits), 2)
    return Array("RIFF".utf8) + little(0, 4) + Array("WAVE".utf8) + Array("fmt ".utf8) + little(16, 4)
      + format
      + Array("LIST".utf8) + little(3, 4) + [1, 2, 3, 0] + Array("data".utf8)
      + little(length ?? UInt32(samples.count), 4) + samples
  }

  private func peaks(_ file: [UInt8]) -> [UInt8]? { Waveform.peaks(file.span) }

  @Test("S0-42: peaks of WAV, in each of its widths; the loudest channel counts")
  func widths() throws {
    #expect(peaks(wav([128, 0, 255, 192], bits: 8)) == [0, 255, 254, 128])
    #expect(peaks(wav([0, 0x40, 0, 0x80], bits: 16)) == [128, 255])
    #expect(peaks(wav([0, 0, 0x40], bits: 24)) == [128])
    #expect(peaks(wav([0, 0, 0, 0xc0], bits: 32)) == [128])
    #expect(peaks(wav([0, 0, 0, 0x3f], bits: 32, code: 3)) == [127])
    #expect(peaks(wav([0, 0, 0xc0, 0x7f], bits: 32, code: 3)) == [0])
    #expect(peaks(wav([0, 0, 0, 0x40], bits: 16, channels: 2)) == [128])
  }

  @Test("S0-42: a long recording has 64 peaks, none of which hides a loud moment")
  func long() throws {
    var samples = [UInt8](repeating: 128, count: 100_000)
    samples[77_777] = 255
    let found = try #require(peaks(wav(samples, bits: 8)))
    #expect(found.count == 64 && found.filter { $0 > 0 } == [254] && found[77_777 * 64 / 100_000] == 254)
  }

  @Test("S0-42: what is not WAV has none; a recorder that was stopped leaves a length that is not true")
  func others() throws {
    let file = wav([128, 0, 255, 192], bits: 8, length: .max)
    #expect(peaks(file) == [0, 255, 254, 128])
    for end in 0..<(file.count - 4) { #expect(peaks(Array(file[..<end])) == nil) }
    #expect(peaks(Array("\0\0\0\u{18}ftypM4A ".utf8)) == nil)
    #expect(peaks(wav([0, 0], bits: 16, code: 2)) == nil)
    #expect(peaks(wav([], bits: 16)) == nil)
    #expect(peaks(wav([0], bits: 16, channels: 0)) == nil)
  }

  @Test("S0-38: peaks of the app's are kept to 0...255, and to 256 of them")
  func given() {
    #expect(Waveform.folded([-5, 0, 255, 999]) == [0, 0, 255, 255])
    let many = Waveform.folded((0..<1_000).map { $0 == 999 ? 200 : 1 })
    #expect(many.count == 256 && many.last == 200 && many.first == 1)
  }
}
