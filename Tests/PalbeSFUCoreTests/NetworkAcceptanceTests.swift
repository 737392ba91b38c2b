import PalbeNetSim
import PalbeUnits
import Testing

@testable import PalbeSFUCore

/// Simulcast through a whole worker to a subscriber behind a link that changes: virtual time, the seed is in the message.
@Suite("Acceptance over simulated networks")
struct NetworkAcceptanceTests {
  static let rates: [DataRate] = [
    .kilobitsPerSecond(150), .kilobitsPerSecond(500), .kilobitsPerSecond(1_400),
  ]

  @Test(
    "issue 4: video never frozen over 2 s, estimate within 20 % of the link in 5 s, one layer change in 10 s",
    arguments: SimulatedLink.acceptance, [1] as [UInt64])
  func acceptance(scenario: SimulatedLink, seed: UInt64) throws {
    let call = try LayeredCall(Self.rates, seed: seed)
    try call.run(until: .seconds(75), over: scenario)
    let freeze = call.viewer.pictures.longestFreeze(from: call.start + .seconds(1), to: call.world.now)
    let changes = call.viewer.layers.changes.map {
      "\(Int(($0.at - call.start).inMilliseconds)):\($0.value)"
    }
    print("\(scenario), seed \(seed): longest freeze \(freeze.inMilliseconds) ms, layers \(changes)")
    #expect(freeze < .seconds(2), "\(scenario), seed \(seed)")
    // Others who come back before 10 s are over force a change: down is at once.
    let most = scenario.name == SimulatedLink.crossTraffic.name ? 2 : 1
    #expect(
      call.viewer.layers.mostChanges(within: .seconds(10), from: call.start + .seconds(10)) <= most,
      "\(scenario), seed \(seed): \(changes)")
    guard scenario.name != SimulatedLink.crossTraffic.name else { return }
    let drops = scenario.name == SimulatedLink.rateDrop.name
    for (from, to, rate) in drops ? [(5, 30, 2_000), (35, 60, 300), (65, 75, 2_000)] : [(5, 75, 2_000)] {
      #expect(
        call.near(rate, from: from, to: to) >= 0.75
          && abs(call.median(from: from, to: to) - rate) <= rate / 5,
        "\(scenario), seed \(seed), \(from) s: median \(call.median(from: from, to: to)) kbit/s")
    }
  }
}
