import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

struct ForwardingTests {
  /// Sends `count` frames 33 ms apart, the first one a key frame where asked.
  static func send(
    _ count: Int, from client: ScriptedClient, track: Int, in world: World, startsWithKey: Bool = true
  ) throws {
    for number in 0..<count {
      world.send(try client.videoFrame(track, isKeyFrame: startsWithKey && number == 0), from: client)
      world.run(for: .milliseconds(33))
    }
  }

  @Test(
    "Audio goes through at once: payload byte-equal, own SSRC, subscriber's payload type and extension id")
  func audio() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    var payloads: [[UInt8]] = []
    for number in 0..<20 {
      let payload = (0..<80).map { UInt8(truncatingIfNeeded: $0 &+ number) }
      payloads.append(payload)
      world.send([try alice.media(0, payload: payload)], from: alice)
      alice.tracks[0].timestamp &+= 960
      world.run(for: .milliseconds(20))
    }
    world.run(for: .milliseconds(100))
    let packets = bob.packets(payloadType: 111)
    #expect(packets.map(\.payload) == payloads)
    let ssrc = try #require(bob.answer?.media[0].sources.first?.ssrc)
    #expect(packets.allSatisfy { $0.header.ssrc == ssrc })
    var ids = RTPExtensionIDs()
    ids.audioLevel = 1
    #expect(packets.first.map { ids.read($0.header, in: $0.bytes.span).audioLevel?.level } == 30)
    #expect(world.received.count == 20)
    #expect(bob.refused == 0)
  }

  @Test("LiveKit protocol §4 (1): a subscriber with other payload types and ids gets its own")
  func renumbered() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio), world.track("cam", .video)]
    world.join(alice)
    let bob = try world.client("bob")
    bob.opusPayloadType = 109
    bob.vp8PayloadType = 120
    bob.audioLevelID = 14
    world.join(bob)
    #expect(world.connect(alice) && world.connect(bob))
    #expect(bob.answer?.media[0].formats == ["109"])
    #expect(bob.answer?.media[1].formats == ["120", "97"])
    world.send([try alice.media(0, payload: [1, 2, 3])], from: alice)
    try Self.send(1, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(50))
    let audio = try #require(bob.packets(payloadType: 109).first)
    let level = audio.header.extensionRange(id: 14, in: audio.bytes.span)
    #expect(level?.count == 1)
    #expect(bob.packets(payloadType: 120).count == 2)
    // The same for what it sends, and for sections that carry nothing.
    bob.tracks = [world.track("bobmic", .audio), world.track("bobcam", .video)]
    bob.tracks[0].number = 109
    bob.tracks[1].number = 120
    bob.audioSections = 2
    bob.videoSections = 3
    let offer = bob.offer()
    world.signal(.offer(.with { $0.sdp = offer.description }), from: bob)
    for track in bob.tracks { world.signal(.addTrack(bob.addTrack(track)), from: bob) }
    let answer = try #require(bob.answer)
    #expect(answer.media.count == offer.media.count)
    for (answered, offered) in zip(answer.media, offer.media) where answered.isRTP {
      #expect(!answered.formats.isEmpty && Set(answered.formats).isSubset(of: offered.formats))
      #expect(
        answered.codecs.allSatisfy { codec in offered.codecs.contains { $0.payloadType == codec.payloadType }
        })
      #expect(answered.headerExtensions.allSatisfy(offered.headerExtensions.contains))
    }
    world.run(for: .milliseconds(200))
    world.send([try bob.media(0, payload: [4, 5, 6])], from: bob)
    try Self.send(1, from: bob, track: 1, in: world)
    world.run(for: .milliseconds(50))
    #expect(alice.packets(payloadType: 111).last?.payload == [4, 5, 6])
    #expect(alice.packets(payloadType: 96).count == 2)
  }

  @Test(
    "Video starts with a key frame; behind the descriptor every payload is byte-equal, numbers have no gap")
  func video() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    try Self.send(5, from: alice, track: 1, in: world, startsWithKey: false)
    #expect(bob.packets(payloadType: 96).isEmpty)
    let before = world.received.count
    try Self.send(10, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    let packets = bob.packets(payloadType: 96)
    #expect(packets.count == 20)
    let sent = world.received[before...].map { bytes -> [UInt8] in
      guard let header = try? RTPHeader.parse(bytes.span) else { return [] }
      return Array(bytes[header.payloadRange(in: bytes.span)].dropFirst(4))
    }
    #expect(packets.map { Array($0.payload.dropFirst(4)) } == sent)
    for (earlier, later) in zip(packets, packets.dropFirst()) {
      #expect(later.header.sequenceNumber.distance(from: earlier.header.sequenceNumber) == 1)
    }
    let first = try VP8PayloadDescriptor.parse(packets[0].payload.span)
    let isKeyFrame = first.isKeyFrame(in: packets[0].payload.span)
    #expect(isKeyFrame)
  }

  @Test("Over links of 10 ms a joining subscriber has its first key frame within 150 ms")
  func setUp() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio), world.track("cam", .video)]
    world.join(alice)
    try #require(world.connect(alice))
    let bob = try world.client("bob")
    let start = world.now
    world.join(bob)
    var answered = 0
    while bob.packets(payloadType: 96).isEmpty, world.now - start < .seconds(2) {
      let isKeyFrame = alice.keyFrameRequests > answered
      answered = alice.keyFrameRequests
      world.send(try alice.videoFrame(1, isKeyFrame: isKeyFrame), from: alice)
      world.run(for: .milliseconds(5))
    }
    #expect(world.now - start <= .milliseconds(150), "\((world.now - start).inMilliseconds) ms")
  }

  @Test(
    "LiveKit protocol §4 (5): once the subscriber is up a key frame is asked for, until it comes"
  )
  func keyFrameRequests() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    _ = bob
    let isAsked = world.run(for: .milliseconds(50)) { alice.keyFrameRequests == 1 }
    #expect(isAsked)
    world.run(for: .milliseconds(2_050))
    #expect(alice.keyFrameRequests == 5)
    try Self.send(1, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(500))
    let after = alice.keyFrameRequests
    world.run(for: .seconds(3))
    #expect(alice.keyFrameRequests == after)
  }

  @Test("LiveKit protocol §4 (4): requests of many subscribers reach the publisher as one each 500 ms")
  func coalesced() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let carol = try world.client("carol")
    world.join(carol)
    #expect(world.connect(carol))
    try Self.send(3, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(600))
    let before = alice.keyFrameRequests
    for _ in 0..<20 {
      for client in [bob, carol] {
        let media = try #require(client.answer?.media[1].sources.first?.ssrc)
        world.send(
          [try client.controlPacket([.pictureLossIndication(sender: SSRC(1), media: media)])], from: client)
      }
      world.run(for: .milliseconds(50))
    }
    let asked = alice.keyFrameRequests - before
    #expect((2...3).contains(asked), "\(asked)")
  }

  @Test(
    "A layer's pause: disabled by the subscriber, or in quality OFF, then on again with a key frame; numbers and picture ids go on",
    arguments: [false, true]
  )
  func disabled(byQuality: Bool) throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.last?.sid)
    try Self.send(4, from: alice, track: 1, in: world)
    world.signal(
      .trackSetting(
        .with {
          $0.trackSids = [sid]
          if byQuality { $0.quality = .off } else { $0.disabled = true }
        }), from: bob)
    try Self.send(4, from: alice, track: 1, in: world, startsWithKey: false)
    world.run(for: .milliseconds(500))
    let requests = alice.keyFrameRequests
    world.signal(
      .trackSetting(
        .with {
          $0.trackSids = [sid]
          $0.disabled = false
        }), from: bob)
    world.run(for: .milliseconds(30))
    #expect(alice.keyFrameRequests == requests + 1)
    try Self.send(4, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    let packets = bob.packets(payloadType: 96)
    #expect(packets.count == 16)
    for (earlier, later) in zip(packets, packets.dropFirst()) {
      #expect(later.header.sequenceNumber.distance(from: earlier.header.sequenceNumber) == 1)
    }
    let ids = try packets.map { try VP8PayloadDescriptor.parse($0.payload.span).pictureID ?? 0 }
    let distances = zip(ids, ids.dropFirst()).map { ($1 &- $0) & 0x7fff }
    #expect(Set(distances) == [0, 1])
    #expect(world.reuses == 0)
  }

  @Test("Muted: nothing goes through, whatever is sent; then again with a key frame, and numbers go on")
  func muted() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let tracks = try #require(bob.join?.otherParticipants.first?.tracks)
    func mute(_ isMuted: Bool) {
      for track in tracks {
        world.signal(
          .mute(
            .with {
              $0.sid = track.sid
              $0.muted = isMuted
            }), from: alice)
      }
    }
    func send(startsWithKey: Bool) throws {
      for number in 0..<4 {
        world.send([try alice.media(0, payload: [1, 2, 3])], from: alice)
        world.send(try alice.videoFrame(1, isKeyFrame: startsWithKey && number == 0), from: alice)
        world.run(for: .milliseconds(20))
      }
    }
    try send(startsWithKey: true)
    mute(true)
    try send(startsWithKey: true)
    world.run(for: .seconds(1))
    #expect(bob.packets(payloadType: 96).count == 8 && bob.packets(payloadType: 111).count == 4)
    let requests = alice.keyFrameRequests
    mute(false)
    world.run(for: .milliseconds(30))
    #expect(alice.keyFrameRequests == requests + 1)
    try send(startsWithKey: true)
    world.run(for: .milliseconds(50))
    for (payloadType, count) in [(UInt8(96), 16), (111, 8)] {
      let packets = bob.packets(payloadType: payloadType)
      #expect(packets.count == count)
      for (earlier, later) in zip(packets, packets.dropFirst()) {
        #expect(later.header.sequenceNumber.distance(from: earlier.header.sequenceNumber) == 1)
      }
    }
    #expect(world.reuses == 0)
  }

  @Test("Unsubscribe and subscribe: forwarding stops, and starts again in a section of the next answer")
  func resubscribe() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.last?.sid)
    try Self.send(2, from: alice, track: 1, in: world)
    world.signal(.subscription(.with { $0.trackSids = [sid] }), from: bob)
    try Self.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == 4)
    world.run(for: .milliseconds(500))
    world.signal(
      .subscription(
        .with {
          $0.trackSids = [sid]
          $0.subscribe = true
        }), from: bob)
    #expect(bob.answers.count == 3)
    // Another stream: to clients made of Rust the same one in the same section is no new track.
    let streams = try bob.answers.map { try SessionDescription(parsing: $0.sdp).media[1].msids.first }
    #expect(streams[0]?.stream.hasSuffix("|" + sid) == true && streams[0]?.track == streams[2]?.track)
    #expect(streams[1] == nil && streams[0]?.stream != streams[2]?.stream)
    try Self.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == 8)
    #expect(world.reuses == 0)
  }

  @Test("Without auto_subscribe nothing is forwarded before it is asked for")
  func manual() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    world.join(alice)
    let bob = try world.client("bob")
    world.join(bob, request: { $0.connectionSettings = .with { $0.autoSubscribe = false } })
    #expect(world.connect(alice) && world.connect(bob))
    try Self.send(2, from: alice, track: 0, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets.isEmpty)
    #expect(bob.answer?.media[1].direction == .inactive)
  }

  @Test("Simulcast: layers are found by RID, the best live one is forwarded, a lower one when asked for")
  func simulcast() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    world.join(
      alice,
      request: { request in
        guard let offer = try? alice.simulcastOffer() else { return }
        request.publisherOffer = .with {
          $0.type = "offer"
          $0.sdp = offer
        }
      })
    #expect(alice.answer?.media.last?.simulcast?.receive == ["q", "f"])
    let bob = try world.client("bob")
    world.join(bob)
    #expect(world.connect(alice) && world.connect(bob))
    var layers = [ScriptedLayer(rid: "q", ssrc: 71), ScriptedLayer(rid: "f", ssrc: 72)]
    func run(_ frames: Int, key: Bool) throws {
      for number in 0..<frames {
        for index in layers.indices {
          let packet = try alice.layerPacket(&layers[index], isKeyFrame: key && number == 0)
          world.send([packet], from: alice)
        }
        world.run(for: .milliseconds(33))
      }
    }
    try run(60, key: true)
    world.run(for: .milliseconds(600))
    try run(10, key: true)
    world.run(for: .milliseconds(100))
    let high = bob.packets(payloadType: 96)
    #expect(high.last?.payload.last == 72)
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.last?.sid)
    world.signal(
      .trackSetting(
        .with {
          $0.trackSids = [sid]
          $0.quality = .low
        }), from: bob)
    try run(10, key: true)
    world.run(for: .milliseconds(100))
    let packets = bob.packets(payloadType: 96)
    #expect(packets.last?.payload.last == 71)
    for (earlier, later) in zip(packets, packets.dropFirst()) {
      #expect(later.header.sequenceNumber.distance(from: earlier.header.sequenceNumber) == 1)
      #expect(later.header.timestamp.rawValue &- earlier.header.timestamp.rawValue < 90_000)
    }
    let ids = try packets.map { try VP8PayloadDescriptor.parse($0.payload.span).pictureID ?? 0 }
    #expect(zip(ids, ids.dropFirst()).allSatisfy { ($1 &- $0) & 0x7fff == 1 })
  }
}

struct ScriptedLayer {
  var rid: String
  var ssrc: UInt32
  var sequence: UInt16 = 9
  var timestamp: UInt32 = 77
  var pictureID: UInt16 = 3
}
