import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

extension DataSuites {
  @Suite("Messages between participants (LiveKit protocol 1.5, data channels)")
  struct ForwardingTests {
    @Test("the answer has m=application with port and largest message; the protocol is at most 17")
    func description() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let section = try #require(alice.answer?.media.first { $0.kind == .application })
      #expect(section.port == 9 && section.sctpPort == 5_000)
      #expect(section.maxMessageSize == 64_000)
      #expect(try #require(alice.join?.serverInfo?.protocol) <= 17)
    }

    @Test("reliable and lossy reach everyone else, in the name of the sender, with the channel's kind")
    func everyone() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let carol = try world.joinWithData("carol")
      try world.send(
        text("one") {
          $0.kind = .lossy
          $0.participantIdentity = "carol"
          $0.participantSid = "PA_forged"
        }, from: alice)
      try world.send(text("two"), on: "_lossy", from: alice)
      world.run(for: .seconds(1))
      for client in [bob, carol] {
        #expect(client.channels.texts() == ["one"])
        #expect(client.channels.texts("_lossy") == ["two"])
        let packets = client.channels.packets() + client.channels.packets("_lossy")
        #expect(packets.map(\.kind) == [.reliable, .lossy])
        for packet in packets {
          #expect(packet.participantIdentity == "alice")
          #expect(packet.participantSid == alice.join?.participant?.sid)
          #expect(packet.value?.user?.participantIdentity == "alice")
          #expect(packet.value?.user?.participantSid == alice.join?.participant?.sid)
        }
      }
      #expect(alice.channels.received.isEmpty)
    }

    @Test("destinations: identities, the legacy ones inside `user`, and sids; never back to the sender")
    func destinations() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let carol = try world.joinWithData("carol")
      try world.send(text("identity") { $0.destinationIdentities = ["bob", "alice", "nobody"] }, from: alice)
      try world.send(
        text("legacy") { packet in
          packet.value = .user(
            .with {
              $0.payload = Array("legacy".utf8)
              $0.destinationIdentities = ["carol"]
            })
        }, from: alice)
      let sid = try #require(bob.join?.participant?.sid)
      try world.send(
        text("sid") { packet in
          packet.value = .user(
            .with {
              $0.payload = Array("sid".utf8)
              $0.destinationSids = [sid]
            })
        }, from: alice)
      try world.send(text("nobody") { $0.destinationIdentities = ["nobody"] }, from: alice)
      world.run(for: .seconds(1))
      #expect(bob.channels.texts() == ["identity", "sid"])
      #expect(carol.channels.texts() == ["legacy"])
      #expect(carol.channels.packets().first?.destinationIdentities == ["carol"])
      #expect(alice.channels.received.isEmpty)
    }

    @Test("canPublishData is required; a hidden sender has no name; a hidden receiver gets its messages")
    func grants() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice") { $0.canPublishData = false }
      let ghost = try world.joinWithData("ghost") { $0.hidden = true }
      let bob = try world.joinWithData("bob")
      try world.send(text("no"), from: alice)
      try world.send(text("boo"), from: ghost)
      try world.send(text("yes"), from: bob)
      world.run(for: .seconds(1))
      #expect(bob.channels.texts() == ["boo"])
      let packet = try #require(bob.channels.packets().first)
      #expect(packet.participantIdentity.isEmpty && packet.participantSid.isEmpty)
      #expect(packet.value?.user?.participantIdentity == "" && packet.value?.user?.participantSid == "")
      #expect(ghost.channels.texts() == ["yes"])
    }

    @Test("an encrypted packet keeps every byte; unknown kinds pass, speakers and nothing do not")
    func opaque() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let sealed = LiveKit.EncryptedPacket.with {
        $0.encryptionType = .gcm
        $0.iv = [UInt8](repeating: 7, count: 12)
        $0.keyIndex = 3
        $0.encryptedValue = (0..<5_000).map { UInt8(truncatingIfNeeded: $0) }
        $0.unknownFields = [0x9a, 6, 1, 9]
      }
      try world.send(.with { $0.value = .encryptedPacket(sealed) }, from: alice)
      try world.send(.with { $0.unknownFields = [0xfa, 6, 2, 1, 2] }, from: alice)
      try world.send(.with { $0.value = .speaker(LiveKit.ActiveSpeakerUpdate()) }, from: alice)
      try world.send(LiveKit.DataPacket(), from: alice)
      try world.data?.send([0xff, 0xff], on: "_reliable", from: alice, at: world.now)
      try world.data?.send([], on: "_reliable", from: alice, at: world.now)
      try world.send(text("end"), from: alice)
      world.run(for: .seconds(1))
      try #require(bob.channels.packets().count == 3)
      #expect(bob.channels.packets().first?.value?.encryptedPacket == sealed)
      #expect(bob.channels.packets()[1].unknownFields == [0xfa, 6, 2, 1, 2])
      #expect(bob.channels.texts() == ["end"])
      #expect(alice.leaves.isEmpty)
    }

    @Test("metrics go to those who may have them alone")
    func metrics() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let meter = try world.joinWithData("meter") { $0.canSubscribeMetrics = true }
      try world.send(.with { $0.value = .metrics(LiveKit.MetricsBatch()) }, from: alice)
      world.run(for: .seconds(1))
      #expect(bob.channels.received.isEmpty)
      #expect(meter.channels.packets().count == 1)
    }

    @Test("60,000 bytes arrive whole; a message above the limit is dropped and its sender stays")
    func sizes() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let long = String(repeating: "x", count: 60_000)
      try world.send(text(long), from: alice)
      world.run(for: .seconds(2))
      #expect(bob.channels.texts() == [long])
    }

    @Test("a joiner whose channel is not open yet gets what was sent meanwhile, in order")
    func early() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.client("bob")
      bob.channels.opens = []
      world.join(bob)
      for number in 0..<5 { try world.send(text("\(number)"), from: alice) }
      try #require(world.connect(bob))
      world.run(for: .seconds(1))
      try world.send(text("5"), from: alice)
      try world.send(text("lost"), on: "_lossy", from: alice)
      world.run(for: .seconds(1))
      #expect(bob.channels.received.isEmpty)
      world.data?.open(ClientChannels().opens, of: bob, at: world.now)
      world.run(for: .seconds(5)) { bob.channels.texts().count == 6 }
      #expect(bob.channels.texts() == ["0", "1", "2", "3", "4", "5"])
    }

    @Test("a participant that leaves takes its associations along")
    func leaving() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      #expect(world.data?.peerCount == 4)
      world.signal(.leave(LiveKit.LeaveRequest()), from: bob)
      world.run(for: .seconds(1))
      // Its own side does not know of it.
      #expect(world.data?.peerCount == 3)
      try world.send(text("alone"), from: alice)
      world.handle(.shutDown)
      world.run(for: .seconds(1))
      #expect(world.data?.peerCount == 2)
    }

    @Test("an operator's message has no sender and goes where it is told; too much and no room are refused")
    func operators() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      var request = LiveKit.SendDataRequest.with {
        $0.room = "room"
        $0.data = Array("hear".utf8)
        $0.topic = "news"
      }
      #expect(world.command(.sendData(request)) == .done)
      request.destinationIdentities = ["bob"]
      request.kind = .lossy
      #expect(world.command(.sendData(request)) == .done)
      world.run(for: .seconds(1))
      #expect(alice.channels.texts() == ["hear"] && alice.channels.texts("_lossy").isEmpty)
      #expect(bob.channels.texts() == ["hear"] && bob.channels.texts("_lossy") == ["hear"])
      let packet = try #require(bob.channels.packets().first)
      #expect(packet.participantIdentity.isEmpty && packet.value?.user?.topic == "news")
      // Who did not hear that it was sent sends it again.
      request.nonce = [UInt8](repeating: 7, count: 16)
      for _ in 0..<2 { #expect(world.command(.sendData(request)) == .done) }
      request.nonce = [UInt8](repeating: 8, count: 16)
      #expect(world.command(.sendData(request)) == .done)
      world.run(for: .seconds(1))
      #expect(bob.channels.texts("_lossy").count == 3)
      request.data = [UInt8](repeating: 0, count: 64_001)
      #expect(world.command(.sendData(request)) == .refused(.tooLong(field: "data")))
      request.room = "hall"
      #expect(world.command(.sendData(request)) == .refused(.noSuchRoom))
    }
  }
}
