import PalbeCallCore
import PalbeFrameEncryption
import PalbeNetSim
import PalbeUnits
import Testing

@Suite struct EncryptionTests {
  @Test("A participant with a wrong key opens nothing, and hears and sees nothing")
  func wrongKey() throws {
    let world = try World(seed: 31)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", key: callKey)
    world.run(for: .milliseconds(500))
    let eve = try world.join("eve", publishes: [], key: nextKey)
    world.run(for: .seconds(4))
    #expect(ada.isConnected && eve.isConnected)
    let requests = ada.keyFrameRequests
    world.run(for: .seconds(4))
    #expect(eve.tracks.count == 2)
    #expect(eve.tracks.values.allSatisfy { $0.frames.isEmpty && $0.pulls.packets == 0 })
    for track in eve.session.statistics.remoteTracks {
      #expect(track.openedFrames == 0 && track.failedFrames > 50)
    }
    let reports = eve.events.filter {
      if case .decryptionFailing("ada", _, _) = $0.event { true } else { false }
    }
    // Two tracks for eight seconds, once a second each.
    #expect((10...20).contains(reports.count), "\(reports.count)")
    // She cannot make everybody's encoder work.
    #expect(ada.keyFrameRequests <= requests + 1)
  }

  @Test("e2ee §5.4: before the first key nothing leaves")
  func nothingBeforeTheKey() throws {
    let world = try World(seed: 32)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada")
    let bob = try world.join("bob", key: callKey)
    world.run(for: .seconds(2))
    #expect(ada.isConnected)
    #expect(ada.sentVideo.isEmpty && ada.sentAudio.isEmpty)
    #expect(ada.sendErrors.contains(.noKey))
    #expect(ada.session.statistics.sentPackets == 0)
    #expect(bob.log("ada", .video) == nil && bob.log("ada", .audio) == nil)
    try world.installKey(callKey, .now, on: ada)
    world.run(for: .seconds(1))
    #expect(bob.log("ada", .video)?.frames.isEmpty == false)
  }

  @Test("LiveKit protocol §4 (25): with end-to-end encryption a track without it is never played")
  func plainTrackIsRefused() throws {
    let world = try World(seed: 33)
    defer { #expect(world.spins == 0) }
    let mallory = try world.join("mallory", encryption: .none)
    let bob = try world.join("bob", key: callKey)
    world.run(for: .seconds(3))
    #expect(mallory.isConnected && !mallory.sentVideo.isEmpty)
    let logs = bob.tracks.values.filter { $0.identity == "mallory" }
    #expect(logs.count == 2)
    #expect(
      logs.allSatisfy { !$0.isEncrypted && $0.frames.isEmpty && $0.pulls.packets == 0 && $0.undecodable == 0 }
    )
    // And the other way round.
    #expect(mallory.tracks.values.allSatisfy { $0.frames.isEmpty && $0.undecodable == 0 })
    #expect(
      bob.events.contains { if case .decryptionFailing("mallory", _, _) = $0.event { true } else { false } })
  }

  @Test("Calls: a call without end-to-end encryption works, and the SFU sees its frames")
  func plainCall() throws {
    let world = try World(seed: 34)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", encryption: .none)
    let bob = try world.join("bob", encryption: .none)
    world.run(for: .seconds(3))
    for (receiver, sender) in [(ada, "bob"), (bob, "ada")] {
      #expect(receiver.log(sender, .video)?.frames.count ?? 0 > 60)
      #expect(receiver.log(sender, .audio)?.frames.count ?? 0 > 100)
      #expect(receiver.log(sender, .video)?.isEncrypted == false)
    }
  }
}
