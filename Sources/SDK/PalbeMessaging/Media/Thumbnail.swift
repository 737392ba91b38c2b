import CPalbeImages
import Foundation
import PalbeChatCore
import PalbeWire

/// A small picture of a picture, to travel inside a message (S0-41).
///
///     JPEG or PNG ──decode──▶ pixels ──shrink──▶ at most 320 ──turn upright──▶ JPEG of at most 32 KiB, no metadata
///
/// What is no picture, has more pixels than fit in bounded memory, or is damaged, has none: the file is sent without.
struct Thumbnail: Sendable {
  /// The longer side in pixels, at most.
  static let side = 320
  /// Pixels of a picture at most; decoded it is far smaller, for JPEG shrinks by eighths on the way.
  static let pixelLimit: UInt64 = 100_000_000
  /// Pixels at most where all of the picture is in memory on the way: PNG, and JPEG in several scans.
  static let wholePixelLimit: UInt64 = 24_000_000
  /// Bytes of a file that are looked at; a longer one has none.
  static let fileLimit = 64 << 20

  /// At most 32 KiB.
  var jpeg: Data
  /// Pixels of the picture itself, upright.
  var width: Int
  var height: Int

  /// Nil for what is no JPEG or PNG that can be read.
  @concurrent static func make(of picture: Data) async -> Thumbnail? { Thumbnail([UInt8](picture)) }

  init?(_ file: [UInt8]) {
    guard file.count <= Self.fileLimit, let picture = Pixels.decode(file) else { return nil }
    let turn = Orientation(file: file.span)
    guard let jpeg = picture.pixels.shrunk(toSide: Self.side).turned(turn).encoded() else { return nil }
    self.jpeg = Data(jpeg)
    (width, height) = turn.swapsSides ? (picture.height, picture.width) : (picture.width, picture.height)
  }
}

/// Pixels of three bytes, red, green and blue, row by row.
struct Pixels {
  var width: Int
  var height: Int
  var bytes: [UInt8]

  /// Nil where sides and bytes do not fit.
  init?(width: Int, height: Int, bytes: [UInt8]) {
    guard width > 0, height > 0, bytes.count == width * height * 3 else { return nil }
    (self.width, self.height, self.bytes) = (width, height, bytes)
  }

  typealias Decoded = (pixels: Pixels, width: Int, height: Int)

  /// With at most one side of `side`; the same where it is no larger.
  func shrunk(toSide side: Int) -> Pixels {
    let longer = max(width, height)
    guard longer > side else { return self }
    let (newWidth, newHeight) = (max(1, width * side / longer), max(1, height * side / longer))
    var result = [UInt8](repeating: 0, count: newWidth * newHeight * 3)
    for y in 0..<newHeight {
      // Each new pixel is the mean of those that it stands for.
      let rows = (y * height / newHeight)..<max(y * height / newHeight + 1, (y + 1) * height / newHeight)
      for x in 0..<newWidth {
        let columns = (x * width / newWidth)..<max(x * width / newWidth + 1, (x + 1) * width / newWidth)
        var (red, green, blue) = (0, 0, 0)
        for row in rows {
          for column in columns {
            let place = (row * width + column) * 3
            red += Int(bytes[place])
            green += Int(bytes[place + 1])
            blue += Int(bytes[place + 2])
          }
        }
        let (count, place) = (rows.count * columns.count, (y * newWidth + x) * 3)
        result[place] = UInt8((red + count / 2) / count)
        result[place + 1] = UInt8((green + count / 2) / count)
        result[place + 2] = UInt8((blue + count / 2) / count)
      }
    }
    return Pixels(width: newWidth, height: newHeight, bytes: result)!
  }

  /// As it is to be seen.
  func turned(_ orientation: Orientation) -> Pixels {
    guard orientation != .upright else { return self }
    let (newWidth, newHeight) = orientation.swapsSides ? (height, width) : (width, height)
    var result = [UInt8](repeating: 0, count: bytes.count)
    for y in 0..<newHeight {
      for x in 0..<newWidth {
        let (column, row) = orientation.source(x, y, width: width, height: height)
        let (from, to) = ((row * width + column) * 3, (y * newWidth + x) * 3)
        for part in 0..<3 { result[to + part] = bytes[from + part] }
      }
    }
    return Pixels(width: newWidth, height: newHeight, bytes: result)!
  }

  /// As JPEG that fits into a message: as good as there is room for.
  func encoded() -> [UInt8]? {
    var pixels = self
    while true {
      for quality: Int32 in [82, 70, 55, 40, 25] {
        if let jpeg = pixels.encoded(quality) { return jpeg }
      }
      let longer = max(pixels.width, pixels.height)
      guard longer > 32 else { return nil }
      pixels = pixels.shrunk(toSide: longer / 2)
    }
  }

  private func encoded(_ quality: Int32) -> [UInt8]? {
    let limit = ContentLimits.thumbnailByteCount
    let jpeg = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
      count = palbe_jpeg_write(
        bytes, UInt32(width), UInt32(height), quality, buffer.baseAddress, limit)
    }
    return jpeg.isEmpty ? nil : jpeg
  }
}

extension Pixels {
  /// What a file shows, perhaps smaller, and how large it is; nil for a file that is neither JPEG nor PNG, or damaged.
  static func decode(_ file: [UInt8]) -> Decoded? {
    var picture = palbe_picture()
    defer { palbe_picture_free(&picture) }
    let isRead: Bool
    if file.starts(with: [0xff, 0xd8, 0xff]) {
      isRead =
        palbe_jpeg_read(
          file, file.count, UInt32(Thumbnail.side * 2), Thumbnail.pixelLimit, Thumbnail.wholePixelLimit,
          &picture) == 1
    } else if file.starts(with: [0x89, 0x50, 0x4e, 0x47]) {
      isRead = palbe_png_read(file, file.count, Thumbnail.wholePixelLimit, &picture) == 1
    } else {
      isRead = false
    }
    guard isRead, let bytes = picture.pixels else { return nil }
    let (width, height) = (Int(picture.width), Int(picture.height))
    let copy = [UInt8](UnsafeBufferPointer(start: bytes, count: width * height * 3))
    guard let pixels = Pixels(width: width, height: height, bytes: copy) else { return nil }
    return (pixels, Int(picture.full_width), Int(picture.full_height))
  }
}
