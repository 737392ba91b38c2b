import PalbeUnits

/// Structural similarity (Wang, Bovik, Sheikh, Simoncelli 2004), on luma alone.
///
/// The mean over windows of 8x8 pixels, four pixels apart, each pixel of a window counting the same; K1 =
/// 0.01, K2 = 0.03, L = 255. Sums are made for blocks of 4x4 pixels first and four blocks make a window, so
/// each pixel is read once. Up to three columns and rows at the right and bottom that fill no block are left
/// out.
package enum SSIM {
  private struct Sums {
    var a: Int32 = 0
    var b: Int32 = 0
    var aa: Int32 = 0
    var bb: Int32 = 0
    var ab: Int32 = 0

    mutating func add(_ other: Sums) {
      a += other.a
      b += other.b
      aa += other.aa
      bb += other.bb
      ab += other.ab
    }
  }

  /// 1 for equal pictures, near 0 for unrelated ones; nil when the sizes differ or a side is shorter than 8
  /// pixels.
  package static func luma(_ first: borrowing I420Image, _ second: borrowing I420Image) -> Double? {
    let (width, height) = (first.width, first.height)
    guard width == second.width, height == second.height, width >= 8, height >= 8 else { return nil }
    let columns = width / 4
    let rows = height / 4
    var above = [Sums](repeating: Sums(), count: columns)
    var current = above
    var total = 0.0
    first.y.withUnsafeBufferPointer { a in
      second.y.withUnsafeBufferPointer { b in
        for row in 0..<rows {
          for column in 0..<columns {
            current[column] = blockSums(a, b, at: row * 4 * width + column * 4, width: width)
          }
          if row > 0 {
            for column in 1..<columns {
              var window = above[column - 1]
              window.add(above[column])
              window.add(current[column - 1])
              window.add(current[column])
              total += similarity(window)
            }
          }
          swap(&above, &current)
        }
      }
    }
    return total / Double((rows - 1) * (columns - 1))
  }

  private static func blockSums(
    _ a: UnsafeBufferPointer<UInt8>, _ b: UnsafeBufferPointer<UInt8>, at offset: Int, width: Int
  ) -> Sums {
    var sums = Sums()
    for row in 0..<4 {
      for index in offset + row * width..<offset + row * width + 4 {
        let (x, y) = (Int32(a[index]), Int32(b[index]))
        sums.a &+= x
        sums.b &+= y
        sums.aa &+= x &* x
        sums.bb &+= y &* y
        sums.ab &+= x &* y
      }
    }
    return sums
  }

  private static func similarity(_ sums: Sums) -> Double {
    // Means and variances times 64 and 64 squared; the constants likewise, and the factors cancel.
    let count = 64.0
    let c1 = 0.01 * 255 * 0.01 * 255 * count * count
    let c2 = 0.03 * 255 * 0.03 * 255 * count * count
    let (a, b) = (Double(sums.a), Double(sums.b))
    let varianceA = Double(sums.aa) * count - a * a
    let varianceB = Double(sums.bb) * count - b * b
    let covariance = Double(sums.ab) * count - a * b
    return (2 * a * b + c1) * (2 * covariance + c2)
      / ((a * a + b * b + c1) * (varianceA + varianceB + c2))
  }
}
