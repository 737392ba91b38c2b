import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import Testing

/// Rooms that take only what is encrypted end to end.
struct RequiredE2EETests {
  enum Way: CaseIterable { case configuration, room, token }

  @Test(
    "LiveKit protocol §4 (23): a clear track is refused with a reason, an encrypted one is taken",
    arguments: Way.allCases
  )
  func refused(way: Way) throws {
    let world = try World(configuration: { $0.requiresE2EE = way == .configuration })
    if way == .room {
      var settings = RoomSettings(name: "room")
      settings.requiresE2EE = true
      _ = world.command(.create(settings))
    }
    let alice = try world.client("alice")
    world.join(alice, grant: { $0.requiresE2EE = way == .token })
    let track = world.track("cam", .video)
    var request = alice.addTrack(track)
    request.encryption = .none
    world.signal(.addTrack(request), from: alice)
    #expect(alice.refusals.map(\.reason) == [.notAllowed])
    #expect(alice.refusals.last?.message.contains("encrypted end to end") == true)
    for (cid, encryption) in [("a", LiveKit.EncryptionType.gcm), ("b", .custom)] {
      request.cid = cid
      request.encryption = encryption
      world.signal(.addTrack(request), from: alice)
    }
    let published = alice.messages.count { if case .trackPublished = $0 { true } else { false } }
    #expect(published == 2)
    #expect(alice.refusals.count == 1)
    #expect(alice.join?.sifTrailer.isEmpty == true)
  }

  @Test(
    "S4-3: where a room begins to require encryption, clear tracks that are there end, and the others go on")
  func begins() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio), world.track("cam", .video)]
    alice.tracks[0].encryption = .none
    world.join(alice)
    world.publishDataTrack(alice)
    let bob = try world.client("bob")
    world.join(bob)
    var settings = RoomSettings(name: "room")
    settings.requiresE2EE = true
    _ = world.command(.create(settings))
    let info = try #require(bob.updates(of: "alice").last)
    #expect(info.tracks.map(\.name) == ["cam"] && info.dataTracks.isEmpty)
    let ended = alice.messages.compactMap { if case .trackUnpublished(let track) = $0 { track } else { nil } }
    #expect(ended.count == 1 && ended[0].trackSid.hasPrefix("TR_AM"))
    #expect(alice.messages.contains { if case .unpublishDataTrackResponse = $0 { true } else { false } })
    #expect(!alice.isClosed)
  }
}
