import PalbeCallCore
import PalbeNetSim
import PalbeUnits
import Testing

@Suite struct ReplayTests {
  private func run(seed: UInt64) throws -> [String] {
    let server = try ScriptedServer()
    try server.bringUp()
    var random = RandomSource(seed: seed)
    for number in UInt16(1)...200 {
      if random.next() % 20 != 0 { server.send(packet: server.audioPacket(number)) }
      if random.next() % 20 != 0 {
        server.send(packet: server.videoPacket(number, isKeyFrame: number % 50 == 1))
      }
      server.advance(by: .milliseconds(20))
    }
    #expect(server.spins == 0)
    return server.events.map { "\($0)" } + server.control.map { "\($0)" } + ["\(server.session.statistics)"]
      + server.videoFrames.map { "\($0.timestamp) \($0.arrival)" }
  }

  @Test("A run replays from its seed")
  func replay() throws {
    let first = try run(seed: 81)
    #expect(first.count > 200)
    let second = try run(seed: 81)
    #expect(second == first, "\(zip(first, second).first { $0 != $1 } ?? ("", ""))")
    #expect(try run(seed: 82) != first)
  }

  /// What three parties and the real SFU make of a lossy network.
  private func call(seed: UInt64) throws -> [String] {
    let link = Link(
      delay: .milliseconds(15), jitter: .milliseconds(10), loss: 0.03, duplication: 0.02, reordering: 0.02,
      reorderDelay: .milliseconds(15))
    let world = try World(seed: seed, link: link)
    for number in 1...3 {
      try world.join("party\(number)", key: callKey) { $0.expectedRemoteParticipants = 2 }
      world.run(for: .milliseconds(300))
    }
    world.run(for: .seconds(2))
    #expect(world.spins == 0)
    return world.parties.flatMap { party in
      let tracks = party.tracks.values.sorted { ($0.identity, "\($0.kind)") < ($1.identity, "\($1.kind)") }
      return party.events.map { "\(party.identity) \($0)" } + ["\(party.session.statistics)"]
        + tracks.map { "\(party.identity) \($0.identity) \($0.kind) \($0.numbers) \($0.arrivals)" }
    }
  }

  @Test("A call through the real SFU replays from its seed")
  func replayThroughSFU() throws {
    let first = try call(seed: 83)
    #expect(first.count > 20)
    let second = try call(seed: 83)
    #expect(second == first, "\(zip(first, second).first { $0 != $1 } ?? ("", ""))")
    #expect(try call(seed: 84) != first)
  }

  @Test("A decoder that fails gets a key frame next, and nothing before it")
  func decodingFailed() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    server.send(packet: server.videoPacket(1, isKeyFrame: true))
    server.send(packet: server.videoPacket(2, isKeyFrame: false))
    let track = try #require(server.videoFrames.last?.track)
    server.session.decodingFailed(track, at: server.now)
    server.send(packet: server.videoPacket(3, isKeyFrame: false))
    #expect(server.videoFrames.count == 2)
    server.advance(by: .milliseconds(600))
    #expect(server.session.statistics.remoteTracks.first { $0.kind == .video }?.keyFrameRequests == 2)
    server.send(packet: server.videoPacket(4, isKeyFrame: true))
    #expect(server.videoFrames.map(\.isKeyFrame) == [true, false, true])
  }
}
