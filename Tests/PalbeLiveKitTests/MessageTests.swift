import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits
import PalbeWire
import Testing

struct MessageTests {
  @Test("S4 sid prefixes: participant, room, and tracks by type and source")
  func sids() {
    var random = RandomSource(seed: 3)
    let participant = LiveKit.Sid.participant(using: &random)
    #expect(participant.hasPrefix("PA_") && participant.count == 15)
    #expect(LiveKit.Sid.participant(using: &random) != participant)
    #expect(LiveKit.Sid.room(using: &random).hasPrefix("RM_"))
    let track = LiveKit.Sid.track(.audio, .microphone, using: &random)
    #expect(track.hasPrefix("TR_AM") && track.count == 17)
    #expect(LiveKit.Sid.track(.video, .screenShare, using: &random).hasPrefix("TR_VS"))
    #expect(LiveKit.Sid.track(.audio, .screenShareAudio, using: &random).hasPrefix("TR_As"))
  }

  /// Written with PyPI livekit-protocol; the values stand in the test.
  @Test("LiveKit protocol §1.8: the fields of a join request are where the descriptors put them")
  func joinRequest() throws {
    let bytes = try #require(Hex.decode(Self.pythonJoinRequest))
    let request = try LiveKit.JoinRequest(serialized: bytes)
    #expect(request.clientInfo?.sdk == .python)
    #expect(request.clientInfo?.version == "1.2.1")
    #expect(request.clientInfo?.protocol == 18)
    #expect(request.clientInfo?.capabilities == [.packetTrailer, .compressionDeflateRaw])
    #expect(request.connectionSettings?.autoSubscribe == true)
    #expect(request.connectionSettings?.subscriberAllowPause == false)
    #expect(request.connectionSettings?.autoSubscribeDataTrack == nil)
    #expect(request.participantAttributes == ["a": "1", "b": ""])
    #expect(request.addTrackRequests.map(\.cid) == ["cid-1"])
    #expect(request.addTrackRequests.first?.encryption == .custom)
    #expect(request.publisherOffer == .with { ($0.type, $0.sdp) = ("offer", "v=0\r\n") })
    #expect(request.reconnectReason == .publisherFailed)
    #expect(request.serialized() == bytes)
  }

  @Test(
    "LiveKit protocol §1.2: the smallest join response that clients accept, byte for byte as Python reads it")
  func joinResponse() throws {
    let response = LiveKit.SignalResponse(
      .join(
        .with {
          $0.room = .with { ($0.sid, $0.name) = ("RM_1", "room") }
          $0.participant = .with { ($0.sid, $0.identity, $0.state) = ("PA_1", "ada", .joined) }
          $0.pingInterval = 5
          $0.pingTimeout = 15
          $0.serverInfo = .with { $0.protocol = LiveKit.serverProtocol(for: 17) }
        }))
    #expect(Hex.encode(response.serialized()) == Self.pythonJoinResponse)
  }

  @Test("a message of a later version is nil, the frame still decodes")
  func unknownMessage() throws {
    let request = try LiveKit.SignalRequest(serialized: [0xaa, 0x06, 0x02, 0x08, 0x01])
    #expect(request.message == nil)
    #expect(LiveKit.SignalRequest().serialized() == [])
  }

  @Test("a data packet keeps what this version does not know, and its envelope can be rewritten")
  func unknownDataPacket() throws {
    let unknown: [UInt8] = [0xaa, 0x06, 0x02, 0x08, 0x01]
    let user = LiveKit.UserPacket.with { $0.payload = [1, 2, 3] }.serialized() + unknown
    let bytes = [0x12, UInt8(user.count)] + user + unknown
    var packet = try LiveKit.DataPacket(serialized: bytes)
    packet.participantIdentity = "ada"
    let again = try LiveKit.DataPacket(serialized: packet.serialized())
    guard case .user(let received) = again.value else {
      Issue.record("not a user packet")
      return
    }
    #expect(received.payload == [1, 2, 3])
    #expect(received.unknownFields == unknown)
    #expect(again.unknownFields == unknown)
    #expect(again.participantIdentity == "ada")
  }

  @Test("a ping of zero is a ping")
  func zeroInOneof() throws {
    let request = LiveKit.SignalRequest(.ping(0))
    #expect(request.serialized() == [0x70, 0x00])
    #expect(try LiveKit.SignalRequest(serialized: [0x70, 0x00]) == request)
  }

  static let pythonJoinRequest =
    "0a0f08091205312e322e3118126a02010212040801180022060a016112013122050a016212002a090a05636964"
    + "2d317002320e0a056f666665721205763d300d0a4002"

  static let pythonJoinResponse =
    "0a250a0c0a04524d5f311204726f6f6d120d0a0450415f3112036164611801500f580562021811"
}
