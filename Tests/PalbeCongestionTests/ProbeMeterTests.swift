import PalbeUnits
import Testing

@testable import PalbeCongestion

@Suite("What a probe proves")
struct ProbeMeterTests {
  /// Twenty packets of a cluster of 1 Mbit/s that media has made faster; every fifth one may be lost.
  private func result(isLossy: Bool, loss: Double) throws -> ProbeMeter.Result {
    var meter = ProbeMeter(ProbeCluster(rate: .megabitsPerSecond(1), byteCount: 20_000, id: 1))
    for number in 0..<20 {
      // 1.25 Mbit/s.
      let sent = Instant(nanoseconds: 1_000_000_000) + .microseconds(6_400 * number)
      meter.sent(byteCount: 1_000, at: sent)
      if isLossy, number % 5 == 2 {
        meter.lost()
      } else {
        meter.received(byteCount: 1_000, arrival: sent + .milliseconds(25), isLate: false)
      }
    }
    return try #require(meter.result(loss: loss))
  }

  @Test("Bug: at 20 % loss a probe proved more than arrived and more than it was meant to")
  func loss() throws {
    let result = try result(isLossy: true, loss: 0.2)
    #expect((0.99e6...1.01e6).contains(result.rate) && !result.isSaturated, "\(result)")
  }

  @Test("What did arrive is proven, also where a burst of media was faster than asked")
  func burst() throws {
    let result = try result(isLossy: false, loss: 0)
    #expect((1.24e6...1.26e6).contains(result.rate) && !result.isSaturated, "\(result)")
  }
}
