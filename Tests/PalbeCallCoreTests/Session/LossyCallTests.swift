import PalbeCallCore
import PalbeFrameEncryption
import PalbeNetSim
import PalbeUnits
import Testing

@Suite struct LossyCallTests {
  struct Conditions: CustomTestStringConvertible {
    var seed: UInt64
    var loss: Double
    var testDescription: String { "seed \(seed), loss \(loss)" }
    var link: Link {
      Link(
        delay: .milliseconds(15), jitter: .milliseconds(10), loss: loss, duplication: 0.02, reordering: 0.02,
        reorderDelay: .milliseconds(15))
    }
  }

  static let all = [
    Conditions(seed: 11, loss: 0), Conditions(seed: 12, loss: 0.01), Conditions(seed: 13, loss: 0.02),
    Conditions(seed: 14, loss: 0.05), Conditions(seed: 15, loss: 0.05),
  ]

  @Test(
    "e2ee §5.4: over loss, jitter and a key change frames come in order, none lost to keys",
    arguments: all)
  func callWithKeyChange(_ conditions: Conditions) throws {
    let world = try World(seed: conditions.seed, link: conditions.link)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada#1", key: callKey)
    let bob = try world.join("bob#1", key: callKey)
    let isUp = world.run(atMost: .seconds(10)) {
      ada.log("bob#1", .video)?.frames.isEmpty == false && bob.log("ada#1", .video)?.frames.isEmpty == false
    }
    #expect(isUp, "seed \(conditions.seed)")
    world.run(for: .seconds(4))
    // The group commits: Ada has the key first, Bob a little later, and both send under it once both have it.
    try world.installKey(nextKey, .whenConfirmed, on: ada)
    world.run(for: .milliseconds(300))
    try world.installKey(nextKey, .whenConfirmed, on: bob)
    world.run(for: .milliseconds(100))
    ada.session.confirmSendKey(at: world.now)
    world.run(for: .milliseconds(40))
    bob.session.confirmSendKey(at: world.now)
    world.run(for: .seconds(4))
    ada.capturesAudio = false
    ada.capturesVideo = false
    bob.capturesAudio = false
    bob.capturesVideo = false
    world.run(for: .seconds(1))

    for (sender, receiver) in [(ada, bob), (bob, ada)] {
      let video = try #require(receiver.log(sender.identity, .video))
      let audio = try #require(receiver.log(sender.identity, .audio))
      #expect(video.undecodable == 0 && audio.undecodable == 0)
      #expect(zip(video.numbers, video.numbers.dropFirst()).allSatisfy { $0 < $1 })
      #expect(zip(audio.numbers, audio.numbers.dropFirst()).allSatisfy { $0 < $1 })
      let sent = sender.sentVideo.filter { $0 >= video.numbers.first ?? 0 }.count
      #expect(video.frames.count * 100 >= sent * 95, "\(video.frames.count) of \(sent)")
      let sentAudio = sender.sentAudio.filter { $0 >= audio.numbers.first ?? 0 }.count
      let heard = audio.frames.count + audio.pulls.recovered
      #expect(
        heard * 100 >= sentAudio * 95, "\(audio.frames.count) and \(audio.pulls.recovered) of \(sentAudio)")
      if conditions.loss == 0 {
        #expect(audio.frames.count >= sentAudio - 3, "\(audio.frames.count) of \(sentAudio)")
        #expect(video.frames.count == sent)
      }
      for track in receiver.session.statistics.remoteTracks {
        #expect(track.failedFrames == 0 && track.framesWithoutKey == 0 && track.outOfOrder == 0)
      }
      #expect(receiver.session.statistics.keyEpochs == 2)
      #expect(
        receiver.session.statistics.roundTrip.map { $0 > .milliseconds(25) && $0 < .milliseconds(90) }
          ?? false)
    }
    #expect(world.uniqueness.reusedSequences == 0 && world.uniqueness.reusedCounters == 0)
    #expect(world.uniqueness.sealedCount == world.sealedFrames)
    #expect(world.uniqueness.frameCount > 500)
  }

  @Test("Calls: a key that comes 300 ms late loses no frame, and what waited comes first")
  func lateKey() throws {
    let world = try World(seed: 21, link: Link(delay: .milliseconds(10)))
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", key: callKey)
    let bob = try world.join("bob", key: callKey)
    world.run(for: .seconds(2))
    try world.installKey(nextKey, .now, on: ada)
    world.run(for: .milliseconds(300))
    try world.installKey(nextKey, .now, on: bob)
    world.run(for: .seconds(2))
    let video = try #require(bob.log("ada", .video))
    #expect(video.undecodable == 0)
    #expect(zip(video.numbers, video.numbers.dropFirst()).allSatisfy { $0 + 1 == $1 })
    let audio = try #require(bob.log("ada", .audio))
    #expect(zip(audio.numbers, audio.numbers.dropFirst()).allSatisfy { $0 < $1 })
    let track = try #require(bob.session.statistics.remoteTracks.first { $0.kind == .audio })
    #expect(track.framesWithoutKey == 0 && track.failedFrames == 0)
    #expect(track.playedPackets + track.discardedPackets + 20 > track.openedFrames)
  }

  @Test("Calls: a key that comes 2 s late costs the frames of that time, and pictures go on at a key frame")
  func veryLateKey() throws {
    let world = try World(seed: 22, link: Link(delay: .milliseconds(10)))
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada", key: callKey)
    let bob = try world.join("bob", key: callKey)
    world.run(for: .seconds(2))
    let requests = ada.keyFrameRequests
    try world.installKey(nextKey, .now, on: ada)
    world.run(for: .seconds(2))
    #expect(
      bob.events.contains { if case .decryptionFailing("ada", _, _) = $0.event { true } else { false } })
    // What cannot be opened asks for nothing: a key frame could not be opened either.
    #expect(ada.keyFrameRequests <= requests + 1)
    try world.installKey(nextKey, .now, on: bob)
    world.run(for: .seconds(2))
    let video = try #require(bob.log("ada", .video))
    #expect(video.undecodable == 0)
    #expect(video.arrivals.last.map { world.now - $0 < .milliseconds(200) } ?? false)
  }
}
