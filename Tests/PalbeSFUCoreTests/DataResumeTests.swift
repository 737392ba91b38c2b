import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

extension DataSuites {
  @Suite("Numbered messages, resume, two connections, slow clients")
  struct SessionTests {
    private func state(_ publisher: ScriptedClient, _ sequence: UInt32) -> LiveKit.DataChannelReceiveState {
      .with {
        $0.publisherSid = publisher.join?.participant?.sid ?? ""
        $0.lastSeq = sequence
      }
    }

    @Test("1.5: a number that is not above the last is dropped on the reliable channel, and on it alone")
    func repeated() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      for sequence: UInt32 in [1, 2, 2, 1, 5, 4, 0, 6] {
        try world.send(text("\(sequence)", sequence: sequence), from: alice)
      }
      world.run(for: .seconds(1))
      for sequence: UInt32 in [1, 1] {
        try world.send(text("\(sequence)", sequence: sequence), on: "_lossy", from: alice)
      }
      world.run(for: .seconds(1))
      #expect(bob.channels.texts() == ["1", "2", "5", "0", "6"])
      #expect(bob.channels.packets().map(\.sequence) == [1, 2, 5, 0, 6])
      #expect(bob.channels.texts("_lossy") == ["1", "1"])
    }

    @Test("1.6: the answer to a resume has the last number; what the client then sends again arrives once")
    func lastNumber() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      for sequence: UInt32 in 1...3 { try world.send(text("\(sequence)", sequence: sequence), from: alice) }
      world.run(for: .milliseconds(500))
      world.cut(alice)
      world.resume(alice)
      let answer = alice.messages.compactMap { message -> LiveKit.ReconnectResponse? in
        if case .reconnect(let answer) = message { answer } else { nil }
      }
      #expect(answer.map(\.lastMessageSeq) == [3])
      for sequence: UInt32 in 2...4 { try world.send(text("\(sequence)", sequence: sequence), from: alice) }
      world.run(for: .seconds(1))
      #expect(bob.channels.texts() == ["1", "2", "3", "4"])
    }

    @Test("1.6: a client that resumed gets what it has not seen of each sender, unless it is old")
    func replay() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let carol = try world.joinWithData("carol")
      try world.send(text("before", sequence: 9), from: carol)
      world.run(for: .milliseconds(500))
      let bob = try world.joinWithData("bob")
      try world.send(text("old", sequence: 1), from: alice)
      world.run(for: .seconds(3))
      for sequence: UInt32 in 2...4 { try world.send(text("\(sequence)", sequence: sequence), from: alice) }
      try world.send(
        text("carol only", sequence: 5) { $0.destinationIdentities = ["carol"] }, from: alice)
      try world.send(text("c", sequence: 10), from: carol)
      try world.send(text("own", sequence: 1), from: bob)
      world.run(for: .milliseconds(500))
      #expect(bob.channels.texts() == ["old", "2", "3", "4", "c"])
      world.cut(bob)
      world.resume(bob)
      bob.channels.received = []
      world.signal(
        .syncState(.with { $0.datachannelReceiveStates = [state(alice, 2)] }), from: bob)
      world.run(for: .milliseconds(500))
      #expect(bob.channels.texts() == ["3", "4", "c"])
    }

    @Test("1.3: with two connections the server opens _reliable, _lossy and _data_track right after the join")
    func twoConnections() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let (dave, receiver) = try world.joinOverTwo("dave")
      try world.send(text("early"), from: alice)
      try #require(world.run(for: .seconds(5)) { receiver.channels.ids.count == 3 })
      world.run(for: .milliseconds(200))
      #expect(receiver.channels.texts() == ["early"])
      let opened = receiver.channels.events.compactMap { event -> DataChannel? in
        if case .channelOpened(let channel, byPeer: true) = event { channel } else { nil }
      }
      #expect(opened.map(\.label) == ["_reliable", "_lossy", "_data_track"])
      #expect(opened.map(\.isOrdered) == [true, false, false])
      #expect(opened.map(\.reliability) == [.reliable, .retransmits(0), .retransmits(0)])
      // It sends over the connection it offers.
      world.signal(.offer(dave.offerMessage()), from: dave)
      try #require(world.run(for: .seconds(5)) { dave.channels.ids.count == 2 })
      try world.send(text("up"), from: dave)
      try world.send(text("down"), on: "_lossy", from: alice)
      world.run(for: .seconds(1))
      #expect(alice.channels.texts() == ["up"])
      #expect(receiver.channels.texts("_lossy") == ["down"])
      #expect(dave.channels.received.isEmpty)
      world.signal(.leave(LiveKit.LeaveRequest()), from: dave)
      world.run(for: .milliseconds(100))
      // Alice's two sides and dave's two own.
      #expect(world.data?.peerCount == 4)
    }

    @Test("an offer that adds data channels to a transport that is up begins them")
    func addedLater() throws {
      let world = try World.withData()
      let alice = try world.client("alice")
      alice.offersData = false
      world.join(alice)
      try #require(world.connect(alice))
      world.run(for: .seconds(1))
      #expect(world.data?.commands.contains { if case .open = $0 { true } else { false } } == false)
      alice.offersData = true
      world.signal(.offer(alice.offerMessage()), from: alice)
      #expect(world.run(for: .seconds(5)) { alice.channels.ids.count == 2 })
    }

    @Test("a client without data channels costs no memory for them")
    func without() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.client("bob")
      bob.offersData = false
      world.join(bob)
      try #require(world.connect(bob))
      try world.send(text("x"), from: alice)
      world.run(for: .seconds(1))
      let peer = world.data?.commands.reversed().lazy.compactMap { command -> [SCTPDestination]? in
        if case .send(let destinations, _, _, _) = command { destinations } else { nil }
      }.first
      #expect(peer == nil)
    }

    @Test("who does not read is told to begin anew once 5 MiB wait; lossy messages were dropped before")
    func slow() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let carol = try world.joinWithData("carol")
      bob.channels.isDeaf = true
      let long = String(repeating: "y", count: 50_000)
      for _ in 0..<60 {
        try world.send(text(long), on: "_lossy", from: alice)
        world.run(for: .milliseconds(40))
      }
      world.run(for: .seconds(1))
      #expect(bob.leaves.isEmpty)
      #expect(carol.channels.packets("_lossy").count > 30)
      for _ in 0..<160 where bob.leaves.isEmpty {
        try world.send(text(long), from: alice)
        world.run(for: .milliseconds(40))
      }
      #expect(bob.leaves.map(\.action) == [.reconnect])
      #expect(carol.channels.packets().count > 90)
      #expect(alice.leaves.isEmpty && carol.leaves.isEmpty)
      world.run(for: .seconds(1))
      try world.send(text("after"), from: alice)
      world.run(for: .seconds(2))
      #expect(carol.channels.texts().last == "after")
    }

    @Test("12 MB to one slow reader alone: its sender is slowed down, nothing is lost, others go on")
    func backPressure() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let carol = try world.joinWithData("carol")
      let long = String(repeating: "w", count: 50_000)
      for number in 0..<240 {
        try world.send(text("\(number) " + long) { $0.destinationIdentities = ["bob"] }, from: alice)
      }
      for round in 0..<1_000 where bob.channels.received.count < 240 {
        // All of it would be with the server before Bob hears anything.
        bob.channels.isDeaf = round < 15
        world.run(for: .milliseconds(200))
        if round == 10 { try world.send(text("meanwhile"), from: carol) }
      }
      let numbers = bob.channels.texts().compactMap { Int($0.prefix { $0 != " " }) }
      #expect(numbers == Array(0..<240))
      #expect(alice.channels.texts() == ["meanwhile"])
      #expect(bob.leaves.isEmpty && alice.leaves.isEmpty)
    }

    @Test("a reader who stopped and goes on misses nothing")
    func pause() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      bob.channels.isDeaf = true
      let long = String(repeating: "z", count: 50_000)
      for number in 0..<60 {
        try world.send(text("\(number) " + long), from: alice)
        world.run(for: .milliseconds(40))
      }
      bob.channels.isDeaf = false
      world.run(for: .seconds(20)) { bob.channels.texts().count == 60 }
      let numbers = bob.channels.texts().compactMap { Int($0.prefix { $0 != " " }) }
      #expect(numbers == Array(0..<60))
      #expect(bob.leaves.isEmpty)
    }

    @Test("a client whose SCTP gave up is told to begin anew; one that ends SCTP itself stays")
    func ends() throws {
      let world = try World.withData()
      let alice = try world.joinWithData("alice")
      let bob = try world.joinWithData("bob")
      let carol = try world.joinWithData("carol")
      bob.channels.isDeaf = true
      try world.send(text("1"), from: alice)
      world.data?.abort(carol, at: world.now)
      world.react()
      world.run(for: .seconds(60)) { !bob.leaves.isEmpty }
      #expect(bob.leaves.map(\.action) == [.reconnect])
      #expect(carol.leaves.isEmpty && !carol.isClosed)
    }
  }
}
