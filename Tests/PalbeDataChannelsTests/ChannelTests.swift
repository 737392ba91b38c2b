import PalbeDataChannels
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

extension DataChannelSuites {
  @Suite("RFC 8832: channels")
  struct ChannelTests {
    static let lossy = DataChannel(
      label: "_lossy", subprotocol: "p", isOrdered: false, reliability: .retransmits(0), priority: 512)

    @Test("Opened in-band by the active side: an even number, all parameters, both sides told")
    func activeOpens() throws {
      let world = try DataChannelWorld()
      #expect(world.connect())
      let id = try world.open(Self.lossy)
      var expected = Self.lossy
      expected.id = id
      #expect(id == 0)
      #expect(world.passiveEvents.contains(.channelOpened(expected, byPeer: true)))
      #expect(world.activeEvents.contains(.channelOpened(expected, byPeer: false)))
      #expect(try world.open(DataChannel(label: "2")) == 2)
    }

    @Test("livekit-protocol.md 1.3: opened by the passive side, odd numbers, before the handshake is done")
    func passiveOpens() throws {
      let world = try DataChannelWorld()
      let passive = try #require(world.passive)
      let labels = ["_reliable", "_lossy", "_data_track"]
      let ids = try labels.map { try passive.openChannel(DataChannel(label: $0), at: world.clock.now) }
      #expect(ids == [1, 3, 5])
      #expect(world.connect())
      world.run(for: .seconds(1))
      let opened = world.activeEvents.compactMap {
        if case .channelOpened(let channel, true) = $0 { channel.label } else { nil }
      }
      #expect(opened == labels)
      #expect(world.active?.channels.map(\.id) == [1, 3, 5])
    }

    @Test("livekit-protocol.md 1.0.4: negotiated numbers 100, 101, 102 without any DCEP message")
    func negotiated() throws {
      let world = try DataChannelWorld()
      world.isRecording = true
      for id: UInt16 in 100...102 {
        try #require(world.active).addNegotiatedChannel(DataChannel(id: id, label: "\(id)"))
        try #require(world.passive).addNegotiatedChannel(DataChannel(id: id, label: "\(id)"))
      }
      #expect(world.connect())
      #expect(world.activeEvents.count == 4)
      try world.send([1], on: 100)
      try world.send([2], on: 102, kind: .text)
      try #require(world.passive).send([3].span, kind: .binary, channel: 101, at: world.clock.now)
      world.run(for: .seconds(1))
      #expect(
        world.takePassiveMessages() == [
          SCTPMessage(channel: 100, kind: .binary, bytes: [1]),
          SCTPMessage(channel: 102, kind: .text, bytes: [2]),
        ])
      #expect(world.activeEvents.last == .message(SCTPMessage(channel: 101, kind: .binary, bytes: [3])))
      // Payload protocol 50 in a DATA chunk at the start of a datagram.
      #expect(!world.datagrams.contains { $0.bytes[12] == 0 && Array($0.bytes[24..<28]) == [0, 0, 0, 50] })
      #expect(
        thrown { try world.active?.addNegotiatedChannel(DataChannel(id: 100, label: "")) }
          == .channelUnavailable(id: 100))
      #expect(
        thrown { try world.active?.addNegotiatedChannel(DataChannel(id: 128, label: "")) }
          == .channelUnavailable(id: 128))
    }

    @Test("Fewer streams at the peer: channels above are closed at once, in-band ones run out")
    func fewStreams() throws {
      let world = try DataChannelWorld(passiveConfiguration: SCTPConfiguration(streamCount: 8))
      try #require(world.active).addNegotiatedChannel(DataChannel(id: 100, label: "x"))
      #expect(world.connect())
      #expect(world.activeEvents == [.connected(outbound: 8, inbound: 8), .channelClosed(id: 100)])
      for expected: UInt16 in [0, 2, 4, 6] {
        #expect(try world.active?.openChannel(DataChannel(label: "x"), at: world.clock.now) == expected)
      }
      #expect(
        thrown { _ = try world.active?.openChannel(DataChannel(label: "x"), at: world.clock.now) }
          == .noStreamLeft)
    }

    @Test("RFC 8832 §6: messages behind DATA_CHANNEL_OPEN need not wait for its acknowledgement")
    func early() throws {
      let world = try DataChannelWorld(link: Link(reordering: 0.5))
      #expect(world.connect())
      let id = try #require(world.active).openChannel(Self.lossy, at: world.clock.now)
      for index in 0..<20 { try world.send([UInt8(index)], on: id) }
      world.run(for: .seconds(5))
      #expect(world.takePassiveMessages().map { $0.bytes[0] } == (0..<20).map { UInt8($0) })
    }

    @Test(
      "RFC 8831 §6.7: either side closes a channel; what was sent arrives, both are told, the number is free again",
      arguments: [true, false])
    func closeChannel(byActive: Bool) throws {
      let world = try DataChannelWorld(link: Link(loss: 0.1))
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x"))
      let other = try world.open(DataChannel(label: "y"))
      for index in 0..<20 { try world.send([UInt8](repeating: UInt8(index), count: 3_000), on: id) }
      if byActive {
        try #require(world.active).closeChannel(id, at: world.clock.now)
        #expect(
          thrown { try world.active?.send([1].span, kind: .text, channel: id, at: .zero) }
            == .noSuchChannel(id: id))
      } else {
        world.run(for: .seconds(10))
        try #require(world.passive).closeChannel(id, at: world.clock.now)
      }
      world.run(for: .seconds(20)) {
        $0.activeEvents.contains(.channelClosed(id: id)) && $0.passiveEvents.contains(.channelClosed(id: id))
      }
      #expect(world.activeEvents.contains(.channelClosed(id: id)))
      #expect(world.passiveEvents.contains(.channelClosed(id: id)))
      #expect(world.takePassiveMessages().count == 20)
      #expect(world.active?.channels.map(\.id) == [other])
      world.activeEvents.removeAll()
      #expect(try world.open(DataChannel(label: "again")) == id)
      try world.send([9], on: id)
      world.run(for: .seconds(5))
      #expect(world.takePassiveMessages() == [SCTPMessage(channel: id, kind: .binary, bytes: [9])])
    }

    @Test("Both close at once, and many at once")
    func closeMany() throws {
      let world = try DataChannelWorld(link: Link(loss: 0.05))
      #expect(world.connect())
      let ids = try (0..<30).map { try world.open(DataChannel(label: "\($0)")) }
      for id in ids {
        try #require(world.active).closeChannel(id, at: world.clock.now)
        try #require(world.passive).closeChannel(id, at: world.clock.now)
      }
      world.run(for: .seconds(30)) { world in
        ids.allSatisfy { world.activeEvents.contains(.channelClosed(id: $0)) }
          && ids.allSatisfy { world.passiveEvents.contains(.channelClosed(id: $0)) }
      }
      for id in ids {
        #expect(world.activeEvents.filter { $0 == .channelClosed(id: id) }.count == 1)
        #expect(world.passiveEvents.filter { $0 == .channelClosed(id: id) }.count == 1)
      }
      #expect(try world.open(DataChannel(label: "again")) == 0)
    }

    @Test("A label of 1,024 bytes passes, one more is refused")
    func names() throws {
      let world = try DataChannelWorld()
      #expect(world.connect())
      let label = String(repeating: "é", count: 512)
      let id = try world.open(DataChannel(label: label))
      #expect(world.passive?.channels.first { $0.id == id }?.label == label)
      let tooLong = label + "x"
      #expect(
        thrown { _ = try world.active?.openChannel(DataChannel(label: tooLong), at: world.clock.now) }
          == .nameTooLong(count: 1_025))
    }
  }
}
