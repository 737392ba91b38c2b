import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

extension DataSuites {
  @Suite("Negotiated data channels (LiveKit protocol 18; 1.0, fact 4)")
  struct NegotiatedChannelTests {
    private static let channels = [
      DataChannel(id: 100, label: "_reliable"),
      DataChannel(id: 101, label: "_lossy", isOrdered: false, reliability: .retransmits(0)),
      DataChannel(id: 102, label: "_data_track", isOrdered: false, reliability: .retransmits(0)),
    ]

    private func join(
      _ world: World, _ identity: String, opens: [DataChannel] = []
    ) throws -> ScriptedClient {
      let client = try world.client(identity)
      client.channels.opens = opens
      client.channels.negotiated = opens.isEmpty ? Self.channels : []
      world.join(client, request: { $0.clientInfo?.protocol = 18 })
      try #require(world.run(for: .seconds(5)) { client.channels.ids.count == 3 })
      return client
    }

    /// Openings in-band: asked of SCTP, or told by it.
    private func openings(_ world: World, _ client: ScriptedClient) -> Int {
      let ours = world.data?.commands.count { if case .openChannel = $0 { true } else { false } } ?? 0
      let theirs = client.channels.events.count {
        if case .channelOpened(_, byPeer: true) = $0 { true } else { false }
      }
      return ours + theirs
    }

    @Test("a client of 18 is told 18: nothing is opened on the wire, and everything arrives both ways")
    func negotiated() throws {
      let world = try World.withData()
      let alice = try join(world, "alice")
      let old = try world.joinWithDataTracks("old")
      #expect(alice.join?.serverInfo?.protocol == 18)
      #expect(old.join?.serverInfo?.protocol == 17)
      #expect(alice.channels.ids == ["_reliable": 100, "_lossy": 101, "_data_track": 102])
      #expect(openings(world, alice) == 0)
      try world.send(text("one"), from: alice)
      try world.send(text("two"), on: "_lossy", from: alice)
      try world.send(text("back"), from: old)
      world.publishDataTrack(alice)
      world.publishDataTrack(old)
      world.subscribeToData(old, alice.dataTrackInfos.first?.sid)
      world.subscribeToData(alice, old.dataTrackInfos.first?.sid)
      try world.sendFrame("frame", from: alice)
      try world.sendFrame("frame back", from: old)
      world.run(for: .seconds(1))
      #expect(old.channels.texts() == ["one"] && old.channels.texts("_lossy") == ["two"])
      #expect(alice.channels.texts() == ["back"])
      #expect(old.frames(old.handles?.values.first) == ["frame"])
      #expect(alice.frames(alice.handles?.values.first) == ["frame back"])
    }

    @Test("what was sent before its SCTP is up waits for it")
    func early() throws {
      let world = try World.withData()
      let old = try world.joinWithData("old")
      let alice = try world.client("alice")
      alice.channels.opens = []
      alice.channels.negotiated = Self.channels
      world.join(alice, request: { $0.clientInfo?.protocol = 18 })
      try world.send(text("early"), from: old)
      world.run(for: .seconds(1))
      #expect(alice.channels.texts() == ["early"])
    }

    @Test("one of 18 that opens its channels on the wire all the same is served over those")
    func inBand() throws {
      let world = try World.withData()
      let opens = Self.channels.map { channel in
        var channel = channel
        channel.id = 0
        return channel
      }
      let odd = try join(world, "odd", opens: opens)
      let alice = try join(world, "alice")
      try world.send(text("over the wire"), from: odd)
      try world.send(text("back"), from: alice)
      world.run(for: .seconds(1))
      #expect(alice.channels.texts() == ["over the wire"])
      #expect(odd.channels.texts() == ["back"])
    }

    @Test("1.3: of two connections the client's has fixed numbers, the server's is opened by the server")
    func twoConnections() throws {
      let world = try World.withData()
      let alice = try join(world, "alice")
      let (dave, receiver) = try world.joinOverTwo("dave", protocol: 18)
      dave.channels.opens = []
      dave.channels.negotiated = Self.channels
      #expect(dave.join?.serverInfo?.protocol == 18)
      try #require(world.run(for: .seconds(5)) { receiver.channels.ids.count == 3 })
      #expect(openings(world, receiver) == 6)
      world.signal(.offer(dave.offerMessage()), from: dave)
      try #require(world.run(for: .seconds(5)) { dave.channels.ids.count == 3 })
      try world.send(text("up"), from: dave)
      try world.send(text("down"), from: alice)
      world.run(for: .seconds(1))
      #expect(alice.channels.texts() == ["up"] && receiver.channels.texts() == ["down"])
    }
  }
}
