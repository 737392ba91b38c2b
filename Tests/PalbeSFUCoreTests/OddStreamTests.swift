import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeUnits
import Testing

@testable import PalbeSFUCore

@Suite("Streams as the standards allow them and few send them")
struct OddStreamTests {
  /// A VP8 frame of one packet, or its retransmission, that names its section.
  private func frame(
    _ client: ScriptedClient, ssrc: UInt32, sequence: UInt16, picture: UInt16, isKeyFrame: Bool,
    repairs: Bool = false
  ) throws -> [UInt8] {
    let header = RTPHeader(
      marker: true, payloadType: PayloadType(repairs ? 97 : 96), sequenceNumber: SequenceNumber(sequence),
      timestamp: RTPTimestamp(UInt32(picture) * 3_000), ssrc: SSRC(ssrc))
    var values = RTPExtensionValues()
    values.mid = ShortText(client.tracks[0].cid)
    if repairs { values.repairedRID = ShortText("f") } else { values.rid = ShortText("f") }
    var ids = RTPExtensionIDs()
    ids.mid = 4
    ids.rid = 10
    ids.repairedRID = 11
    let clear = [UInt8](capacity: 200) { output in
      RTPPacketWriter.writeHeader(header, extensions: values, ids: ids, into: &output)
      if repairs { for byte in [UInt8(sequence >> 8), UInt8(sequence & 255)] { output.append(byte) } }
      VP8PayloadDescriptor(startsPartition: true, pictureID: picture).write(into: &output)
      output.append(isKeyFrame ? 0x10 : 0x11)
      for _ in 0..<20 { output.append(UInt8(truncatingIfNeeded: ssrc)) }
    }
    return try client.protected(clear)
  }

  private func publish(_ world: World) throws -> (alice: ScriptedClient, bob: ScriptedClient) {
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    let offer = try alice.simulcastOffer(["f"])
    world.join(alice, request: { $0.publisherOffer = .with { $0.sdp = offer } })
    let bob = try world.client("bob")
    world.join(bob)
    try #require(world.connect(alice) && world.connect(bob))
    return (alice, bob)
  }

  @Test(
    "RFC 3550 §8.2: a source that changes its SSRC goes on with its first key frame, without a gap or a pause"
  )
  func changedSource() throws {
    let world = try World()
    let (alice, bob) = try publish(world)
    var picture: UInt16 = 1
    func send(_ source: UInt32, _ sequence: UInt16, isKeyFrame: Bool = false, repairs: Bool = false) throws {
      let packet = try frame(
        alice, ssrc: repairs ? 1_000 + source : source, sequence: sequence, picture: picture,
        isKeyFrame: isKeyFrame, repairs: repairs)
      world.send([packet], from: alice)
      world.run(for: .milliseconds(33))
    }
    // More changes than a track has sources, or SRTP knows, at once.
    for source in UInt32(1)...40 {
      for number in UInt16(0)..<4 {
        try send(source, 100 + number, isKeyFrame: number == 0)
        picture += 1
        if number == 1 { try send(source, 100, repairs: true) }
      }
      // Late ones of the source before, repairs too.
      if source > 1 {
        try send(source - 1, 110)
        try send(source - 1, 111, repairs: true)
      }
    }
    world.run(for: .milliseconds(50))
    let packets = bob.packets(payloadType: 96)
    #expect(packets.map { $0.payload.last } == (1...40).flatMap { [UInt8](repeating: $0, count: 4) })
    for (earlier, later) in zip(packets, packets.dropFirst()) {
      #expect(later.header.sequenceNumber.distance(from: earlier.header.sequenceNumber) == 1)
      #expect(later.header.timestamp.distance(from: earlier.header.timestamp) > 0)
    }
    let ids = try packets.map { try VP8PayloadDescriptor.parse($0.payload.span).pictureID ?? 0 }
    #expect(zip(ids, ids.dropFirst()).allSatisfy { ($1 &- $0) & 0x7fff == 1 })
    let uplink = try #require(world.worker.participants.first { $0.identity == "alice" }?.uplink)
    #expect(uplink.streams.count == 2 && uplink.tracks[0].streams.count == 1)
  }

  @Test("A packet of the source before, come late, does not bring that source back")
  func lateOfOldSource() throws {
    let world = try World()
    let (alice, bob) = try publish(world)
    func send(_ source: UInt32, _ sequence: UInt16, _ picture: UInt16, isKeyFrame: Bool = false) throws {
      let packet = try frame(
        alice, ssrc: source, sequence: sequence, picture: picture, isKeyFrame: isKeyFrame)
      world.send([packet], from: alice)
      world.run(for: .milliseconds(33))
    }
    try send(1, 10, 1, isKeyFrame: true)
    try send(1, 11, 2)
    try send(2, 50, 4, isKeyFrame: true)
    try send(1, 12, 3)
    try send(2, 51, 5)
    world.run(for: .milliseconds(50))
    #expect(bob.packets(payloadType: 96).map { $0.payload.last } == [1, 1, 2, 2])
  }

  @Test("However many sources a section has had, the last of those that are gone do not come back")
  func manySources() throws {
    let world = try World()
    let (alice, bob) = try publish(world)
    for source in UInt32(1)...1_100 {
      let packet = try frame(
        alice, ssrc: source, sequence: 10, picture: UInt16(source), isKeyFrame: true)
      world.send([packet], from: alice)
      world.run(for: .milliseconds(15))
    }
    let before = bob.packets(payloadType: 96).count
    #expect(before >= 1_099)
    for (source, sequence, picture) in [
      (1_099, 11, 1_101), (1_100, 11, 1_102), (1_098, 11, 1_103), (1_100, 12, 1_104),
    ] {
      let packet = try frame(
        alice, ssrc: UInt32(source), sequence: UInt16(sequence), picture: UInt16(picture),
        isKeyFrame: source < 1_100)
      world.send([packet], from: alice)
      world.run(for: .milliseconds(33))
    }
    world.run(for: .milliseconds(50))
    let last = bob.packets(payloadType: 96).suffix(2).map { $0.payload.last }
    #expect(bob.packets(payloadType: 96).count == 1_102 && last == [UInt8(1_100 & 255), UInt8(1_100 & 255)])
  }

  @Test(
    "RFC 3550 §5.1, RFC 8285: contributing sources go along, extensions in either form are read, foreign payload types dropped"
  )
  func headers() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let source = alice.tracks[0].ssrc
    func packet(_ sequence: UInt16, type: UInt8 = 111, _ parts: [UInt8], csrcs: UInt8 = 0) -> [UInt8] {
      [0x80 | csrcs, type, UInt8(sequence >> 8), UInt8(sequence & 255), 0, 0, 0x10, 0]
        + (0..<4).map { UInt8(truncatingIfNeeded: source.rawValue >> (24 - 8 * $0)) } + parts
    }
    func withExtension(_ packet: [UInt8]) -> [UInt8] { [packet[0] | 0x10] + packet.dropFirst() }
    let contributors: [UInt8] = [0, 0, 0, 1, 0, 0, 0, 2]
    // The level in two bytes of overhead, behind an element of nobody's and padding.
    let twoByte: [UInt8] = [0x10, 0, 0, 3, 200, 3, 7, 7, 7, 0, 0, 1, 1, 0x9e, 0, 0]
    let oneByte: [UInt8] = [0xbe, 0xde, 0, 1, 0x10, 0x9e, 0, 0]
    let foreign: [UInt8] = [0xab, 0xcd, 0, 1, 1, 2, 3, 4]
    for clear in [
      packet(1, [1, 1]), packet(2, contributors + [2, 2], csrcs: 2),
      withExtension(packet(3, twoByte + [3, 3])), withExtension(packet(4, oneByte + [4, 4])),
      withExtension(packet(5, contributors + foreign + [5, 5], csrcs: 2)),
      // Of no format that was agreed on.
      packet(6, type: 0, [6, 6]), packet(7, [7, 7]),
    ] {
      world.send([try alice.protected(clear)], from: alice)
      world.run(for: .milliseconds(20))
    }
    world.run(for: .milliseconds(50))
    let packets = bob.packets(payloadType: 111)
    #expect(packets.map(\.payload) == [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [7, 7]])
    #expect(packets.map(\.header.csrcCount) == [0, 2, 0, 0, 2, 0])
    #expect(packets.dropFirst().first.map { Array($0.bytes[12..<20]) } == contributors)
    let levels = packets.map { packet in
      packet.header.extensionRange(id: 1, in: packet.bytes.span).map { packet.bytes[$0.lowerBound] }
    }
    #expect(levels == [nil, nil, 0x9e, 0x9e, nil, nil])
    #expect(bob.packets.count == packets.count && bob.refused == 0)
  }

  @Test(
    "livekit-protocol.md §1.4: layers of other names than q, h and f have the rank that their publisher told")
  func namedLayers() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    var request = alice.addTrack(alice.tracks[0])
    request.layers = [(LiveKit.VideoQuality.high, "big"), (.low, "small")].map { quality, rid in
      .with {
        $0.quality = quality
        $0.rid = rid
      }
    }
    let offer = try alice.simulcastOffer(["big", "small"])
    world.join(
      alice,
      request: {
        $0.addTrackRequests = [request]
        $0.publisherOffer = .with { $0.sdp = offer }
      })
    let bob = try world.client("bob")
    world.join(bob)
    #expect(world.connect(alice) && world.connect(bob))
    // The better one comes first.
    var layers = [ScriptedLayer(rid: "big", ssrc: 71), ScriptedLayer(rid: "small", ssrc: 72)]
    for step in 0..<120 {
      for index in layers.indices {
        let packet = try alice.layerPacket(&layers[index], isKeyFrame: step % 15 == 0)
        world.send([packet], from: alice)
      }
      world.run(for: .milliseconds(33))
    }
    #expect(bob.packets(payloadType: 96).last?.payload.last == 71)
  }

  @Test(
    "FEC: no format of it is agreed on for video, its sources carry nothing, and Opus keeps what it has in band"
  )
  func forwardErrorCorrection() throws {
    let world = try World()
    let fec = [
      RTPCodec(119, "red", clockRate: 90_000), RTPCodec(120, "rtx", clockRate: 90_000, parameters: "apt=119"),
      RTPCodec(121, "ulpfec", clockRate: 90_000),
      RTPCodec(122, "flexfec-03", clockRate: 90_000, parameters: "repair-window=10000000"),
    ]
    let alice = try world.client("alice")
    alice.moreCodecs = fec
    alice.tracks = [world.track("mic", .audio), world.track("cam", .video)]
    var offer = alice.offer()
    let camera = offer.media.count - 1
    let media = alice.tracks[1].ssrc
    offer.media[camera].sources.append(MediaSource(ssrc: SSRC(99), cname: "alice"))
    offer.media[camera].sourceGroups.append(MediaSourceGroup("FEC-FR", [media, SSRC(99)]))
    world.join(alice, request: { $0.publisherOffer = .with { $0.sdp = offer.description } })
    #expect(alice.answer?.media[camera].formats == ["96", "97"])
    #expect(alice.answer?.media[camera - 1].codecs.first?.parameters.contains("useinbandfec=1") == true)
    let bob = try world.client("bob")
    bob.moreCodecs = fec
    world.join(bob)
    #expect(bob.answer?.media[1].formats == ["96", "97"])
    #expect(bob.answer?.media[0].codecs.first?.parameters.contains("useinbandfec=1") == true)
    #expect(world.connect(alice) && world.connect(bob))
    let track = try #require(world.worker.participants.first { $0.identity == "alice" }?.uplink.tracks.last)
    #expect(track.streams.map(\.ssrc) == [media])
    // A packet of Opus with an earlier one inside is a payload like any other.
    let inBand: [UInt8] = [0x0c, 0x9a] + CodecTests.noise(120, 3)
    world.send([try alice.media(0, payload: inBand)], from: alice)
    world.run(for: .milliseconds(50))
    #expect(bob.packets(payloadType: 111).map(\.payload) == [inBand])
  }
}
