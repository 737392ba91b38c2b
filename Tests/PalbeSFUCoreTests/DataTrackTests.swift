import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

extension ScriptedClient {
  var dataTrackInfos: [LiveKit.DataTrackInfo] {
    messages.compactMap { if case .publishDataTrackResponse(let answer) = $0 { answer.info } else { nil } }
  }

  /// The last map of handles, by the sids of their tracks.
  var handles: [String: UInt32]? {
    let maps = messages.compactMap { message -> LiveKit.DataTrackSubscriberHandles? in
      if case .dataTrackSubscriberHandles(let map) = message { map } else { nil }
    }
    guard let last = maps.last else { return nil }
    return Dictionary(last.subHandles.map { ($1.trackSid, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Payloads of packets under a handle.
  func frames(_ handle: UInt32?) -> [String] {
    channels.trackPackets.compactMap { bytes in
      guard let packet = try? LiveKit.DataTrackPacket(bytes.span), UInt32(packet.handle) == handle else {
        return nil
      }
      return String(decoding: bytes[12...], as: UTF8.self)
    }
  }
}

extension World {
  func joinWithDataTracks(
    _ identity: String, grant: (inout AccessGrant) -> Void = { _ in },
    request: (inout LiveKit.JoinRequest) -> Void = { _ in }
  ) throws -> ScriptedClient {
    let client = try client(identity)
    client.channels.opens.append(
      DataChannel(label: "_data_track", isOrdered: false, reliability: .retransmits(0)))
    join(client, grant: grant, request: request)
    try #require(run(for: .seconds(5)) { client.channels.ids.count == 3 })
    return client
  }

  func publishDataTrack(
    _ client: ScriptedClient, _ handle: UInt32 = 1,
    _ change: (inout LiveKit.PublishDataTrackRequest) -> Void = { _ in }
  ) {
    signal(
      .publishDataTrackRequest(
        .with {
          $0.pubHandle = handle
          $0.name = "track \(handle)"
          change(&$0)
        }), from: client)
  }

  func subscribeToData(_ client: ScriptedClient, _ sid: String?, _ subscribe: Bool = true) {
    signal(
      .updateDataSubscription(
        .with {
          $0.updates = [
            .with {
              $0.trackSid = sid ?? ""
              $0.subscribe = subscribe
            }
          ]
        }), from: client)
  }

  /// One packet that is a whole frame.
  func sendFrame(
    _ text: String, _ handle: UInt16 = 1, from client: ScriptedClient, extensions: [UInt8] = []
  ) throws {
    let first: UInt8 = extensions.isEmpty ? 0x18 : 0x1c
    let header: [UInt8] = [first, 0, UInt8(handle >> 8), UInt8(handle & 255), 0, 1, 0, 1, 0, 0, 0, 1]
    try data?.send(header + extensions + Array(text.utf8), on: "_data_track", from: client, at: now)
    drain()
  }
}

extension DataSuites {
  @Suite("Data tracks (LiveKit protocol 1.5)")
  struct DataTrackTests {
    @Test("published: answered with a sid, and told with the participant, to late joiners too")
    func publish() throws {
      let world = try World.withData()
      let alice = try world.joinWithDataTracks("alice")
      let bob = try world.joinWithDataTracks("bob")
      world.publishDataTrack(alice, 7) {
        $0.schema = .with { $0.name = "pose" }
        $0.frameEncoding = .with { $0.value = .custom("mine") }
        $0.encryption = .gcm
      }
      let info = try #require(alice.dataTrackInfos.first)
      #expect(info.sid.hasPrefix("DTR_") && info.pubHandle == 7 && info.name == "track 7")
      #expect(info.encryption == .gcm && info.schema?.name == "pose")
      #expect(info.frameEncoding?.value?.custom == "mine")
      #expect(bob.updates(of: "alice").last?.dataTracks == [info])
      #expect(bob.updates(of: "alice").last?.isPublisher == true)
      let carol = try world.joinWithDataTracks("carol")
      #expect(carol.join?.otherParticipants.first { $0.identity == "alice" }?.dataTracks == [info])
      world.signal(.unpublishDataTrackRequest(.with { $0.pubHandle = 7 }), from: alice)
      #expect(alice.messages.contains(.unpublishDataTrackResponse(.with { $0.info = info })))
      #expect(bob.updates(of: "alice").last?.dataTracks == [])
      world.signal(.unpublishDataTrackRequest(.with { $0.pubHandle = 7 }), from: alice)
      #expect(alice.refusals.map(\.reason) == [.notFound])
    }

    @Test("what is refused, and with which reason")
    func refusals() throws {
      let world = try World.withData { $0.maxTracksPerParticipant = 2 }
      let alice = try world.joinWithDataTracks("alice")
      let mute = try world.joinWithDataTracks("mute") { $0.canPublishData = false }
      world.publishDataTrack(mute)
      #expect(mute.refusals.map(\.reason) == [.notAllowed])
      world.publishDataTrack(alice, 0)
      world.publishDataTrack(alice, 65_536)
      world.publishDataTrack(alice) { $0.name = "" }
      world.publishDataTrack(alice) { $0.name = String(repeating: "n", count: 257) }
      world.publishDataTrack(alice) { $0.encryption = .custom }
      world.publishDataTrack(alice) { $0.frameEncoding = .with { $0.value = .custom("") } }
      world.publishDataTrack(alice) {
        $0.schema = .with { $0.encoding = .with { $0.value = .custom(String(repeating: "e", count: 33)) } }
      }
      world.publishDataTrack(alice)
      world.publishDataTrack(alice) { $0.name = "other" }
      world.publishDataTrack(alice, 2) { $0.name = "track 1" }
      world.publishDataTrack(alice, 2)
      world.publishDataTrack(alice, 3)
      #expect(
        alice.refusals.map(\.reason) == [
          .invalidHandle, .invalidHandle, .invalidName, .invalidName, .invalidRequest, .invalidRequest,
          .invalidRequest, .duplicateHandle, .duplicateName, .limitExceeded,
        ])
      #expect(alice.refusals.allSatisfy { $0.request?.publishDataTrack != nil })
      #expect(alice.dataTrackInfos.map(\.pubHandle) == [1, 2])
    }

    @Test("packets go to subscribers alone, under their handle; a forged PARTICIPANT_SID is left out")
    func packets() throws {
      let world = try World.withData()
      let alice = try world.joinWithDataTracks("alice")
      let bob = try world.joinWithDataTracks("bob")
      let eager = try world.joinWithDataTracks(
        "eager", request: { $0.connectionSettings?.autoSubscribeDataTrack = true })
      let dan = try world.joinWithDataTracks("dan")
      world.publishDataTrack(alice, 300)
      world.publishDataTrack(dan, 300)
      let sid = try #require(alice.dataTrackInfos.first?.sid)
      #expect(bob.handles == nil && eager.handles?.count == 2)
      world.subscribeToData(bob, sid)
      let handle = try #require(bob.handles?[sid])
      #expect(bob.handles?.count == 1 && eager.handles?[sid] != eager.handles?[dan.dataTrackInfos[0].sid])
      try world.sendFrame("one", 300, from: alice)
      let forged: [UInt8] = [0, 1, 255, 4, 80, 65, 95, 120]
      try world.sendFrame("two", 300, from: alice, extensions: forged)
      try world.sendFrame("dan", 300, from: dan)
      try world.sendFrame("no such track", 301, from: alice)
      try world.data?.send([1, 2, 3], on: "_data_track", from: alice, at: world.now)
      world.run(for: .seconds(1))
      #expect(bob.frames(handle) == ["one", "two"])
      #expect(bob.channels.trackPackets.count == 2)
      #expect(Set(eager.frames(eager.handles?[sid])) == ["one", "two"])
      #expect(eager.frames(eager.handles?[dan.dataTrackInfos[0].sid]) == ["dan"])
      #expect(alice.channels.trackPackets.isEmpty && dan.channels.trackPackets.isEmpty)
      // Whoever joins now and wants them has the handles at once; who has enough gets no more.
      let late = try world.joinWithDataTracks(
        "late", request: { $0.connectionSettings?.autoSubscribeDataTrack = true })
      world.subscribeToData(bob, sid, false)
      #expect(bob.handles == [:])
      try world.sendFrame("three", 300, from: alice)
      world.run(for: .seconds(1))
      #expect(late.frames(late.handles?[sid]) == ["three"])
      #expect(bob.channels.trackPackets.count == 2)
      // A track that ends, and a publisher that leaves, take their handles along.
      world.signal(.unpublishDataTrackRequest(.with { $0.pubHandle = 300 }), from: alice)
      #expect(late.handles?.keys.sorted() == [dan.dataTrackInfos[0].sid])
      world.signal(.leave(LiveKit.LeaveRequest()), from: dan)
      #expect(late.handles == [:])
      #expect(late.updates(of: "dan").last?.dataTracks == [])
    }

    @Test("asking again is answered again: the client may have missed the handle")
    func repeatedRequest() throws {
      let world = try World.withData()
      let alice = try world.joinWithDataTracks("alice")
      let bob = try world.joinWithDataTracks(
        "bob", request: { $0.connectionSettings?.autoSubscribeDataTrack = true })
      world.publishDataTrack(alice)
      let before = bob.handles
      bob.messages = []
      world.subscribeToData(bob, alice.dataTrackInfos.first?.sid)
      #expect(bob.handles == before && before?.count == 1)
    }

    @Test("permissions: canSubscribe, the publisher's list, canPublishData taken away, hidden publishers")
    func permissions() throws {
      let world = try World.withData()
      let alice = try world.joinWithDataTracks("alice")
      let bob = try world.joinWithDataTracks("bob")
      let blind = try world.joinWithDataTracks("blind") { $0.canSubscribe = false }
      let ghost = try world.joinWithDataTracks("ghost") { $0.hidden = true }
      world.publishDataTrack(alice)
      world.publishDataTrack(ghost)
      let sid = try #require(alice.dataTrackInfos.first?.sid)
      for client in [bob, blind] {
        world.subscribeToData(client, sid)
        world.subscribeToData(client, ghost.dataTrackInfos.first?.sid)
      }
      #expect(bob.handles?.keys.sorted() == [sid] && blind.handles == [:])
      world.signal(.subscriptionPermission(LiveKit.SubscriptionPermission()), from: alice)
      #expect(bob.handles == [:])
      let told = bob.messages.compactMap { message -> Bool? in
        if case .subscriptionPermissionUpdate(let update) = message, update.trackSid == sid {
          update.allowed
        } else {
          nil
        }
      }
      #expect(told == [false])
      try world.sendFrame("secret", from: alice)
      world.run(for: .seconds(1))
      #expect(bob.channels.trackPackets.isEmpty)
      world.signal(.subscriptionPermission(.with { $0.allParticipants = true }), from: alice)
      #expect(bob.handles?.keys.sorted() == [sid])
      // An operator.
      func permit(_ identity: String, _ change: (inout LiveKit.ParticipantPermission) -> Void) {
        var command = ParticipantChange()
        command.permission = .with {
          $0.canSubscribe = true
          $0.canPublish = true
          $0.canPublishData = true
          change(&$0)
        }
        _ = world.command(.update(room: "room", identity: identity, command))
      }
      permit("bob") { $0.canSubscribe = false }
      #expect(bob.handles == [:])
      permit("bob") { _ in }
      permit("blind") { _ in }
      #expect(bob.handles?.keys.sorted() == [sid] && blind.handles?.keys.sorted() == [sid])
      permit("alice") { $0.canPublishData = false }
      #expect(bob.handles == [:] && bob.updates(of: "alice").last?.dataTracks == [])
      #expect(alice.messages.contains { if case .unpublishDataTrackResponse = $0 { true } else { false } })
      try world.sendFrame("late", from: alice)
      world.run(for: .seconds(1))
      #expect(bob.channels.trackPackets.isEmpty)
    }

    @Test("S4-3: where end-to-end encryption is required, clear tracks are refused and clear packets dropped")
    func encrypted() throws {
      let world = try World.withData { $0.requiresE2EE = true }
      let alice = try world.joinWithDataTracks("alice")
      let bob = try world.joinWithDataTracks("bob")
      world.publishDataTrack(alice)
      #expect(alice.refusals.map(\.reason) == [.notAllowed])
      world.publishDataTrack(alice) { $0.encryption = .gcm }
      world.subscribeToData(bob, alice.dataTrackInfos.first?.sid)
      let e2ee: [UInt8] = [0, 4, 1, 13, 5] + [UInt8](repeating: 9, count: 12) + [0, 0, 0]
      try world.sendFrame("clear", from: alice)
      try world.sendFrame("sealed", from: alice, extensions: e2ee)
      world.run(for: .seconds(1))
      let packet = try #require(bob.channels.trackPackets.first)
      #expect(bob.channels.trackPackets.count == 1)
      // The extension and the payload arrive as they were sent.
      #expect(Array(packet[12...]) == e2ee + Array("sealed".utf8))
    }

    @Test("1.6: a resume tells the handles again and takes up sync_state; an unknown track begins anew")
    func resume() throws {
      let world = try World.withData()
      let alice = try world.joinWithDataTracks("alice")
      let bob = try world.joinWithDataTracks("bob")
      world.publishDataTrack(alice, 1)
      world.publishDataTrack(alice, 2)
      let sids = alice.dataTrackInfos.map(\.sid)
      world.subscribeToData(bob, sids[0])
      let handle = try #require(bob.handles?[sids[0]])
      world.cut(bob)
      world.resume(bob)
      bob.messages.removeFirst(bob.messages.count - 4)
      #expect(bob.handles == [sids[0]: handle])
      world.signal(
        .syncState(
          .with { state in
            state.dataSubscription = .with {
              $0.updates = [
                .with {
                  $0.trackSid = sids[1]
                  $0.subscribe = true
                }, .with { $0.trackSid = sids[0] },
              ]
            }
          }), from: bob)
      #expect(bob.handles?.keys.sorted() == sids.sorted())
      // The publisher's own tracks are there still.
      world.cut(alice)
      world.resume(alice)
      world.signal(
        .syncState(
          .with { state in
            state.publishDataTracks = alice.dataTrackInfos.map { info in .with { $0.info = info } }
          }), from: alice)
      #expect(alice.leaves.isEmpty)
      try world.sendFrame("still", 2, from: alice)
      world.run(for: .seconds(1))
      #expect(bob.frames(bob.handles?[sids[1]]) == ["still"])
      world.signal(
        .syncState(
          .with { state in state.publishDataTracks = [.with { $0.info = .with { $0.sid = "DTR_gone" } }] }),
        from: alice)
      #expect(alice.leaves.map(\.action) == [.reconnect] && alice.leaves.map(\.reason) == [.stateMismatch])
    }

    @Test("1.3: with two connections packets come down the server's channel and go up the client's")
    func twoConnections() throws {
      let world = try World.withData()
      let alice = try world.joinWithDataTracks("alice")
      let (dave, receiver) = try world.joinOverTwo("dave")
      dave.channels.opens.append(
        DataChannel(label: "_data_track", isOrdered: false, reliability: .retransmits(0)))
      try #require(world.run(for: .seconds(5)) { receiver.channels.ids.count == 3 })
      world.signal(.offer(dave.offerMessage()), from: dave)
      try #require(world.run(for: .seconds(5)) { dave.channels.ids.count == 3 })
      world.publishDataTrack(alice)
      world.publishDataTrack(dave)
      world.subscribeToData(dave, alice.dataTrackInfos.first?.sid)
      world.subscribeToData(alice, dave.dataTrackInfos.first?.sid)
      try world.sendFrame("down", from: alice)
      try world.sendFrame("up", from: dave)
      world.run(for: .seconds(1))
      #expect(receiver.frames(dave.handles?.values.first) == ["down"])
      #expect(alice.frames(alice.handles?.values.first) == ["up"])
      #expect(dave.channels.trackPackets.isEmpty)
    }

    @Test("4-36: who does not read loses packets, costs the others nothing, and stays")
    func congestion() throws {
      let world = try World.withData()
      let alice = try world.joinWithDataTracks("alice")
      let bob = try world.joinWithDataTracks("bob")
      let carol = try world.joinWithDataTracks("carol")
      world.publishDataTrack(alice)
      for client in [bob, carol] { world.subscribeToData(client, alice.dataTrackInfos.first?.sid) }
      bob.channels.isDeaf = true
      let long = String(repeating: "d", count: 15_000)
      for _ in 0..<100 {
        try world.sendFrame(long, from: alice)
        world.run(for: .milliseconds(40))
      }
      #expect(carol.channels.trackPackets.count > 90)
      #expect(bob.leaves.isEmpty && alice.leaves.isEmpty)
      bob.channels.isDeaf = false
      world.run(for: .seconds(30))
      // About the 128 KiB that may wait, and not the 1.5 MB that were sent.
      #expect(bob.channels.trackPackets.count < 20)
      bob.channels.trackPackets = []
      try world.sendFrame("fresh", from: alice)
      world.run(for: .seconds(2))
      #expect(bob.frames(bob.handles?.values.first) == ["fresh"])
    }

    @Test(
      "who received several tracks of one that leaves, or may not publish any more, is told once what is left"
    )
    func endTogether() throws {
      let world = try World.withData()
      let alice = try world.joinWithDataTracks("alice")
      let dan = try world.joinWithDataTracks("dan")
      let bob = try world.joinWithDataTracks(
        "bob", request: { $0.connectionSettings?.autoSubscribeDataTrack = true })
      for handle in UInt32(1)...20 {
        for publisher in [alice, dan] { world.publishDataTrack(publisher, handle) }
      }
      world.publishDataTrack(bob)
      func maps() -> Int {
        bob.messages.count { if case .dataTrackSubscriberHandles = $0 { true } else { false } }
      }
      var before = maps()
      world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
      #expect(maps() == before + 1 && bob.handles?.count == 20)
      before = maps()
      var change = ParticipantChange()
      change.permission = .with { $0.canSubscribe = true }
      _ = world.command(.update(room: "room", identity: "dan", change))
      #expect(maps() == before + 1 && bob.handles?.isEmpty == true)
    }

    @Test("handles go round without meeting one that is in use")
    func handles() throws {
      let world = try World.withData()
      let alice = try world.joinWithDataTracks("alice")
      let bob = try world.joinWithDataTracks(
        "bob", request: { $0.connectionSettings?.autoSubscribeDataTrack = true })
      world.publishDataTrack(alice, 1)
      let stays = try #require(bob.handles?.values.first)
      var seen: Set<UInt32> = []
      for _ in 0..<40 {
        world.publishDataTrack(alice, 2)
        seen.formUnion(bob.handles?.values.filter { $0 != stays } ?? [])
        world.signal(.unpublishDataTrackRequest(.with { $0.pubHandle = 2 }), from: alice)
      }
      #expect(seen.count == 40 && !seen.contains(0))
    }
  }
}
