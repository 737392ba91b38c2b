import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

/// Faults that were reported of other servers and clients, by their number in `docs/field-faults.md`. Those that a test
/// elsewhere shows carry their number there.
struct FieldFaultTests {
  // MARK: Negotiation

  @Test("LiveKit protocol §4 (2): what a section may not send does not narrow what others receive")
  func directions() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    world.join(alice)
    let bob = try world.client("bob")
    bob.tracks = [world.track("cam2", .video)]
    // What bob would send is of a codec that nobody forwards.
    var offer = bob.offer()
    let sending = offer.media.count - 1
    offer.media[sending].codecs = [RTPCodec(116, "H265", clockRate: 90_000)]
    world.join(
      bob,
      request: {
        $0.publisherOffer = .with { $0.sdp = offer.description }
      })
    let answer = try #require(bob.answer)
    #expect(!answer.direction(of: answer.media[sending]).receives)
    #expect(answer.media[1].direction == .sendonly)
    #expect(answer.media[1].formats.contains("96"))
    #expect(world.connect(alice) && world.connect(bob))
    try ForwardingTests.send(1, from: alice, track: 0, in: world)
    world.run(for: .milliseconds(50))
    #expect(bob.packets(payloadType: 96).count == 2)
  }

  @Test(
    "LiveKit protocol §4 (21): the section of a share that ended carries the next under a fresh stream")
  func freshStream() throws {
    let world = try World()
    let bob = try world.client("bob")
    world.join(bob)
    var streams: [String] = []
    var sources: Set<UInt32> = []
    for name in ["alice", "carol", "dave"] {
      let publisher = try world.client(name)
      publisher.tracks = [world.track("screen", .video)]
      world.join(publisher)
      #expect(world.connect(publisher))
      let section = try #require(bob.answer?.media.first { $0.mid == "v0" })
      let named = try #require(section.msids.first)
      #expect(named.stream.hasPrefix((publisher.join?.participant?.sid ?? "-") + "|"))
      #expect(bob.answers.last?.midToTrackId["v0"] == named.track)
      streams.append(named.stream)
      if let source = section.sources.first?.ssrc.rawValue { sources.insert(source) }
      world.signal(.leave(LiveKit.LeaveRequest()), from: publisher)
      // The client offers again for a reason of its own.
      world.signal(.offer(bob.offerMessage()), from: bob)
      #expect(bob.answer?.media.first { $0.mid == "v0" }?.direction == .inactive)
    }
    #expect(Set(streams).count == 3 && sources.count == 3)
  }

  @Test(
    "LiveKit protocol §4 (22): an encrypted track is never taken as RED, and nothing rewrites it")
  func redundancy() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio)]
    var offer = alice.offer()
    let sending = offer.media.count - 1
    offer.media[sending].codecs.insert(
      RTPCodec(63, "red", clockRate: 48_000, channels: 2, parameters: "111/111"), at: 0)
    var request = alice.addTrack(alice.tracks[0])
    request.encryption = .gcm
    request.disableRed = true
    world.join(
      alice,
      request: {
        $0.addTrackRequests = [request]
        $0.publisherOffer = .with { $0.sdp = offer.description }
      })
    #expect(alice.answer?.media[sending].formats == ["111"])
    let bob = try world.client("bob")
    world.join(bob)
    let info = try #require(bob.join?.otherParticipants.first?.tracks.first)
    #expect(info.disableRed && info.encryption == .gcm && info.mimeType == "audio/opus")
    #expect(world.connect(alice) && world.connect(bob))
    world.send([try alice.media(0, payload: [9, 8, 7, 6])], from: alice)
    world.run(for: .milliseconds(50))
    #expect(bob.packets.map(\.payload) == [[9, 8, 7, 6]])
  }

  @Test("LiveKit protocol §4 (23): a room that requires encryption offers codecs that can be encrypted")
  func codecs() throws {
    let world = try World { $0.requiresE2EE = true }
    let alice = try world.client("alice")
    world.join(alice)
    let mimes = Set(try #require(alice.join).enabledPublishCodecs.map { $0.mime.lowercased() })
    #expect(mimes.isSuperset(of: ["audio/opus", "video/vp8"]))
    #expect(mimes.isSubset(of: ["audio/opus", "video/vp8", "video/vp9", "video/h264"]))
  }

  @Test("LiveKit protocol §4 (11): a session that is replaced gets no offer any more")
  func replaced() throws {
    let world = try World()
    func join() throws -> ScriptedClient {
      let client = try world.client("bob")
      var details = world.details(client, request: { $0.publisherOffer = nil })
      details.usesTwoConnections = true
      world.handle(.join(client.connection, details))
      return client
    }
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    world.join(alice)
    let old = try join()
    // Before its first offer is due.
    let new = try join()
    world.run(for: .seconds(2))
    for client in [old, new] {
      guard case .join? = client.messages.first else {
        Issue.record("the first message is no join")
        return
      }
    }
    #expect(old.offers.isEmpty && old.isClosed)
    #expect(new.offers.count == 1)
  }

  // MARK: Pictures

  @Test(
    "LiveKit protocol §4 (5): nobody is asked before the subscriber is up, then at once, and again until it comes"
  )
  func lateSubscriber() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    world.join(alice)
    #expect(world.connect(alice))
    let bob = try world.client("bob")
    bob.answersChecks = false
    world.join(bob)
    #expect(bob.answer?.media[1].direction == .sendonly)
    world.run(for: .seconds(3))
    #expect(!bob.isUp && alice.keyFrameRequests == 0)
    // Its checks come again, and its handshake with them.
    bob.answersChecks = true
    #expect(world.run(for: .seconds(30)) { bob.isUp })
    #expect(world.run(for: .milliseconds(50)) { alice.keyFrameRequests == 1 })
    world.run(for: .milliseconds(1_600))
    #expect(alice.keyFrameRequests == 4)
    try ForwardingTests.send(1, from: alice, track: 0, in: world)
    world.run(for: .milliseconds(50))
    #expect(bob.packets(payloadType: 96).count == 2)
  }

  @Test("LiveKit protocol §4 (6): the first picture of a share that stands still comes within 150 ms")
  func stillShare() throws {
    let world = try World()
    let (alice, _) = try call(world)
    try ForwardingTests.send(1, from: alice, track: 1, in: world)
    world.run(for: .seconds(60))
    let carol = try world.client("carol")
    var answered = alice.keyFrameRequests
    let start = world.now
    world.join(carol)
    while carol.packets(payloadType: 96).isEmpty, world.now - start < .seconds(2) {
      // The encoder makes a picture only when it is asked to.
      if alice.keyFrameRequests > answered {
        answered = alice.keyFrameRequests
        world.send(try alice.videoFrame(1, isKeyFrame: true), from: alice)
      }
      world.run(for: .milliseconds(5))
    }
    #expect(world.now - start <= .milliseconds(150), "\((world.now - start).inMilliseconds) ms")
  }

  @Test("LiveKit protocol §4 (7): a join and a repeated subscription ask the publisher for a picture")
  func pictureRequests() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.last?.sid)
    func settle() throws {
      try ForwardingTests.send(2, from: alice, track: 1, in: world)
      world.run(for: .seconds(2))
    }
    try settle()
    var before = alice.keyFrameRequests
    let carol = try world.client("carol")
    world.join(carol)
    #expect(world.connect(carol))
    #expect(world.run(for: .milliseconds(100)) { alice.keyFrameRequests == before + 1 })
    try settle()
    before = alice.keyFrameRequests
    for isWanted in [false, true] {
      world.signal(
        .subscription(
          .with {
            $0.trackSids = [sid]
            $0.subscribe = isWanted
          }), from: bob)
    }
    #expect(world.run(for: .milliseconds(100)) { alice.keyFrameRequests == before + 1 })
  }

  @Test("LiveKit protocol §4 (7): another layer begins with a key frame that its publisher is asked for")
  func layerRequests() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    let offer = try alice.simulcastOffer()
    world.join(alice, request: { $0.publisherOffer = .with { $0.sdp = offer } })
    let bob = try world.client("bob")
    world.join(bob)
    #expect(world.connect(alice) && world.connect(bob))
    var layers = [ScriptedLayer(rid: "q", ssrc: 71), ScriptedLayer(rid: "f", ssrc: 72)]
    func requests(of ssrc: UInt32) -> Int {
      alice.control.count { if case .pictureLossIndication(_, SSRC(ssrc)) = $0 { true } else { false } }
    }
    func run(_ frames: Int) throws {
      var answered = [requests(of: 71), requests(of: 72)]
      for _ in 0..<frames {
        for index in layers.indices {
          let asked = requests(of: layers[index].ssrc)
          let packet = try alice.layerPacket(&layers[index], isKeyFrame: asked > answered[index])
          answered[index] = asked
          world.send([packet], from: alice)
        }
        world.run(for: .milliseconds(33))
      }
    }
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.last?.sid)
    try run(90)
    for (quality, ssrc) in [(LiveKit.VideoQuality.low, UInt32(71)), (.high, 72)] {
      let before = requests(of: ssrc)
      world.signal(
        .trackSetting(
          .with {
            $0.trackSids = [sid]
            $0.quality = quality
          }), from: bob)
      try run(60)
      #expect(requests(of: ssrc) > before)
      #expect(bob.packets(payloadType: 96).last?.payload.last == UInt8(ssrc))
    }
  }

  // MARK: Packets

  @Test("LiveKit protocol §4 (36): the padding bit says what is there, and false padding goes nowhere")
  func padding() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    func send(_ payload: [UInt8], padding: [UInt8]) throws {
      let header = RTPHeader(
        payloadType: PayloadType(111), sequenceNumber: SequenceNumber(alice.tracks[0].sequence),
        timestamp: RTPTimestamp(alice.tracks[0].timestamp), ssrc: alice.tracks[0].ssrc)
      alice.tracks[0].sequence &+= 1
      alice.tracks[0].timestamp &+= 960
      var clear = [UInt8](capacity: 200) { output in
        RTPPacketWriter.writeHeader(
          header, extensions: RTPExtensionValues(), ids: RTPExtensionIDs(), into: &output)
      }
      clear += payload + padding
      if !padding.isEmpty { clear[0] |= 0x20 }
      world.send([try alice.protected(clear)], from: alice)
      world.run(for: .milliseconds(20))
    }
    try send([1, 2, 3], padding: [])
    try send([4, 5, 6], padding: [0, 0, 3])
    // More than there is, and none at all.
    try send([7], padding: [200])
    try send([8], padding: [0])
    try send([9, 9], padding: [])
    world.run(for: .milliseconds(50))
    #expect(bob.packets.map(\.payload) == [[1, 2, 3], [4, 5, 6], [9, 9]])
    #expect(bob.packets.allSatisfy { !$0.header.hasPadding })
    #expect(bob.refused == 0)
  }
}
