import PalbeCallCore
import PalbeFrameEncryption
import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

@Suite struct SessionLifeTests {
  @Test("Calls: mute stops the packets and is told; unmute begins at a key frame")
  func mute() throws {
    let world = try World(seed: 41)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", key: callKey)
    let bob = try world.join("bob", key: callKey)
    world.run(for: .seconds(2))
    ada.session.setMuted(.microphone, true, at: world.now)
    ada.session.setMuted(.camera, true, at: world.now)
    world.drain(ada)
    world.run(for: .milliseconds(500))
    #expect(bob.has(.participantUpdated(identity: "ada", audioMuted: true, videoEnabled: false)))
    let packets = ada.session.statistics.sentPackets
    let heard = bob.log("ada", .audio)?.frames.count
    world.run(for: .seconds(2))
    #expect(ada.session.statistics.sentPackets == packets)
    #expect(bob.log("ada", .audio)?.frames.count == heard)
    #expect(ada.sendErrors.last == .notPublished)
    let requests = ada.keyFrameRequests
    ada.session.setMuted(.microphone, false, at: world.now)
    ada.session.setMuted(.camera, false, at: world.now)
    world.drain(ada)
    world.run(for: .seconds(1))
    #expect(ada.keyFrameRequests > requests)
    #expect(bob.log("ada", .audio)?.frames.count ?? 0 > (heard ?? 0) + 40)
    let track = try #require(bob.session.statistics.remoteTracks.first { $0.kind == .audio })
    // A pause is no loss.
    #expect(track.concealedPackets == 0)
    #expect(bob.log("ada", .video)?.undecodable == 0)
  }

  @Test("Calls: who leaves is gone for the others, and their tracks with them")
  func leave() throws {
    let world = try World(seed: 42)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", key: callKey)
    let bob = try world.join("bob", key: callKey)
    world.run(for: .seconds(2))
    #expect(
      ada.has(.participantConnected(identity: "bob")) && bob.has(.participantConnected(identity: "ada")))
    bob.session.leave(at: world.now)
    world.drain(bob)
    #expect(bob.has(.disconnected(.left)))
    #expect(bob.session.nextDeadline == nil)
    world.run(for: .milliseconds(500))
    #expect(ada.has(.participantDisconnected(identity: "bob")))
    #expect(ada.tracks.values.allSatisfy { $0.isOver })
    #expect(ada.session.statistics.remoteTracks.count == 2)
    let bob2 = try world.join("bob", key: callKey)
    world.run(for: .seconds(2))
    #expect(bob2.log("ada", .video)?.frames.isEmpty == false)
    #expect(ada.log("bob", .video)?.isOver == false)
    #expect(ada.log("bob", .video)?.frames.isEmpty == false)
  }

  @Test("A session is told why it ended, also when the path's goodbye overtakes the reason")
  func replaced() throws {
    let world = try World(seed: 47)
    defer { #expect(world.spins == 0) }
    world.signalDelay = .milliseconds(80)
    let first = try world.join("ada", key: callKey)
    world.run(for: .seconds(2))
    #expect(first.has(.connected))
    let second = try world.join("ada", key: callKey)
    world.run(for: .seconds(3))
    #expect(first.has(.disconnected(.server(code: LiveKit.DisconnectReason.duplicateIdentity.rawValue))))
    #expect(second.has(.connected))
    // Without a reason the path counts as lost, soon.
    world.isSignalingCut = true
    world.handle(.shutDown)
    #expect(world.run(atMost: .seconds(2)) { second.has(.disconnected(.connectionLost)) })
  }

  @Test("RFC 7675: a path that is gone ends the session after 30 s")
  func connectionLost() throws {
    let world = try World(seed: 43)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", key: callKey)
    world.run(for: .seconds(2))
    world.network.setLink(.cut, between: ada.address, and: world.server)
    world.isSignalingCut = true
    let cutAt = world.now
    let isLost = world.run(atMost: .seconds(60)) { ada.has(.disconnected(.connectionLost)) }
    #expect(isLost)
    #expect(world.now - cutAt < .seconds(40))
    #expect(ada.session.nextDeadline == nil)
  }

  @Test("A path that never comes up ends the session, and so does a server that says nothing")
  func neverConnected() throws {
    let world = try World(seed: 44, link: .cut)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", key: callKey)
    #expect(world.run(atMost: .seconds(30)) { ada.has(.disconnected(.connectionLost)) })
    world.isSignalingCut = true
    let bob = try world.join("bob", key: callKey)
    #expect(world.run(atMost: .seconds(30)) { bob.has(.disconnected(.signalingLost)) })
  }

  @Test("Calls: a room larger than expected gets its sections by another offer, and all are seen")
  func manyParticipants() throws {
    let world = try World(seed: 45)
    defer { #expect(world.spins == 0) }
    var parties: [Party] = []
    for index in 0..<6 {
      parties.append(
        try world.join("p\(index)", key: callKey) { $0.expectedRemoteParticipants = 1 })
      world.run(for: .milliseconds(200))
    }
    world.run(for: .seconds(3))
    for party in parties {
      let others = parties.map(\.identity).filter { $0 != party.identity }
      for other in others {
        #expect(party.log(other, .video)?.frames.isEmpty == false, "\(party.identity) sees \(other)")
        #expect(party.log(other, .audio)?.frames.isEmpty == false, "\(party.identity) hears \(other)")
      }
      #expect(party.tracks.values.allSatisfy { $0.undecodable == 0 })
      var last: UInt32 = 0
      for bytes in party.sentSignals {
        guard case .offer(let offer) = try LiveKit.SignalRequest(serialized: bytes).message else { continue }
        #expect(offer.id > max(last, 1))
        last = offer.id
      }
    }
    #expect(world.uniqueness.reusedSequences == 0 && world.uniqueness.reusedCounters == 0)
    #expect(world.uniqueness.sealedCount == world.sealedFrames)
  }

  @Test("LiveKit protocol §1.5: pings go out, and their silence is noticed only where no media flows")
  func pings() throws {
    let world = try World(seed: 46)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", key: callKey)
    world.run(for: .seconds(21))
    let pings = try ada.sentSignals.filter {
      if case .pingReq = try LiveKit.SignalRequest(serialized: $0).message { true } else { false }
    }
    #expect(pings.count == 4)
    #expect(!ada.events.contains { if case .disconnected = $0.event { true } else { false } })
  }

  @Test("Key frames: requests are passed on, at most one in 300 ms")
  func keyFrameThrottle() throws {
    let world = try World(seed: 47)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", key: callKey)
    world.run(for: .seconds(1))
    for index in 0..<4 {
      try world.join("viewer\(index)", publishes: [], key: callKey)
      world.run(for: .milliseconds(60))
    }
    world.run(for: .seconds(2))
    let times = ada.events.filter { $0.event == .keyFrameRequested(.camera) }.map(\.at)
    #expect(!times.isEmpty)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= .milliseconds(300) })
  }
}
