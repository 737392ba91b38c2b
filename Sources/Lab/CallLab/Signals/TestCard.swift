import Foundation
import PalbeCall
import PalbeUnits

/// A moving picture whose frames carry their number, so that latency and order are measured from decoded
/// pixels.
///
/// Across the top run 40 columns of two blocks each. A column is one bit: the upper block is white for 1 and
/// black for 0, the lower block its opposite, so a reader compares two blocks and needs no threshold. 32
/// columns hold the number as a Gray code, most significant bit first: from one number to the next one column
/// changes, and a picture that is half one frame and half the next reads as one of the two or not at all. 8
/// columns hold its CRC-8.
///
/// Below lie a slow gradient in luma and chroma with a faint grain, rings of fine detail, a window through
/// which a texture scrolls, soft discs and a box that move, and a sweeping bar: enough that 1 Mbit/s of VP8
/// is used up, and little enough that it suffices.
package struct TestCard: VideoSource {
  package let width: Int
  package let height: Int
  private let background: I420Image
  // Smooth noise of the picture's size that continues across its edges, -128 to 127.
  private let texture: [Int8]

  private static let columns = 40

  /// A card of at least 160x96 pixels.
  package init(width: Int = 640, height: Int = 360) {
    precondition(width >= 160 && height >= 96)
    self.width = width
    self.height = height
    texture = Self.makeTexture(width: width, height: height)
    background = Self.makeBackground(width: width, height: height, grain: texture)
  }

  package mutating func next(frameIndex: Int, into picture: inout I420Image) -> Bool {
    render(UInt32(truncatingIfNeeded: frameIndex), into: &picture)
    return true
  }

  /// Makes `picture` the frame with this number; the same number gives the same pixels.
  package func render(_ number: UInt32, into picture: inout I420Image) {
    if picture.width == width, picture.height == height {
      Self.copy(background.y, into: picture.mutableLuma)
      Self.copy(background.u, into: picture.mutableU)
      Self.copy(background.v, into: picture.mutableV)
    } else {
      picture = background
    }
    var luma = picture.mutableLuma
    drawWindow(Int(number % 18_000), into: &luma)
    drawShapes(Double(number % 18_000) / 30, into: &luma)
    drawNumber(number, into: &luma)
  }

  private static func copy(_ source: [UInt8], into target: consuming MutableSpan<UInt8>) {
    let source = source.span
    target.withUnsafeMutableBufferPointer { target in
      source.withUnsafeBufferPointer { source in
        guard let to = target.baseAddress, let from = source.baseAddress else { return }
        to.update(from: from, count: min(target.count, source.count))
      }
    }
  }

  // MARK: The number

  private static func blockSide(width: Int) -> Int { width / columns }

  private static func crc(_ value: UInt32) -> UInt8 {
    // CRC-8 with polynomial x^8 + x^2 + x + 1, started at 0xff so that 0 does not check as 0.
    var crc: UInt8 = 0xff
    for shift in stride(from: 24, through: 0, by: -8) {
      crc ^= UInt8(truncatingIfNeeded: value >> UInt32(shift))
      for _ in 0..<8 { crc = crc & 0x80 != 0 ? crc << 1 ^ 0x07 : crc << 1 }
    }
    return crc
  }

  private func drawNumber(_ number: UInt32, into luma: inout MutableSpan<UInt8>) {
    let gray = number ^ number >> 1
    let bits = UInt64(gray) << 8 | UInt64(Self.crc(gray))
    let side = Self.blockSide(width: width)
    for column in 0..<Self.columns {
      let isOne = bits >> UInt64(Self.columns - 1 - column) & 1 == 1
      let (upper, lower): (UInt8, UInt8) = isOne ? (208, 48) : (48, 208)
      for row in 0..<2 * side {
        let start = row * width + column * side
        let value = row < side ? upper : lower
        for index in start..<start + side { luma[index] = value }
      }
    }
  }

  /// The number that a picture of a test card carries; nil when its blocks are not clear or do not check.
  package static func readNumber(in picture: borrowing I420Image) -> UInt32? {
    let side = blockSide(width: picture.width)
    guard side >= 4, picture.height >= 2 * side else { return nil }
    let (width, luma) = (picture.width, picture.y.span)
    // The inner half of each block, away from edges that compression blurs.
    let (from, to) = (side / 4, side - side / 4)
    var bits: UInt64 = 0
    for column in 0..<columns {
      var difference = 0
      for row in from..<to {
        let start = row * width + column * side
        for index in start + from..<start + to {
          difference += Int(luma[index]) - Int(luma[index + side * width])
        }
      }
      let mean = difference / ((to - from) * (to - from))
      guard abs(mean) >= 40 else { return nil }
      bits = bits << 1 | (mean > 0 ? 1 : 0)
    }
    let gray = UInt32(truncatingIfNeeded: bits >> 8)
    guard crc(gray) == UInt8(truncatingIfNeeded: bits) else { return nil }
    var number = gray
    for shift in [1, 2, 4, 8, 16] as [UInt32] { number ^= number >> shift }
    return number
  }

  // MARK: The picture

  /// Random values on grids of three sizes, joined smoothly.
  private static func makeTexture(width: Int, height: Int) -> [Int8] {
    var sums = [Double](repeating: 0, count: width * height)
    for (cells, weight, seed) in [(20, 40.0, 1), (50, 45.0, 2), (110, 42.0, 3)] as [(Int, Double, UInt64)] {
      let rows = max(2, cells * height / width)
      var random = RandomSource(seed: seed)
      let values = (0..<cells * rows).map { _ in Double.random(in: -1...1, using: &random) }
      for y in 0..<height {
        let (top, down) = split(y, of: height, cells: rows)
        for x in 0..<width {
          let (left, across) = split(x, of: width, cells: cells)
          let right = (left + 1) % cells
          let (upper, lower) = (top * cells, (top + 1) % rows * cells)
          let above = values[upper + left] * (1 - across) + values[upper + right] * across
          let below = values[lower + left] * (1 - across) + values[lower + right] * across
          sums[y * width + x] += weight * (above * (1 - down) + below * down)
        }
      }
    }
    return sums.map { Int8(max(-128, min(127, $0))) }
  }

  /// The grid line before a pixel, and how far it is to the next, eased at both ends.
  private static func split(_ pixel: Int, of count: Int, cells: Int) -> (Int, Double) {
    let place = Double(pixel * cells) / Double(count)
    let fraction = place - place.rounded(.down)
    return (Int(place), fraction * fraction * (3 - 2 * fraction))
  }

  private static func makeBackground(width: Int, height: Int, grain: [Int8]) -> I420Image {
    var picture = I420Image(width: width, height: height)
    let (w, h) = (Double(width), Double(height))
    var luma = picture.mutableLuma
    for y in 0..<height {
      for x in 0..<width {
        let (across, down) = (Double(x) / w, Double(y) / h)
        var value = 56 + 96 * across + 56 * down + Double(grain[y * width + x]) * 0.12
        // Rings in the lower left corner: detail that grows finer outwards.
        let (dx, dy) = (Double(x) - 0.17 * w, Double(y) - 0.72 * h)
        let radius = (dx * dx + dy * dy).squareRoot() / (0.15 * w)
        if radius < 1 { value += 36 * cos(radius * radius * 22) * (1 - radius) }
        luma[y * width + x] = UInt8(max(16, min(235, value.rounded())))
      }
    }
    let (chromaWidth, chromaHeight) = (picture.chromaWidth, picture.chromaHeight)
    var u = picture.mutableU
    for y in 0..<chromaHeight {
      for x in 0..<chromaWidth { u[y * chromaWidth + x] = UInt8(104 + 48 * x / chromaWidth) }
    }
    var v = picture.mutableV
    for y in 0..<chromaHeight {
      for x in 0..<chromaWidth { v[y * chromaWidth + x] = UInt8(152 - 48 * y / chromaHeight) }
    }
    return picture
  }

  /// Through the window the texture moves two pixels left and one up a frame.
  private func drawWindow(_ frame: Int, into luma: inout MutableSpan<UInt8>) {
    let columns = width * 36 / 100..<width * 72 / 100
    let texture = texture.span
    for y in height * 22 / 100..<height * 62 / 100 {
      let row = (y + frame) % height * width
      var x = (columns.lowerBound + 2 * frame) % width
      for column in columns {
        luma[y * width + column] = UInt8(128 + Int(texture[row + x]) * 5 / 8)
        x = x + 1 == width ? 0 : x + 1
      }
    }
  }

  private func drawShapes(_ seconds: Double, into luma: inout MutableSpan<UInt8>) {
    let (w, h) = (Double(width), Double(height))
    // A bar that sweeps from left to right in four seconds, with soft sides.
    let bar = (seconds / 4).truncatingRemainder(dividingBy: 1) * (w + 0.1 * w) - 0.05 * w
    blend(centre: (bar, 0.52 * h), reach: (0.03 * w, 0.1 * h), level: 200, into: &luma) { dx, _ in
      1 - abs(dx) / (0.03 * w)
    }
    // Discs on closed paths; the paths' periods are whole parts of ten minutes, after which the card repeats.
    for (radius, level, periods, phase) in [
      (0.11, 190, (5.0, 4.0), 0.0), (0.08, 70, (4.0, 6.0), 1.3), (0.055, 220, (3.0, 5.0), 2.6),
    ] as [(Double, Double, (Double, Double), Double)] {
      let x = w * (0.6 + 0.3 * sin(2 * .pi * seconds / periods.0 + phase))
      let y = h * (0.56 + 0.26 * cos(2 * .pi * seconds / periods.1 + phase))
      let r = radius * h
      blend(centre: (x, y), reach: (r + 1, r + 1), level: level, into: &luma) { dx, dy in
        let squared = dx * dx + dy * dy
        if squared >= (r + 1) * (r + 1) { return 0 }
        return squared <= (r - 1) * (r - 1) ? 1 : (r + 1 - squared.squareRoot()) / 2
      }
    }
    // A box that swings along the bottom.
    let x = w * (0.5 + 0.38 * sin(2 * .pi * seconds / 6))
    blend(centre: (x, 0.9 * h), reach: (0.06 * w, 0.05 * h), level: 100, into: &luma) { dx, _ in
      min(1, max(0, 0.06 * w - abs(dx))) * (0.6 + 0.4 * dx / (0.06 * w))
    }
  }

  /// Mixes `level` over the pixels within `reach` of `centre`, by as much (0 to 1) as `weight` says at a
  /// distance from it.
  private func blend(
    centre: (x: Double, y: Double), reach: (x: Double, y: Double), level: Double,
    into luma: inout MutableSpan<UInt8>, weight: (Double, Double) -> Double
  ) {
    func clipped(_ centre: Double, _ reach: Double, _ limit: Int) -> Range<Int> {
      let start = min(limit, max(0, Int(centre - reach)))
      return start..<min(limit, max(start, Int(centre + reach) + 1))
    }
    let rows = clipped(centre.y, reach.y, height)
    let pixels = clipped(centre.x, reach.x, width)
    for y in rows {
      for x in pixels {
        let share = max(0, min(1, weight(Double(x) - centre.x, Double(y) - centre.y)))
        let old = Double(luma[y * width + x])
        luma[y * width + x] = UInt8(old + (level - old) * share + 0.5)
      }
    }
  }
}
