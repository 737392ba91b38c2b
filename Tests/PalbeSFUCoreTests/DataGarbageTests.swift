import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

extension DataSuites {
  @Suite("A client's garbage disturbs nobody else")
  struct GarbageTests {
    /// Bytes that look like one of `samples`, or like nothing.
    private func garbage(_ samples: [[UInt8]], _ random: inout RandomSource) -> [UInt8] {
      var bytes = samples[Int(random.next() % UInt64(samples.count))]
      switch random.next() % 4 {
      case 0: return random.bytes(Int(random.next() % 1_000) + 1)
      case 1: bytes = Array(bytes.prefix(Int(random.next() % UInt64(bytes.count + 1))))
      default:
        for _ in 0..<(1 + random.next() % 8) where !bytes.isEmpty {
          bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
        }
      }
      return bytes
    }

    private func checkTheOthers(_ world: World, _ bob: ScriptedClient, _ carol: ScriptedClient) throws {
      bob.channels.received = []
      try world.send(text("still here"), from: carol)
      world.run(for: .seconds(1))
      #expect(bob.channels.texts().last == "still here")
      #expect(bob.leaves.isEmpty && carol.leaves.isEmpty)
    }

    @Test("mangled packets on good channels", arguments: 1...5)
    func packets(seed: UInt64) throws {
      let world = try World.withData(seed: seed)
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let carol = try world.joinWithData("carol")
      var random = RandomSource(seed: seed)
      let samples = [
        text("hello", sequence: 7) { $0.destinationIdentities = ["bob", "carol"] }.serialized(),
        LiveKit.DataPacket.with {
          $0.value = .encryptedPacket(.with { $0.encryptedValue = [UInt8](repeating: 9, count: 40) })
        }.serialized(),
        LiveKit.DataPacket.with { $0.value = .streamHeader(.with { $0.streamId = "s" }) }.serialized(),
      ]
      for number in 0..<400 {
        try world.data?.send(
          garbage(samples, &random), on: number % 3 == 0 ? "_lossy" : "_reliable", from: alice, at: world.now)
        world.run(for: .milliseconds(5))
      }
      // Whatever went through reads, and has its sender's name.
      let sid = alice.join?.participant?.sid
      #expect(bob.channels.received.allSatisfy { $0.packet.participantSid == sid })
      try checkTheOthers(world, bob, carol)
    }

    @Test("noise, prefixes and mangled SCTP inside good DTLS", arguments: 1...5)
    func datagrams(seed: UInt64) throws {
      let world = try World.withData(seed: seed)
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let carol = try world.joinWithData("carol")
      try world.send(text("hello"), from: alice)
      world.run(for: .milliseconds(200))
      var random = RandomSource(seed: seed)
      for _ in 0..<400 {
        world.data?.sendRaw(garbage(alice.channels.sent, &random), from: alice, at: world.now)
        world.react()
        world.run(for: .milliseconds(5))
      }
      try checkTheOthers(world, bob, carol)
    }

    @Test("60 further channels, and channels with known names twice, cost their opener alone")
    func channels() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let carol = try world.joinWithData("carol")
      for number in 0..<60 {
        world.data?.open(
          [DataChannel(label: number % 2 == 0 ? "_reliable" : "x\(number)")], of: alice, at: world.now)
      }
      world.run(for: .seconds(2))
      try world.send(text("over the last"), from: alice)
      world.run(for: .seconds(1))
      #expect(bob.channels.texts().last == "over the last")
      try checkTheOthers(world, bob, carol)
    }

    @Test("mangled packets of a data track", arguments: 1...5)
    func trackPackets(seed: UInt64) throws {
      let world = try World.withData(seed: seed)
      let alice = try world.joinWithDataTracks("alice")
      let bob = try world.joinWithDataTracks("bob")
      let carol = try world.joinWithData("carol")
      world.publishDataTrack(alice)
      world.subscribeToData(bob, alice.dataTrackInfos.first?.sid)
      let handle = try #require(bob.handles?.values.first)
      var random = RandomSource(seed: seed)
      let samples: [[UInt8]] = [
        [0x18, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 7, 7],
        [0x1c, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 2, 255, 5, 80, 65, 95, 49, 50, 2, 1, 9, 7, 7],
      ]
      for _ in 0..<400 {
        try world.data?.send(garbage(samples, &random), on: "_data_track", from: alice, at: world.now)
        world.run(for: .milliseconds(5))
      }
      for bytes in bob.channels.trackPackets {
        let packet = try LiveKit.DataTrackPacket(bytes.span)
        #expect(UInt32(packet.handle) == handle && !packet.namesSender)
      }
      #expect(bob.channels.trackPackets.count > 10)
      try checkTheOthers(world, bob, carol)
    }
  }
}
