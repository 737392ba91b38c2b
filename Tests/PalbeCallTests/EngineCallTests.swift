import PalbeCall
import PalbeCallCore
import PalbeFrameEncryption
import PalbeUnits
import Testing

/// Calls over real sockets against the real SFU in this process.
@Suite("the engine against the SFU", .serialized, .timeLimit(.minutes(1)))
struct EngineCallTests {
  static let key = [UInt8](repeating: 7, count: 32)
  static let otherKey = [UInt8](repeating: 8, count: 32)

  /// Numbers that only grow.
  static func areInOrder(_ pictures: [UInt32]) -> Bool {
    zip(pictures, pictures.dropFirst()).allSatisfy { $0 < $1 }
  }

  @Test(
    "two participants see and hear each other, with and without end-to-end encryption",
    arguments: [true, false])
  func bothSeeAndHear(isEncrypted: Bool) async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let key = isEncrypted ? Self.key : nil
    let ada = try Party("ada#phone", at: sfu.url, key: key, isEncrypted: isEncrypted)
    let bob = try Party("bob#desk", at: sfu.url, key: key, isEncrypted: isEncrypted)
    try await ada.engine.start()
    try await bob.engine.start()
    for party in [ada, bob] { await party.wait { $0.pictures.count >= 15 && $0.played >= 25 } }
    for (party, other) in [(ada, "bob#desk"), (bob, "ada#phone")] {
      let record = party.now
      #expect(Self.areInOrder(record.pictures))
      #expect(record.unreadablePictures == 0)
      #expect(record.events.contains(.participantConnected(identity: other)))
      let subscribed = record.events.compactMap { event -> String? in
        guard case .trackSubscribed(_, let identity, let kind, let encrypted) = event else { return nil }
        return "\(identity) \(kind) \(encrypted)"
      }
      #expect(Set(subscribed) == ["\(other) audio \(isEncrypted)", "\(other) video \(isEncrypted)"])
      let statistics = try #require(await party.engine.statistics())
      #expect(statistics.keyEpochs == (isEncrypted ? 1 : 0))
      #expect(isEncrypted == (statistics.sealedFrames > 0))
      #expect(statistics.remoteTracks.allSatisfy { $0.failedFrames == 0 && $0.outOfOrder == 0 })
    }
    await ada.engine.stop()
    await bob.engine.stop()
    #expect(ada.now.events.last == .disconnected(.left))
    #expect(bob.now.events.last == .disconnected(.left))
  }

  @Test("e2ee 5.4: a new key through the refined seam loses no frame")
  func rekey() async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let parties = try ["ada", "bob"].map { try Party($0, at: sfu.url, key: Self.key) }
    for party in parties { try await party.engine.start() }
    for party in parties { await party.wait { $0.pictures.count >= 5 && $0.played >= 5 } }
    for party in parties { try await party.engine.installKey(Self.otherKey, sending: .whenConfirmed) }
    for party in parties { await party.engine.confirmSendKey() }
    for party in parties {
      let seen = party.now
      await party.wait { $0.pictures.count >= seen.pictures.count + 10 && $0.played >= seen.played + 20 }
      // The same key again changes nothing.
      try await party.engine.installKey(Self.otherKey, sending: .now)
      let statistics = try #require(await party.engine.statistics())
      #expect(statistics.keyEpochs == 2)
      #expect(statistics.remoteTracks.allSatisfy { $0.failedFrames == 0 && $0.framesWithoutKey == 0 })
      #expect(Self.areInOrder(party.now.pictures))
    }
    for party in parties { await party.engine.stop() }
  }

  @Test(
    "livekit-protocol.md §3: a call in LiveKit's format, a ratchet and another slot on the way; keys of the other format are refused"
  )
  func liveKitFormat() async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let (key, other) = (SharedLiveKitKey(try Self.liveKitKey(1)), SharedLiveKitKey(try Self.liveKitKey(2)))
    let parties = try ["ada", "bob"].map { identity in
      try Party(identity, at: sfu.url) {
        $0.encryption = .liveKit(LiveKitKeyRing.Configuration())
        $0.liveKitKey = key
      }
    }
    await #expect(throws: CallEngineError.notConnected) {
      try await parties[0].engine.change(.send(index: 0))
    }
    for party in parties { try await party.engine.start() }
    for party in parties { await party.wait { $0.pictures.count >= 5 && $0.played >= 5 } }
    try await parties[0].engine.change(.ratchet(index: 0))
    for party in parties { try await party.engine.change(.set(other, index: 3, identity: nil)) }
    try await parties[1].engine.change(.send(index: 3))
    for party in parties {
      let seen = party.now
      await party.wait { $0.pictures.count >= seen.pictures.count + 10 && $0.played >= seen.played + 20 }
      let statistics = try #require(await party.engine.statistics())
      #expect(statistics.keyEpochs == 2 && statistics.sealedFrames > 0)
      #expect(statistics.remoteTracks.allSatisfy { $0.failedFrames == 0 })
      #expect(Self.areInOrder(party.now.pictures))
    }
    await #expect(throws: CallEngineError.key(.noSlot(index: 9, slots: 16))) {
      try await parties[0].engine.change(.ratchet(index: 9))
    }
    await #expect(throws: CallEngineError.otherEncryption) {
      try await parties[0].engine.installKey(Self.key, sending: .now)
    }
    for party in parties { await party.engine.stop() }
    let sframe = try Party("eve", at: sfu.url)
    await #expect(throws: CallEngineError.otherEncryption) {
      try await sframe.engine.change(.ratchet(index: 0))
    }
  }

  private static func liveKitKey(_ number: UInt8) throws -> LiveKitKey {
    let secret = [UInt8](repeating: number, count: 16)
    return try LiveKitKey(secret.span, derivation: .hkdf)
  }

  @Test("e2ee 5.4: nothing leaves before the first key")
  func keyAfterConnecting() async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let ada = try Party("ada", at: sfu.url)
    let bob = try Party("bob", at: sfu.url)
    try await ada.engine.start()
    try await bob.engine.start()
    await ada.wait { $0.encoded[.microphone, default: 0] >= 10 }
    let statistics = try #require(await ada.engine.statistics())
    #expect(statistics.sealedFrames == 0)
    #expect(bob.now.pictures.isEmpty && bob.now.played == 0)
    try await ada.engine.installKey(Self.key, sending: .automatic)
    try await bob.engine.installKey(Self.key, sending: .automatic)
    for party in [ada, bob] { await party.wait { $0.pictures.count >= 5 && $0.played >= 5 } }
    await ada.engine.stop()
    await bob.engine.stop()
  }

  @Test("acceptance: a participant with a wrong key decodes nothing and hears nothing")
  func wrongKey() async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let ada = try Party("ada", at: sfu.url, key: Self.key)
    let eve = try Party("eve", at: sfu.url, key: Self.otherKey)
    try await ada.engine.start()
    try await eve.engine.start()
    await eve.wait { record in
      record.events.contains { if case .decryptionFailing("ada", .video, _) = $0 { true } else { false } }
    }
    #expect(eve.now.pictures.isEmpty && eve.now.unreadablePictures == 0 && eve.now.played == 0)
    await eve.engine.stop()
    await ada.engine.stop()
  }

  @Test("a track muted before the start is not encoded; unmuted, it is")
  func mutedFromTheStart() async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let ada = try Party("ada", at: sfu.url, key: Self.key)
    let bob = try Party("bob", at: sfu.url, key: Self.key)
    try await ada.engine.setMuted(.microphone, true)
    try await ada.engine.start()
    try await bob.engine.start()
    await bob.wait { $0.pictures.count >= 10 }
    #expect(ada.now.encoded[.microphone] == nil)
    #expect(bob.now.played == 0)
    try await ada.engine.setMuted(.microphone, false)
    await bob.wait { $0.played >= 10 }
    try await ada.engine.setMuted(.camera, true)
    await bob.wait {
      $0.events.contains(.participantUpdated(identity: "ada", audioMuted: false, videoEnabled: false))
    }
    let seen = bob.now.pictures.count
    try await ada.engine.setMuted(.camera, false)
    await bob.wait { $0.pictures.count >= seen + 5 }
    await ada.engine.stop()
    await bob.engine.stop()
  }

  @Test("a server that stops ends the call; a stop after that returns")
  func serverStops() async throws {
    let sfu = try TestSFU()
    let ada = try Party("ada", at: sfu.url, key: Self.key)
    try await ada.engine.start()
    sfu.stop()
    await ada.wait { record in
      if case .disconnected(let reason) = record.events.last { reason != .left } else { false }
    }
    await ada.engine.stop()
    await ada.engine.stop()
    #expect(await ada.engine.statistics() != nil)
    await #expect(throws: CallEngineError.notConnected) {
      try await ada.engine.installKey(Self.key, sending: .now)
    }
  }

  @Test("RFC 3550 §5.1: timestamps advance by the clock's ticks of a frame, not by the wall clock")
  func timestamps() async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let ada = try Party("ada", at: sfu.url, key: Self.key)
    try await ada.engine.start()
    await ada.wait {
      ($0.timestamps[.microphone]?.count ?? 0) >= 20 && ($0.timestamps[.camera]?.count ?? 0) >= 10
    }
    await ada.engine.stop()
    let record = ada.now
    for (track, ticks) in [(LocalTrack.microphone, UInt32(960)), (.camera, 3_000)] {
      let timestamps = try #require(record.timestamps[track])
      #expect(
        zip(timestamps, timestamps.dropFirst()).allSatisfy { ($1 &- $0) > 0 && ($1 &- $0) % ticks == 0 })
    }
  }
}
