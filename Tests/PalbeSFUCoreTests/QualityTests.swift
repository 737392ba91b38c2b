import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeUnits
import Testing

@testable import PalbeSFUCore

struct QualityTests {
  @Test(
    "ITU-T G.107: loss and delay lower the score, never out of 1 to 4.5",
    arguments: [
      (loss: Float(0), roundTrip: 20, quality: LiveKit.ConnectionQuality.excellent),
      (loss: 2, roundTrip: 50, quality: .excellent), (loss: 8, roundTrip: 50, quality: .good),
      (loss: 0, roundTrip: 500, quality: .good), (loss: 20, roundTrip: 100, quality: .poor),
      (loss: 100, roundTrip: 5_000, quality: .poor),
    ])
  func score(loss: Float, roundTrip: Int, quality: LiveKit.ConnectionQuality) {
    let score = ConnectionScore(lossPercent: loss, roundTrip: .milliseconds(roundTrip))
    #expect((1...4.5).contains(score.score))
    #expect(score.quality == quality)
  }

  private func told(_ client: ScriptedClient) -> [LiveKit.ConnectionQualityInfo] {
    client.messages.flatMap { message -> [LiveKit.ConnectionQualityInfo] in
      if case .connectionQuality(let update) = message { return update.updates }
      return []
    }
  }

  private func talk(_ world: World, _ client: ScriptedClient, seconds: Int) throws {
    for _ in 0..<seconds * 50 {
      client.tracks[0].timestamp &+= 960
      world.send([try client.media(0, payload: [1, 2, 3])], from: client)
      world.run(for: .milliseconds(20))
    }
  }

  @Test("connection_quality: told after 5 s, then on a change, to oneself and to those who subscribe")
  func changes() throws {
    let world = try World(seed: 3)
    let (alice, bob) = try call(world)
    try talk(world, alice, seconds: 11)
    let sid = alice.join?.participant?.sid
    for client in [alice, bob] {
      #expect(told(client).filter { $0.participantSid == sid }.map(\.quality) == [.excellent])
    }
    world.network.setLink(Link(delay: .milliseconds(10), loss: 0.3), from: alice.address, to: World.server)
    try talk(world, alice, seconds: 6)
    for client in [alice, bob] {
      #expect(told(client).last { $0.participantSid == sid }?.quality == .poor)
    }
    // Alice receives nothing of Bob's: his quality is not told to her.
    #expect(!told(alice).contains { $0.participantSid == bob.join?.participant?.sid })
  }

  @Test("LiveKit protocol §4 (34): LOST while the client's checks stay away")
  func lost() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    world.run(for: .seconds(6))
    alice.answersChecks = false
    world.run(for: .seconds(16))
    #expect(told(bob).last { $0.participantSid == alice.join?.participant?.sid }?.quality == .lost)
  }
}
