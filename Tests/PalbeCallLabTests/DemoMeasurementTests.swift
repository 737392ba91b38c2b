import PalbeUnits
import Testing

@testable import PalbeCallLab

@Suite("What the demo computes from what it saw")
struct DemoMeasurementTests {
  @Test("A percentile is the nearest rank, and nothing has none")
  func percentiles() {
    let values = Array(1...100).reversed().map { $0 }
    #expect(Percentile.of(values, percent: 50) == 50)
    #expect(Percentile.of(values, percent: 99) == 99)
    #expect(Percentile.of(values, percent: 100) == 100)
    #expect(Percentile.of(values, percent: 0) == 1)
    #expect(Percentile.of([7], percent: 99) == 7)
    #expect(Percentile.of([Int](), percent: 50) == nil)
    #expect(Percentile.median([400, 100, 300, 200, 500]) == 300)
    #expect(Percentile.mean([]) == nil)
    #expect(Percentile.mean([1, 2]) == 1.5)
  }

  private func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

  private func captures(_ count: Int, base: UInt32 = 0) -> [Capture] {
    (0..<count).map { Capture(number: base + UInt32($0), time: at($0 * 33)) }
  }

  @Test("Pictures count from the first decode to the end; latency is capture to decode")
  func counts() {
    // Picture 10 is the first decoded, 20 ms after its capture; 15 never comes; 30 and later are after the end.
    let captures = captures(40)
    let decodes = captures[10...].filter { $0.number != 15 }.map {
      Decode(number: $0.number, time: $0.time + .milliseconds(20))
    }
    let measured = VideoMeasurement(captures: captures, decodes: decodes, until: at(30 * 33))
    // First decode at 350 ms: captures 11 to 29 count.
    #expect(measured.captured == 19)
    #expect(measured.decoded == 18)
    #expect(measured.outOfOrder == 0)
    #expect(measured.unreadable == 0)
    #expect(measured.latencies == Array(repeating: TimeDelta.milliseconds(20), count: 18))
    #expect(abs(measured.decodedPercent - 100 * 18 / 19) < 1e-9)
  }

  @Test("A swap, a repetition and a picture nobody captured are out of order")
  func order() {
    let captures = captures(10)
    func measure(_ numbers: [UInt32?]) -> VideoMeasurement {
      VideoMeasurement(
        captures: captures, decodes: numbers.map { Decode(number: $0, time: at(400)) }, until: at(1_000))
    }
    #expect(measure([0, 1, 2, 4]).outOfOrder == 0)
    #expect(measure([0, 2, 1, 3]).outOfOrder == 1)
    #expect(measure([0, 1, 1, 2]).outOfOrder == 1)
    #expect(measure([0, 1_000_000]).outOfOrder == 1)
    #expect(measure([0, nil, 1]).unreadable == 1)
    #expect(measure([]) == VideoMeasurement())
    #expect(measure([nil]).captured == 0)
  }

  @Test("A picture lost at the key change is counted as such")
  func rekeying() {
    let captures = captures(200)
    let decodes = captures.filter { $0.number != 100 && $0.number != 20 }.map {
      Decode(number: $0.number, time: $0.time + .milliseconds(5))
    }
    let measured = VideoMeasurement(
      captures: captures, decodes: decodes, until: at(10_000), rekeyedAt: at(3_300))
    #expect(measured.capturedAroundRekeying == 61)
    #expect(measured.missingAroundRekeying == 1)
  }

  @Test("Shares of nothing are the bad ones")
  func emptiness() {
    #expect(AudioMeasurement().concealedPercent == 100)
    #expect(AudioMeasurement(played: 199, concealed: 1).concealedPercent == 0.5)
    #expect(VideoMeasurement().decodedPercent == 0)
    #expect(AuditMeasurement().foundPercent == 0)
    #expect(DemoMeasurements().setup == nil)
    #expect(DemoMeasurements().meanSSIM == nil)
  }

  @Test("Set-up is the median; a set-up that never ended has no median")
  func setups() {
    var measured = DemoMeasurements()
    measured.setups = [.milliseconds(300), .milliseconds(100), .milliseconds(200)]
    #expect(measured.setup == .milliseconds(200))
    measured.setups.append(nil)
    #expect(measured.setup == nil)
  }
}
