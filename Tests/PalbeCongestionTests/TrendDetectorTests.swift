import PalbeUnits
import Testing

@testable import PalbeCongestion

@Suite("What the slope of the delay says of a link")
struct TrendDetectorTests {
  /// Distances of bursts that leave 33 ms apart, and wait up to 100 ms each and for the one before. From an instant on the
  /// link carries only a part of what is sent.
  private func steps(
    seed: UInt64, count: Int, carries part: Double = 1, from first: Int = .max
  ) -> [PacketGroups.Step] {
    var random = RandomSource(seed: seed)
    var queue = 0.0
    var last = 0.0
    return (1...count).map { number in
      if number >= first { queue += 33 * (1 / part - 1) }
      let arrival = max(33 * Double(number) + queue + Double.random(in: 0...100, using: &random), last)
      defer { last = arrival }
      return PacketGroups.Step(
        sent: .milliseconds(33), arrived: .seconds((arrival - last) / 1_000),
        arrival: Instant(nanoseconds: Int64(arrival * 1e6)))
    }
  }

  /// Numbers of the distances at which a slope began to count as a queue.
  private func alarms(_ steps: [PacketGroups.Step], jitter: Double) -> [Int] {
    var trend = TrendDetector()
    var alarms: [Int] = []
    for (number, step) in steps.enumerated() {
      let before = trend.usage
      trend.update(step, jitter: jitter)
      if trend.usage == .over, before != .over { alarms.append(number) }
    }
    return alarms
  }

  @Test("Bug: 100 ms of jitter, of which 28 are seen, was taken for a queue every few seconds")
  func jitter() {
    var before = 0
    var after = 0
    for seed in 1...30 as ClosedRange<UInt64> {
      // A minute each.
      let steps = steps(seed: seed, count: 1_800)
      before += alarms(steps, jitter: 0).count
      after += alarms(steps, jitter: 28).count
    }
    #expect(before > 30 && after * 10 <= before, "\(before) without, \(after) with it")
  }

  @Test("A queue that grows by a third or more is seen within a second, through the same jitter")
  func queue() throws {
    for seed in 1...30 as ClosedRange<UInt64> {
      for part in [0.2, 0.66] {
        let alarms = alarms(steps(seed: seed, count: 400, carries: part, from: 300), jitter: 28)
        let first = try #require(alarms.first { $0 >= 299 }, "seed \(seed), \(part)")
        #expect(first - 299 <= 30, "seed \(seed), \(part): \(first)")
      }
    }
  }

  @Test("No jitter hides a queue that grows by half of the time")
  func extremeJitter() throws {
    let first = try #require(
      alarms(steps(seed: 1, count: 400, carries: 0.5, from: 300), jitter: 10_000).first { $0 >= 299 })
    #expect(first - 299 <= 30)
  }
}
