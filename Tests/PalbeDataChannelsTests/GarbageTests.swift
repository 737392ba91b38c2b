import PalbeDataChannels
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

extension DataChannelSuites {
  @Suite("Garbage and hostile peers")
  struct GarbageTests {
    /// A connected pair with a channel, its datagrams, and the tag by which the passive side knows its peer.
    private func connected() throws -> (world: DataChannelWorld, channel: UInt16, tag: UInt32) {
      let world = try DataChannelWorld()
      world.isRecording = true
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x"))
      try world.send([UInt8](repeating: 1, count: 5_000), on: id)
      world.run(for: .seconds(1))
      _ = world.takePassiveMessages()
      let last = try #require(world.datagrams.last { $0.fromActive }?.bytes)
      return (world, id, last[4..<8].reduce(0) { $0 << 8 | UInt32($1) })
    }

    private func feed(_ world: DataChannelWorld, _ bytes: [UInt8]) {
      world.passive?.handle(bytes.span, at: world.clock.now)
      world.drain()
    }

    private func works(_ world: DataChannelWorld, on id: UInt16) throws -> Bool {
      world.passiveEvents.removeAll()
      try world.send([42], on: id)
      world.run(for: .seconds(3))
      return world.takePassiveMessages() == [SCTPMessage(channel: id, kind: .binary, bytes: [42])]
    }

    @Test("Noise, prefixes and changed copies with a wrong checksum change nothing")
    func noise() throws {
      let (world, id, _) = try connected()
      var random = RandomSource(seed: 1)
      for (_, bytes) in world.datagrams {
        for count in 0..<bytes.count { feed(world, Array(bytes[..<count])) }
        var changed = bytes
        changed[Int(random.next() % UInt64(bytes.count))] ^= 0x10
        feed(world, changed)
        feed(world, bytes)
      }
      for count in [0, 1, 11, 12, 15, 16, 17, 100, 1_136, 2_048, 70_000] { feed(world, random.bytes(count)) }
      #expect(try works(world, on: id))
      #expect(world.passiveEvents.isEmpty)
    }

    @Test(
      "Prefixes, changed copies and noise with a right checksum: no crash, and what ends it is typed",
      arguments: 1...5)
    func sealed(seed: UInt64) throws {
      let (first, _, _) = try connected()
      let datagrams = first.datagrams
      first.active = nil
      first.passive = nil
      var random = RandomSource(seed: seed)
      for _ in 0..<40 {
        let library = first.library
        let victim = try library.makeAssociation(
          role: seed.isMultiple(of: 2) ? .active : .passive, at: first.clock.now)
        for _ in 0..<50 {
          var bytes = datagrams[Int(random.next() % UInt64(datagrams.count))].bytes
          for _ in 0..<(random.next() % 4) {
            bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
          }
          bytes = seal(Array(bytes.prefix(12 + Int(random.next() % UInt64(bytes.count)) & ~3)))
          victim.handle(bytes.span, at: first.clock.now)
          while victim.pollEvent() != nil {}
        }
      }
      #expect(library(first).associationCount == 0)
    }

    private func library(_ world: DataChannelWorld) -> SCTPLibrary { world.library }

    @Test(
      "Any chunk of an authenticated peer's: the association lives on or ends in a typed way",
      arguments: 1...20)
    func hostileChunks(seed: UInt64) throws {
      let (world, id, tag) = try connected()
      var random = RandomSource(seed: seed)
      let types: [UInt8] = [
        0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0x40, 0x80, 0x81, 0x82, 0x84, 0xc0, 0xc1, 0xc2,
      ]
      for _ in 0..<300 {
        let type = types[Int(random.next() % UInt64(types.count))]
        var value = random.bytes(Int(random.next() % 64))
        // Small numbers are what gets far.
        for index in value.indices where random.next() % 2 == 0 { value[index] &= 3 }
        feed(world, packet(tag: tag, chunk(type, flags: UInt8(random.next() & 7), value)))
      }
      world.run(for: .seconds(5))
      switch world.passive?.state {
      case .connected, .closed, .aborted: break
      default: Issue.record("\(String(describing: world.passive?.state))")
      }
      _ = id
    }

    @Test("No restart: INITs and other cookies after the handshake are kept out; the same cookie is answered")
    func restart() throws {
      let (world, id, tag) = try connected()
      let initiation = try #require(world.datagrams.first { $0.bytes[12] == 1 }?.bytes)
      let cookieEcho = try #require(world.datagrams.first { $0.bytes[12] == 10 }?.bytes)
      let before = try #require(world.passive).refusedDatagramCount
      feed(world, initiation)
      var other = cookieEcho
      other[100] ^= 1
      feed(world, seal(other))
      #expect(world.passive?.refusedDatagramCount == before + 2)
      world.datagrams.removeAll()
      feed(world, cookieEcho)
      #expect(world.passive?.refusedDatagramCount == before + 2)
      #expect(world.datagrams.contains { !$0.fromActive && $0.bytes[12] == 11 })
      #expect(try works(world, on: id))
      _ = tag
    }

    @Test("RFC 8831 §6.7, RFC 6525: more streams are denied, and asking for them does no harm")
    func addStreams() throws {
      let (world, id, tag) = try connected()
      feed(world, packet(tag: tag, chunk(0x82, [0, 17, 0, 12, 0, 0, 0, 1, 0, 100, 0, 0])))
      #expect(try works(world, on: id))
    }

    @Test("RFC 8832: open messages that make no sense are told and opened nothing")
    func badControl() throws {
      let (world, _, _) = try connected()
      let active = try #require(world.active)
      // Numbers of the peer's own choosing: wrong parity, in use, garbage. A channel of ours is the vehicle.
      try active.addNegotiatedChannel(DataChannel(id: 7, label: "vehicle"))
      try active.addNegotiatedChannel(DataChannel(id: 8, label: "vehicle"))
      try active.send([1].span, kind: .binary, channel: 7, at: world.clock.now)
      try active.send([1].span, kind: .binary, channel: 8, at: world.clock.now)
      world.run(for: .seconds(1))
      #expect(world.passiveEvents == [.dropped(channel: 7, .noChannel), .dropped(channel: 8, .noChannel)])
    }

    @Test("A flood of small messages from a peer that ignores the window stays bounded")
    func flood() throws {
      let (world, id, tag) = try connected()
      // Chunks far ahead: never deliverable, only to be kept.
      let last = try #require(world.datagrams.last { $0.fromActive && $0.bytes[12] == 0 }?.bytes)
      let base = last[16..<20].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      for index in 0..<20_000 {
        let tsn = base &+ 10 &+ UInt32(index)
        let number = (0..<4).map { UInt8(truncatingIfNeeded: tsn >> (24 - 8 * UInt32($0))) }
        feed(
          world, packet(tag: tag, chunk(0, flags: 2, number + [0, UInt8(id), 1, 0, 0, 0, 0, 53, 1, 2, 3])))
      }
      world.run(for: .seconds(3))
      switch world.passive?.state {
      case .connected, .aborted: break
      default: Issue.record("\(String(describing: world.passive?.state))")
      }
    }
  }
}
