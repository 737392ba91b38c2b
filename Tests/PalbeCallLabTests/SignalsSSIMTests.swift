import PalbeCallLab
import PalbeUnits
import Testing

@Suite struct SignalsSSIMTests {
  private static func noise(_ seed: UInt64, width: Int, height: Int, range: UInt64 = 256) -> I420Image {
    var picture = I420Image(width: width, height: height)
    var random = RandomSource(seed: seed)
    var luma = picture.mutableLuma
    for index in luma.indices { luma[index] = UInt8(random.next() % range) }
    return picture
  }

  /// The formula as it is written, over the same windows.
  private static func reference(_ first: I420Image, _ second: I420Image) -> Double {
    let width = first.width
    var values = [Double]()
    for top in stride(from: 0, through: first.height / 4 * 4 - 8, by: 4) {
      for left in stride(from: 0, through: width / 4 * 4 - 8, by: 4) {
        let pixels = (0..<64).map { (top + $0 / 8) * width + left + $0 % 8 }
        let a = pixels.map { Double(first.y[$0]) }
        let b = pixels.map { Double(second.y[$0]) }
        let (meanA, meanB) = (a.reduce(0, +) / 64, b.reduce(0, +) / 64)
        let varianceA = a.reduce(0) { $0 + ($1 - meanA) * ($1 - meanA) } / 64
        let varianceB = b.reduce(0) { $0 + ($1 - meanB) * ($1 - meanB) } / 64
        let covariance = zip(a, b).reduce(0) { $0 + ($1.0 - meanA) * ($1.1 - meanB) } / 64
        let (c1, c2) = (2.55 * 2.55, 7.65 * 7.65)
        values.append(
          (2 * meanA * meanB + c1) * (2 * covariance + c2)
            / ((meanA * meanA + meanB * meanB + c1) * (varianceA + varianceB + c2)))
      }
    }
    return values.reduce(0, +) / Double(values.count)
  }

  @Test(
    "Wang et al. 2004, equation 13: sums by blocks give what the formula gives",
    arguments: [(32, 24), (35, 30)])
  func formula(width: Int, height: Int) throws {
    let first = Self.noise(1, width: width, height: height)
    let faint = Self.noise(2, width: width, height: height, range: 40)
    let mixed = I420Image(
      width: width, height: height, y: zip(first.y, faint.y).map { UInt8(min(255, Int($0) + Int($1))) },
      u: first.u, v: first.v)!
    for other in [mixed, faint] {
      #expect(abs(try #require(SSIM.luma(first, other)) - Self.reference(first, other)) < 1e-9)
    }
  }

  @Test("equal pictures have 1, unrelated ones near 0; chroma does not count") func extremes() throws {
    let first = Self.noise(1, width: 64, height: 48)
    #expect(SSIM.luma(first, first) == 1)
    #expect(abs(try #require(SSIM.luma(first, Self.noise(2, width: 64, height: 48)))) < 0.1)
    let grey = I420Image(width: 64, height: 48, luma: 100, u: 0, v: 0)
    #expect(SSIM.luma(grey, I420Image(width: 64, height: 48, luma: 100, u: 255, v: 255)) == 1)
  }

  @Test("pictures of other sizes or smaller than a window have none") func sizes() {
    let picture = I420Image(width: 64, height: 48)
    #expect(SSIM.luma(picture, I420Image(width: 64, height: 46)) == nil)
    #expect(SSIM.luma(I420Image(width: 7, height: 48), I420Image(width: 7, height: 48)) == nil)
    #expect(SSIM.luma(I420Image(width: 8, height: 8), I420Image(width: 8, height: 8)) == 1)
  }
}
