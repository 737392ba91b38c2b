import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

@Suite("Codecs beside VP8 and Opus")
struct CodecTests {
  static let h264 = RTPCodec(
    103, "H264", clockRate: 90_000,
    parameters: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
    feedback: ["transport-cc", "nack", "nack pli"])
  static let vp9 = RTPCodec(
    98, "VP9", clockRate: 90_000, parameters: "profile-id=0", feedback: ["transport-cc", "nack", "nack pli"])
  static let av1 = RTPCodec(45, "AV1", clockRate: 90_000, feedback: ["transport-cc", "nack", "nack pli"])
  static let red = RTPCodec(63, "red", clockRate: 48_000, channels: 2, parameters: "111/111")

  /// Alice publishes in one codec; Bob offers `received`.
  static func call(
    _ world: World, _ sent: RTPCodec, received: [RTPCodec], kind: ScriptedTrack.Kind = .video,
    encryption: LiveKit.EncryptionType = .custom
  ) throws -> (alice: ScriptedClient, bob: ScriptedClient) {
    let alice = try world.client("alice")
    alice.moreCodecs = [sent]
    var track = world.track("cam", kind)
    if kind == .video { track.codec = sent.name.lowercased() }
    track.number = sent.payloadType.rawValue
    track.encryption = encryption
    alice.tracks = [track]
    world.join(alice)
    try #require(world.connect(alice))
    let bob = try world.client("bob")
    bob.moreCodecs = received
    world.join(bob)
    try #require(world.connect(bob))
    return (alice, bob)
  }

  static func noise(_ count: Int, _ seed: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
  }

  static let h264Frames: [[UInt8]] = [
    [0x41] + noise(300, 1),  // a slice, before any key frame
    [0x18, 0, 3, 0x67, 1, 2, 0, 2, 0x68, 9],  // STAP-A of SPS and PPS
    [0x7c, 0x85] + noise(700, 2), [0x7c, 0x45] + noise(500, 3),  // FU-A of an IDR slice
    [0x41] + noise(300, 4),
  ]
  static let vp9Frames: [[UInt8]] = [
    [0xe8, 0x80, 5, 0x02, 7] + noise(300, 1),
    [0xa8, 0x80, 6, 0x00, 8] + noise(700, 2), [0xa4, 0x80, 6, 0x00, 8] + noise(500, 3),
    [0xec, 0x80, 7, 0x00, 9] + noise(300, 4),
  ]
  static let av1Frames: [[UInt8]] = [
    [0x10] + noise(300, 1), [0x18] + noise(700, 2), [0x90] + noise(500, 3), [0x10] + noise(300, 4),
  ]

  @Test(
    "issue 4: H264, VP9 and AV1 begin with a key frame, and every payload byte behind the descriptor arrives unchanged",
    arguments: [
      (h264, h264Frames, 0), (vp9, vp9Frames, 5), (av1, av1Frames, 0),
    ])
  func forwarded(codec: RTPCodec, payloads: [[UInt8]], clear: Int) throws {
    let world = try World()
    var other = codec
    other.payloadType = PayloadType(117)
    let (alice, bob) = try Self.call(world, codec, received: [other])
    #expect(bob.join?.otherParticipants.first?.tracks.first?.mimeType == "video/" + codec.name)
    for payload in payloads {
      world.send([try alice.media(0, payload: payload)], from: alice)
      world.run(for: .milliseconds(20))
    }
    world.run(for: .milliseconds(50))
    let packets = bob.packets(payloadType: 117)
    #expect(packets.map { $0.payload.dropFirst(clear) } == payloads.dropFirst().map { $0.dropFirst(clear) })
    for (earlier, later) in zip(packets, packets.dropFirst()) {
      #expect(later.header.sequenceNumber.distance(from: earlier.header.sequenceNumber) == 1)
    }
  }

  @Test("AV1: the dependency descriptor goes with the packet, as long as it is")
  func dependencyDescriptor() throws {
    let world = try World()
    let (alice, bob) = try Self.call(world, Self.av1, received: [Self.av1])
    let descriptor = [0xc0, 0x12, 0x34] + Self.noise(40, 9)
    let header = RTPHeader(
      marker: true, payloadType: PayloadType(45), sequenceNumber: SequenceNumber(9),
      timestamp: RTPTimestamp(1),
      ssrc: alice.tracks[0].ssrc)
    var clear = [UInt8](capacity: 200) { output in RTPPacketWriter.writeHeader(header, into: &output) }
    clear[0] |= 0x10
    clear +=
      [0x10, 0, 0, 12, 12, UInt8(descriptor.count)] + descriptor + [0, 0, 0] + [0x18] + Self.noise(99, 1)
    world.send([try alice.protected(clear)], from: alice)
    world.run(for: .milliseconds(50))
    let packet = try #require(bob.packets(payloadType: 45).first)
    let range = packet.header.extensionRange(id: 12, in: packet.bytes.span)
    #expect(range.map { Array(packet.bytes[$0]) } == descriptor)
    #expect(packet.payload == [0x18] + Self.noise(99, 1))
    var ids = RTPExtensionIDs()
    ids.transportSequenceNumber = 3
    let values = ids.read(packet.header, in: packet.bytes.span)
    #expect(values.transportSequenceNumber != nil)
  }

  @Test(
    "livekit-protocol.md §4 item 22: a subscriber that does not know the codec is told, and not asked for sections"
  )
  func unknown() throws {
    let world = try World()
    let (_, bob) = try Self.call(world, Self.h264, received: [Self.vp9])
    let refusals = bob.messages.compactMap { message -> LiveKit.SubscriptionResponse? in
      if case .subscriptionResponse(let response) = message { response } else { nil }
    }
    #expect(refusals.map(\.err) == [.codecUnsupported])
    #expect(refusals.first?.trackSid == bob.join?.otherParticipants.first?.tracks.first?.sid)
    #expect(bob.requirements.isEmpty)
    #expect(bob.answer?.media[1].direction == .inactive)
  }

  @Test("H264: of the profiles that a publisher offers the one that every client decodes is agreed on")
  func profiles() throws {
    let world = try World()
    let alice = try world.client("alice")
    let profiles = [("640c1f", 1), ("42e01f", 0), ("42e01f", 1), ("4d001f", 1)]
    alice.moreCodecs = profiles.enumerated().map { index, profile in
      RTPCodec(
        UInt8(100 + index), "H264", clockRate: 90_000,
        parameters: "profile-level-id=\(profile.0);packetization-mode=\(profile.1);level-asymmetry-allowed=1")
    }
    alice.tracks = [world.track("cam", .video)]
    alice.tracks[0].codec = "h264"
    world.join(alice)
    #expect(alice.answer?.media.last?.formats == ["102"])
    #expect(alice.answer?.media.last?.codecs.first?.parameters.contains("profile-level-id=42e01f") == true)
  }

  @Test(
    "RFC 8843 §9.1, v0: in an offer of ours a number means one format, and a format has one number and text")
  func offeredNumbers() throws {
    let world = try World()
    let (dave, _) = try world.joinOverTwo("dave")
    func h264(_ parameters: String) -> RTPCodec {
      RTPCodec(103, "H264", clockRate: 90_000, parameters: parameters, feedback: ["nack"])
    }
    let published = [
      h264("level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"),
      h264("profile-level-id=42001f;packetization-mode=1"),
      h264("packetization-mode=1;profile-level-id=64001f"), h264("profile-level-id=42e01f"),
      h264("packetization-mode=1;profile-level-id=4d0032"),
      RTPCodec(98, "VP9", clockRate: 90_000),
      RTPCodec(98, "VP9", clockRate: 90_000, parameters: "profile-id=0"),
      RTPCodec(98, "VP9", clockRate: 90_000, parameters: "profile-id=2"),
      RTPCodec(45, "AV1", clockRate: 90_000),
      RTPCodec(45, "AV1", clockRate: 90_000, parameters: "level-idx=8;profile=0;tier=0"),
    ]
    for (index, codec) in published.enumerated() {
      let client = try world.client("publisher \(index)")
      client.moreCodecs = [codec]
      client.tracks = [world.track("cam\(index)", .video)]
      client.tracks[0].codec = codec.name
      world.join(client)
    }
    world.run(for: .seconds(1))
    let offer = try SessionDescription(parsing: try #require(dave.offers.last?.sdp))
    let codecs = offer.media.filter { $0.kind == .video }.flatMap(\.codecs)
    #expect(codecs.count == 2 * published.count)
    for codec in codecs {
      for other in codecs where other.payloadType == codec.payloadType { #expect(other == codec) }
    }
    #expect(Set(codecs.map(\.payloadType)).count == 2 * 7)
    #expect(
      codecs.filter { $0.name == "rtx" }.allSatisfy { repair in
        codecs.contains { $0.payloadType == repair.associatedPayloadType && $0.name != "rtx" }
      })
  }

  @Test("room.enabled_codecs: clients are told, and publish in none of the others")
  func enabledCodecs() throws {
    let world = try World { $0.enabledCodecs = ["audio/opus", "video/h264"] }
    let alice = try world.client("alice")
    alice.moreCodecs = [Self.red]
    alice.tracks = [world.track("mic", .audio), world.track("cam", .video), world.track("screen", .video)]
    alice.tracks[0].encryption = .none
    world.join(alice)
    #expect(alice.join?.enabledPublishCodecs.map { $0.mime.lowercased() } == ["audio/opus", "video/h264"])
    // It offers VP8 alone.
    #expect(alice.answer?.media.suffix(3).map(\.direction) == [.recvonly, .inactive, .inactive])
    #expect(alice.answer?.media.suffix(3).first?.formats == ["111"])
    let bob = try world.client("bob")
    bob.moreCodecs = [Self.h264]
    bob.tracks = [world.track("cam", .video)]
    world.join(bob)
    #expect(bob.answer?.media.last?.direction == .recvonly)
    #expect(bob.answer?.media.last?.codecs.first?.name == "H264")
  }

  @Test("1.4: what a publisher wants of Opus is asked of it, stereo is told to those who receive")
  func opusParameters() throws {
    let world = try World()
    func publish(_ identity: String, _ change: (inout LiveKit.AddTrackRequest) -> Void) throws -> String? {
      let client = try world.client(identity)
      client.tracks = [world.track("mic", .audio)]
      var request = client.addTrack(client.tracks[0])
      change(&request)
      world.join(client, request: { $0.addTrackRequests = [request] })
      return client.answer?.media.last?.codecs.first?.parameters
    }
    let plain = "minptime=10;useinbandfec=1"
    #expect(try publish("alice") { _ in } == plain + ";usedtx=1")
    #expect(try publish("bob") { $0.audioFeatures = [.noDtx] } == plain)
    #expect(
      try publish("carol") { $0.audioFeatures = [.stereo] }
        == plain + ";usedtx=1;stereo=1;maxaveragebitrate=510000")
    let listener = try world.client("listener")
    listener.audioSections = 3
    world.join(listener)
    let heard = listener.answer?.media.prefix(3).map { $0.codecs.first?.parameters ?? "" }
    #expect(heard == [plain, plain, plain + ";sprop-stereo=1"])
    let (_, receiver) = try world.joinOverTwo("dave")
    world.run(for: .seconds(1))
    let sections = receiver.answer?.media.filter { $0.kind == .audio } ?? []
    #expect(sections.map { $0.codecs.first?.parameters ?? "" } == [plain, plain, plain + ";sprop-stereo=1"])
  }

  @Test("RFC 2198: redundant sound goes through untouched; who does not know it gets the sound alone")
  func redundancy() throws {
    let world = try World()
    let (alice, bob) = try Self.call(
      world, Self.red, received: [Self.red], kind: .audio, encryption: .none)
    let carol = try world.client("carol")
    world.join(carol)
    try #require(world.connect(carol))
    #expect(alice.answer?.media.last?.formats == ["63", "111"])
    let payload: [UInt8] = [0x80 | 111, 0x0f, 0x00, 3, 111, 1, 2, 3, 10, 11, 12, 13]
    world.send([try alice.media(0, payload: payload)], from: alice)
    world.run(for: .milliseconds(50))
    #expect(bob.packets(payloadType: 63).map(\.payload) == [payload])
    #expect(carol.packets(payloadType: 111).map(\.payload) == [[10, 11, 12, 13]])
    #expect(carol.packets(payloadType: 63).isEmpty)
  }

  @Test("Encrypted sound is never sent redundant, which nobody could take apart")
  func encrypted() throws {
    let world = try World()
    let (alice, _) = try Self.call(world, Self.red, received: [Self.red], kind: .audio)
    #expect(alice.answer?.media.last?.formats == ["111"])
  }

  @Test("livekit 1.13: a packet with a wrong padding bit is dropped, an empty one goes through")
  func padding() throws {
    let world = try World()
    let (alice, bob) = try PalbeSFUCoreTests.call(world)
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    let before = bob.packets(payloadType: 96).count
    var header = RTPHeader(
      payloadType: PayloadType(96), sequenceNumber: SequenceNumber(alice.tracks[1].sequence),
      timestamp: RTPTimestamp(alice.tracks[1].timestamp), ssrc: alice.tracks[1].ssrc)
    for padding in [0, 200] as [UInt8] {
      var wrong = [UInt8](capacity: 200) { output in RTPPacketWriter.writeHeader(header, into: &output) }
      wrong[0] |= 0x20
      world.send([try alice.protected(wrong + [0x90, 0x80, 0x80, 1, padding])], from: alice)
      header.sequenceNumber = header.sequenceNumber + 1
    }
    world.run(for: .milliseconds(50))
    #expect(bob.packets(payloadType: 96).count == before)
    // Padding alone: five bytes, and what says so.
    var empty = [UInt8](capacity: 200) { output in RTPPacketWriter.writeHeader(header, into: &output) }
    empty[0] |= 0x20
    alice.tracks[1].sequence &+= 3
    world.send([try alice.protected(empty + [0, 0, 0, 0, 5])], from: alice)
    try ForwardingTests.send(2, from: alice, track: 1, in: world, startsWithKey: false)
    world.run(for: .milliseconds(50))
    let packets = bob.packets(payloadType: 96)
    #expect(packets.count == before + 5)
    #expect(packets.allSatisfy { !$0.header.hasPadding || $0.header.paddingByteCount > 0 })
    let good = packets.suffix(5)
    for (earlier, later) in zip(good, good.dropFirst()) {
      #expect(later.header.sequenceNumber.distance(from: earlier.header.sequenceNumber) == 1)
    }
  }
}
