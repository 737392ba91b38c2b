import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeSFUCore
import PalbeTestKit
import PalbeUnits
import Testing

/// Offers of the unmodified PyPI `livekit` 1.2.1 client.
struct RealOfferTests {
  private func offer(_ name: String) throws -> LiveKit.SessionDescription {
    let bytes = try Vectors.golden("Tests/PalbeSDPTests/Fixtures/livekit-1.2.1-\(name).sdp")
    return .with {
      $0.type = "offer"
      $0.sdp = String(decoding: bytes, as: UTF8.self)
    }
  }

  private static let audio = "77e8285a-b3bd-419c-8fe5-38b431729c2b"
  private static let video = "86a171d2-2377-4c5e-b8d7-ab8a6a9057e9"
  private static let layers = "a8981117-13ad-44ac-91c5-e32d678848da"

  private func addTrack(_ cid: String, _ type: LiveKit.TrackType) -> LiveKit.SignalRequest.Message {
    .addTrack(
      .with {
        $0.cid = cid
        $0.type = type
        $0.source = type == .audio ? .microphone : .camera
      })
  }

  @Test("livekit 1.2.1: join, publish and simulcast offers are answered as the client needs it")
  func answers() throws {
    let world = try World()
    let python = try world.client("python")
    let join = try offer("join")
    world.join(python, request: { $0.publisherOffer = join })
    let first = try #require(python.answer)
    try first.validate(as: .answer)
    #expect(first.bundle == ["0", "1", "2", "3", "4", "5", "6"])
    #expect(first.media.filter(\.isRTP).allSatisfy { $0.direction == .inactive && $0.port == 9 })
    #expect(first.media.last?.formats == ["webrtc-datachannel"])
    #expect(first.media.last?.sctpPort == 5_000)
    for section in first.media where section.kind == .video {
      #expect(section.headerExtensionID(RTPExtensionIDs.transportSequenceNumberURI) == 3)
      #expect(section.headerExtensionID(RTPExtensionIDs.midURI) == 4)
      #expect(section.headerExtensionID(RTPExtensionIDs.ridURI) == 10)
      #expect(section.headerExtensionID(RTPExtensionIDs.repairedRIDURI) == 11)
    }

    world.signal(addTrack(Self.audio, .audio), from: python)
    world.signal(addTrack(Self.video, .video), from: python)
    world.signal(.offer(try offer("publish")), from: python)
    let second = try #require(python.answer)
    try second.validate(as: .answer)
    #expect(second.media[7].direction == .recvonly)
    #expect(second.media[7].formats == ["63", "111"])
    #expect(second.media[8].direction == .recvonly)
    #expect(second.media[8].formats == ["96"])
    #expect(second.media.allSatisfy { $0.port == 9 })
    let tracks = python.updates(of: "python").last?.tracks
    #expect(tracks?.map(\.mimeType) == ["audio/red", "video/VP8"])

    world.signal(addTrack(Self.layers, .video), from: python)
    world.signal(.offer(try offer("simulcast")), from: python)
    let third = try #require(python.answer)
    #expect(third.media[9].rids.map(\.id) == ["h", "q"])
    #expect(third.media[9].simulcast?.receive == ["h", "q"])
    #expect(python.updates(of: "python").last?.tracks.last?.simulcast == true)
    #expect(python.answers.map(\.id) == [0, 0, 0])
    #expect(third.origin.sessionID == first.origin.sessionID)
    #expect(third.origin.version == first.origin.version + 2)
  }

  @Test("livekit 1.2.1: tracks of the room fill its first offer, VP8 with retransmissions")
  func subscribes() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio), world.track("cam", .video)]
    world.join(alice)
    let python = try world.client("python")
    let join = try offer("join")
    world.join(python, request: { $0.publisherOffer = join })
    let answer = try #require(python.answer)
    try answer.validate(as: .answer)
    #expect(answer.media[0].direction == .sendonly)
    #expect(answer.media[0].formats == ["111"])
    #expect(answer.media[3].direction == .sendonly)
    #expect(answer.media[3].formats == ["96", "97"])
    #expect(answer.media[3].sourceGroups.first?.semantics == "FID")
    #expect(answer.media.map(\.msids.count) == [1, 0, 0, 1, 0, 0, 0])
    #expect(Set(python.answers[0].midToTrackId.keys) == ["0", "3"])
  }
}
