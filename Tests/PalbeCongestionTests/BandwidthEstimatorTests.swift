import PalbeCongestion
import PalbeNetSim
import PalbeUnits
import Testing

/// Runs in virtual time. What `Flow` samples every 100 ms is judged here.
@Suite("Bandwidth estimation over simulated links")
struct BandwidthEstimatorTests {
  /// Samples of a span of seconds.
  private func samples(_ flow: Flow, _ from: Int, _ to: Int) -> [Flow.Sample] {
    flow.samples.filter { $0.at >= .seconds(from) && $0.at < .seconds(to) }
  }

  /// The part of the samples whose estimate lies within 20 % of a rate, in kbit/s.
  private func near(_ samples: [Flow.Sample], _ rate: Int) -> Double {
    let hits = samples.filter { abs($0.estimate - rate * 1_000) <= rate * 200 }
    return Double(hits.count) / Double(max(samples.count, 1))
  }

  private func median(_ samples: [Flow.Sample]) -> Int {
    let sorted = samples.map(\.estimate).sorted()
    return sorted.isEmpty ? 0 : sorted[sorted.count / 2] / 1_000
  }

  /// The queue that one sample in twenty exceeds.
  private func longQueue(_ samples: [Flow.Sample]) -> TimeDelta {
    let sorted = samples.map(\.queue).sorted()
    return sorted.isEmpty ? .zero : sorted[sorted.count * 95 / 100]
  }

  @Test(
    "Constant 2 Mbit/s: within 20 % after 5 s, and packets hardly wait",
    arguments: 1...4 as ClosedRange<UInt64>)
  func constant(seed: UInt64) {
    let world = CongestionWorld(.constant, seed: seed)
    let flow = world.add(.adaptive(.megabitsPerSecond(5)))
    world.run(until: .seconds(40))
    #expect(near(samples(flow, 5, 40), 2_000) >= 0.98, "seed \(seed), median \(median(samples(flow, 5, 40)))")
    #expect(longQueue(samples(flow, 5, 40)) < .milliseconds(120), "seed \(seed)")
    #expect(flow.paddingBytes * 20 < flow.sentBytes, "seed \(seed)")
  }

  @Test(
    "2 Mbit/s, 300 kbit/s and back: within 20 % of the link 5 s after each change",
    arguments: 1...4 as ClosedRange<UInt64>)
  func rateDrop(seed: UInt64) {
    let world = CongestionWorld(.rateDrop, seed: seed)
    let flow = world.add(.adaptive(.megabitsPerSecond(5)))
    world.run(until: .seconds(90))
    for (from, to, rate) in [(5, 30, 2_000), (35, 60, 300), (65, 90, 2_000)] {
      let span = samples(flow, from, to)
      #expect(near(span, rate) >= 0.95, "seed \(seed), from \(from) s: median \(median(span))")
      #expect(near(Array(span.prefix(5)), rate) >= 0.6, "seed \(seed), \(from) s: \(span[0].estimate)")
      #expect(longQueue(span) < .milliseconds(180), "seed \(seed), from \(from) s: \(longQueue(span))")
    }
  }

  @Test(
    "Random loss and bursts are not taken for congestion: the link is still used",
    arguments: [SimulatedLink.loss(5), .loss(10), .loss(20), .lossBursts], [1, 2, 3] as [UInt64])
  func loss(link: SimulatedLink, seed: UInt64) {
    let world = CongestionWorld(link, seed: seed)
    let flow = world.add(.adaptive(.megabitsPerSecond(5)))
    world.run(until: .seconds(45))
    let span = samples(flow, 5, 45)
    #expect(near(span, 2_000) >= 0.85, "\(link), seed \(seed): median \(median(span)), \(near(span, 2_000))")
    #expect(longQueue(span) < .milliseconds(200), "\(link), seed \(seed)")
  }

  @Test("100 ms of jitter is not taken for a queue", arguments: 1...4 as ClosedRange<UInt64>)
  func jitter(seed: UInt64) {
    let world = CongestionWorld(.jitter, seed: seed)
    let flow = world.add(.adaptive(.megabitsPerSecond(5)))
    world.run(until: .seconds(45))
    let span = samples(flow, 5, 45)
    #expect(near(span, 2_000) >= 0.85, "seed \(seed): median \(median(span)), \(near(span, 2_000))")
  }

  @Test(
    "100 ms of jitter hides no link that becomes slow, and none that becomes fast again",
    arguments: 1...4 as ClosedRange<UInt64>)
  func jitterAndDrop(seed: UInt64) throws {
    func line(_ rate: Int) -> Link {
      Link(
        delay: .milliseconds(25), jitter: .milliseconds(100), bandwidth: .kilobitsPerSecond(rate),
        queue: .milliseconds(300))
    }
    let link = SimulatedLink(
      "100 ms jitter, 2 Mbit/s, 300 kbit/s and back",
      [
        .init(after: .zero, line(2_000)), .init(after: .seconds(20), line(300)),
        .init(after: .seconds(50), line(2_000)),
      ])
    let world = CongestionWorld(link, seed: seed)
    let rates: [DataRate] = [.kilobitsPerSecond(150), .kilobitsPerSecond(500), .kilobitsPerSecond(1_500)]
    let flow = world.add(.layers(rates))
    world.run(until: .seconds(80))
    let low = try #require(flow.samples.first { $0.at >= .seconds(20) && $0.estimate <= 500_000 })
    let high = try #require(flow.samples.first { $0.at >= .seconds(50) && $0.estimate >= 1_600_000 })
    print("seed \(seed): down after \(low.at - .seconds(20)), up after \(high.at - .seconds(50))")
    #expect(low.at - .seconds(20) < .milliseconds(1_500), "seed \(seed): \(low.at)")
    #expect(high.at - .seconds(50) < .seconds(10), "seed \(seed): \(high.at)")
    #expect(longQueue(samples(flow, 25, 50)) < .milliseconds(250), "seed \(seed)")
  }

  @Test("Others come and go: the estimate gives way and comes back", arguments: 1...2 as ClosedRange<UInt64>)
  func crossTraffic(seed: UInt64) {
    let world = CongestionWorld(.crossTraffic, seed: seed)
    let flow = world.add(.adaptive(.megabitsPerSecond(5)))
    world.run(until: .seconds(74))
    // Off from 0 to 14 s and from 24 s, on between: the world starts at 1 s of the clock.
    #expect((700...1_300).contains(median(samples(flow, 19, 24))), "seed \(seed)")
    #expect(near(samples(flow, 29, 38), 2_000) > 0.9, "seed \(seed)")
    #expect((700...1_300).contains(median(samples(flow, 44, 49))), "seed \(seed)")
    #expect(near(samples(flow, 54, 63), 2_000) > 0.9, "seed \(seed)")
  }

  @Test("Half of the feedback is lost: slower, not wrong")
  func feedbackLost() {
    let world = CongestionWorld(.constant, seed: 5, back: Link(delay: .milliseconds(25), loss: 0.5))
    let flow = world.add(.adaptive(.megabitsPerSecond(5)))
    world.run(until: .seconds(40))
    #expect(near(samples(flow, 10, 40), 2_000) >= 0.9, "median \(median(samples(flow, 10, 40)))")
  }

  @Test("All feedback stops: the rate falls step by step, and comes back with the feedback")
  func feedbackStops() {
    let world = CongestionWorld(.constant, seed: 6)
    let flow = world.add(.adaptive(.megabitsPerSecond(5)))
    world.run(until: .seconds(20))
    flow.sendsFeedback = false
    world.run(until: .seconds(30))
    #expect(flow.estimator.estimate < .kilobitsPerSecond(500))
    #expect(flow.estimator.estimate >= .kilobitsPerSecond(50))
    flow.sendsFeedback = true
    world.run(until: .seconds(45))
    #expect(near(samples(flow, 36, 45), 2_000) > 0.9, "median \(median(samples(flow, 36, 45)))")
  }

  @Test("The receiver's clock runs fast or slow by 300 parts in a million", arguments: [-300, 300])
  func drift(parts: Int) {
    let world = CongestionWorld(.constant, seed: 7)
    let flow = world.add(.adaptive(.megabitsPerSecond(5)))
    flow.drift = parts
    world.run(until: .seconds(60))
    #expect(near(samples(flow, 5, 60), 2_000) >= 0.95, "median \(median(samples(flow, 5, 60)))")
  }

  @Test("A sender of little never believes in a rate that it has not seen")
  func applicationLimited() {
    let world = CongestionWorld(.constant, seed: 8)
    // Nobody wants more: no probes, and no growth beyond what arrives and a little.
    let flow = world.add(.fixed(.kilobitsPerSecond(200)), desired: .kilobitsPerSecond(200))
    world.run(until: .seconds(60))
    #expect(flow.samples.allSatisfy { $0.estimate <= 400_000 }, "\(flow.estimator.estimate)")
    #expect(flow.paddingBytes == 0)
    // Somebody does: probes find the link, and not more than it.
    flow.estimator.setDesired(.megabitsPerSecond(9), at: world.now)
    world.run(until: .seconds(90))
    #expect(near(samples(flow, 66, 90), 2_000) > 0.9, "median \(median(samples(flow, 66, 90)))")
    #expect(flow.estimator.isApplicationLimited)
    #expect(flow.paddingBytes * 8 / 30 < 150_000, "probes cost less than 150 kbit/s")
  }

  @Test("Without transport feedback REMB is the estimate, within the limits; with it REMB is ignored")
  func receiverEstimate() {
    let world = CongestionWorld(.constant, seed: 9)
    let flow = world.add(.adaptive(.megabitsPerSecond(5)))
    flow.sendsFeedback = false
    flow.receiverEstimate = .kilobitsPerSecond(800)
    world.run(until: .seconds(5))
    #expect(flow.estimator.estimate == .kilobitsPerSecond(800))
    flow.receiverEstimate = .megabitsPerSecond(500)
    world.run(until: .seconds(7))
    #expect(flow.estimator.estimate == .megabitsPerSecond(20))
    flow.sendsFeedback = true
    flow.receiverEstimate = .kilobitsPerSecond(60)
    world.run(until: .seconds(30))
    #expect(near(samples(flow, 20, 30), 2_000) > 0.9, "median \(median(samples(flow, 20, 30)))")
  }

  @Test("Minimum and maximum hold; the round trip is the path's and the report's")
  func limits() {
    let world = CongestionWorld(.rateDrop, seed: 10)
    let limits = BandwidthEstimator.Limits(
      minimum: .kilobitsPerSecond(400), start: .kilobitsPerSecond(500), maximum: .kilobitsPerSecond(900))
    let flow = world.add(.adaptive(.megabitsPerSecond(5)), limits: limits)
    world.run(until: .seconds(40))
    #expect(flow.samples.allSatisfy { (400_000...900_000).contains($0.estimate) })
    #expect(near(samples(flow, 5, 30), 900) == 1)
    world.run(until: .seconds(80))
    let roundTrip = flow.estimator.roundTripTime ?? .zero
    #expect((TimeDelta.milliseconds(48)...TimeDelta.milliseconds(150)).contains(roundTrip))
  }

  @Test(
    "Two flows share a link: neither takes more than 70 % in the long run",
    arguments: 1...2 as ClosedRange<UInt64>)
  func fairness(seed: UInt64) {
    let world = CongestionWorld(.constant, seed: seed)
    let first = world.add(.adaptive(.megabitsPerSecond(5)))
    world.run(until: .seconds(10))
    let second = world.add(.adaptive(.megabitsPerSecond(5)))
    world.run(until: .seconds(60))
    let before = (first.arrivedBytes, second.arrivedBytes)
    world.run(until: .seconds(120))
    let shares = (first.arrivedBytes - before.0, second.arrivedBytes - before.1)
    let part = Double(shares.0) / Double(shares.0 + shares.1)
    #expect((0.3...0.7).contains(part), "seed \(seed): \(part)")
    #expect(shares.0 + shares.1 > 2_000_000 / 8 * 60 * 6 / 10, "seed \(seed): the link is used")
  }

  @Test(
    "With simulcast layers: no pause over 2 s, at most one change in 10 s once settled",
    arguments: SimulatedLink.acceptance, [1, 2, 104] as [UInt64])
  func layers(link: SimulatedLink, seed: UInt64) {
    let world = CongestionWorld(link, seed: seed)
    let rates: [DataRate] = [.kilobitsPerSecond(150), .kilobitsPerSecond(500), .kilobitsPerSecond(1_500)]
    let flow = world.add(.layers(rates))
    world.run(until: .seconds(90))
    let freeze = flow.arrivals.longestFreeze(from: world.start + .seconds(1), to: world.now)
    #expect(freeze < .seconds(2), "\(link), seed \(seed)")
    let times = flow.layers.changes.map { ($0.at - world.start).inMilliseconds }
    // Cross traffic that comes back before 10 s are over forces a change: down is at once.
    let most = link.name == SimulatedLink.crossTraffic.name ? 2 : 1
    #expect(
      flow.layers.mostChanges(within: .seconds(10), from: world.start + .seconds(10)) <= most,
      "\(link), seed \(seed): \(times)")
    #expect(flow.layers.changes.count < 12, "\(link), seed \(seed): \(times)")
  }
}
