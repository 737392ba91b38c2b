import PalbeCallCore
import PalbeFrameEncryption
import PalbeNetSim
import PalbeRTP
import PalbeUnits
import Testing

let callKey = [UInt8](0..<32)
let nextKey = [UInt8](100..<132)

@Suite struct SetUpTests {
  @Test("The second participant sees and hears the first, soon after it joined")
  func secondParticipantSeesTheFirst() throws {
    let world = try World(seed: 1)
    defer { #expect(world.spins == 0) }
    let ada = try world.join("ada#phone", key: callKey)
    world.run(for: .seconds(1))
    #expect(ada.isConnected)
    let joinedAt = world.now
    let bob = try world.join("bob#laptop", key: callKey)
    let isSeen = world.run(atMost: .seconds(3)) { bob.log("ada#phone", .video)?.frames.isEmpty == false }
    #expect(isSeen)
    let took = world.now - joinedAt
    // Two signaling trips of 4 ms, a check, three DTLS flights, a request and a frame at 30 a second.
    #expect(took < .milliseconds(150), "\(took.wholeMilliseconds) ms")
    world.run(for: .seconds(3))
    for (party, other) in [(ada, "bob#laptop"), (bob, "ada#phone")] {
      let video = try #require(party.log(other, .video))
      let audio = try #require(party.log(other, .audio))
      #expect(video.isEncrypted && audio.isEncrypted)
      #expect(video.undecodable == 0 && audio.undecodable == 0)
      #expect(video.frames.count > 80, "\(video.frames.count)")
      #expect(audio.frames.count > 130, "\(audio.frames.count)")
      #expect(zip(audio.numbers, audio.numbers.dropFirst()).allSatisfy { $0 + 1 == $1 })
      #expect(audio.pulls.concealed == 0 && audio.pulls.recovered == 0)
    }
    #expect(world.uniqueness.reusedSequences == 0 && world.uniqueness.reusedCounters == 0)
    #expect(world.uniqueness.sealedCount == world.sealedFrames)
    #expect(world.uniqueness.packetCount > 500 && world.uniqueness.frameCount > 200)
  }

  @Test(
    "RFC 6464: the level that was set leaves with microphone packets, where the call sends levels",
    arguments: [true, false])
  func audioLevel(_ isSent: Bool) throws {
    let world = try World(seed: 2)
    let ada = try world.join("ada", key: callKey) { $0.sendsAudioLevel = isSent }
    ada.session.setAudioLevel(5)
    var ids = RTPExtensionIDs()
    ids.audioLevel = 1
    var levels: [AudioLevel?] = []
    world.onReceivedMedia = { packet in
      guard let header = try? RTPHeader.parse(packet), header.payloadType != PayloadType(96) else { return }
      levels.append(ids.read(header, in: packet).audioLevel)
    }
    world.run(for: .seconds(1))
    #expect(levels.count > 20)
    #expect(levels.allSatisfy { $0 == (isSent ? AudioLevel(isVoice: true, level: 5) : nil) })
  }
}
