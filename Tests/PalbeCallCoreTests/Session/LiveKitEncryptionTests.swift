import PalbeCallCore
import PalbeFrameEncryption
import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeUnits
import Testing

@Suite("Calls in LiveKit's frame format") struct LiveKitEncryptionTests {
  private static let secret = Array("correct horse".utf8)
  private static let other = Array("battery staple".utf8)

  private static func key(_ secret: [UInt8]) throws -> LiveKitKey {
    try LiveKitKey(secret.span, derivation: .hkdf)
  }

  /// A party whose frames' IVs are checked instead of SFrame counters.
  private func join(
    _ world: World, _ identity: String, secret: [UInt8]?,
    publishes: Set<LocalTrack> = [.microphone, .camera],
    _ configure: (inout LiveKitKeyRing.Configuration) -> Void = { _ in }
  ) throws -> Party {
    var ring = LiveKitKeyRing.Configuration()
    configure(&ring)
    let party = try world.join(identity, publishes: publishes, encryption: .liveKit(ring))
    if let secret { try party.session.setLiveKitKey(try Self.key(secret)) }
    var seen = Set<[UInt8]>()
    party.onSealed = { _, frame in
      #expect(frame.suffix(2) == [12, 0])
      #expect(seen.insert(Array(frame.suffix(14).prefix(12))).inserted, "an IV comes twice")
    }
    return party
  }

  @Test(
    "livekit-protocol.md §3: two participants hear and see each other; tracks are announced as GCM, without RED"
  )
  func call() throws {
    let world = try World(seed: 61)
    defer { #expect(world.spins == 0) }
    let ada = try join(world, "ada", secret: Self.secret)
    let bob = try join(world, "bob", secret: Self.secret)
    world.run(for: .seconds(3))
    for (receiver, sender) in [(ada, "bob"), (bob, "ada")] {
      #expect(receiver.log(sender, .video)?.frames.count ?? 0 > 60)
      #expect(receiver.log(sender, .audio)?.frames.count ?? 0 > 100)
      #expect(receiver.tracks.values.allSatisfy { $0.isEncrypted && $0.undecodable == 0 })
      #expect(receiver.session.statistics.sealedFrames > 200)
    }
    let wrapped = try LiveKit.WrappedJoinRequest(serialized: ada.session.joinRequest)
    let request = try LiveKit.JoinRequest(serialized: wrapped.joinRequest)
    #expect(request.addTrackRequests.map(\.encryption) == [.gcm, .gcm])
    #expect(request.addTrackRequests.filter { $0.type == .audio }.allSatisfy { $0.disableRed })
  }

  @Test("A wrong key opens nothing on either side, and the participant is named")
  func wrongKey() throws {
    let world = try World(seed: 62)
    defer { #expect(world.spins == 0) }
    let ada = try join(world, "ada", secret: Self.secret)
    let eve = try join(world, "eve", secret: Self.other)
    world.run(for: .seconds(4))
    for (receiver, sender) in [(ada, "eve"), (eve, "ada")] {
      #expect(receiver.isConnected && receiver.tracks.count == 2)
      #expect(
        receiver.tracks.values.allSatisfy {
          $0.frames.isEmpty && $0.undecodable == 0 && $0.pulls.packets == 0
        })
      #expect(
        receiver.session.statistics.remoteTracks.allSatisfy { $0.openedFrames == 0 && $0.failedFrames > 50 })
      #expect(
        receiver.events.contains {
          if case .decryptionFailing(sender, _, _) = $0.event { true } else { false }
        })
    }
  }

  @Test("Before the first key nothing leaves")
  func nothingBeforeTheKey() throws {
    let world = try World(seed: 63)
    defer { #expect(world.spins == 0) }
    let ada = try join(world, "ada", secret: nil)
    let bob = try join(world, "bob", secret: Self.secret)
    world.run(for: .seconds(2))
    #expect(ada.isConnected && ada.sentVideo.isEmpty && ada.sentAudio.isEmpty)
    #expect(ada.sendErrors.contains(.noKey) && ada.session.statistics.sentPackets == 0)
    try ada.session.setLiveKitKey(try Self.key(Self.secret))
    world.run(for: .seconds(1))
    #expect(bob.log("ada", .video)?.frames.isEmpty == false)
  }

  @Test("LiveKit protocol §4 (25): tracks of another format, or of none, are never played and are reported")
  func otherFormats() throws {
    let world = try World(seed: 64)
    defer { #expect(world.spins == 0) }
    let ada = try join(world, "ada", secret: callKey)
    let bob = try world.join("bob", key: callKey)
    let mallory = try world.join("mallory", encryption: .none)
    world.run(for: .seconds(3))
    let parties = [ada, bob, mallory]
    for receiver in parties {
      #expect(receiver.isConnected && !receiver.sentVideo.isEmpty && receiver.tracks.count == 4)
      #expect(
        receiver.tracks.values.allSatisfy {
          $0.frames.isEmpty && $0.undecodable == 0 && $0.pulls.packets == 0
        })
      for sender in parties where sender !== receiver {
        #expect(
          receiver.events.contains {
            if case .decryptionFailing(sender.identity, _, _) = $0.event { true } else { false }
          })
      }
    }
  }

  @Test(
    "livekit-protocol.md §3, ratchet: a call goes on while either side ratchets, and with a key of one participant alone"
  )
  func ratchet() throws {
    let world = try World(seed: 65)
    defer { #expect(world.spins == 0) }
    let ada = try join(world, "ada", secret: Self.secret)
    let bob = try join(world, "bob", secret: Self.secret)
    world.run(for: .seconds(1))
    for party in [ada, bob, ada] {
      try party.session.ratchetLiveKitKey()
      world.run(for: .seconds(1))
    }
    for party in [ada, bob] {
      try party.session.setLiveKitKey(
        try Self.key(Self.other), index: 7, identity: "ada")
    }
    ada.session.setLiveKitSendIndex(7)
    ada.onSealed = { _, frame in #expect(frame.suffix(2) == [12, 7]) }
    world.run(for: .seconds(1))
    for (receiver, sender) in [(ada, "bob"), (bob, "ada")] {
      #expect(receiver.log(sender, .video)?.frames.count ?? 0 > 130)
      #expect(receiver.session.statistics.remoteTracks.allSatisfy { $0.failedFrames <= 4 })
    }
  }
}
