import PalbeDataChannels
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

extension DataChannelSuites {
  @Suite("RFC 8831: associations")
  struct AssociationTests {
    @Test("RFC 9260 §5.1: four messages, two round trips, both sides connected")
    func handshake() throws {
      let world = try DataChannelWorld()
      world.isRecording = true
      let start = world.clock.now
      #expect(world.connect())
      #expect(world.clock.now - start == .milliseconds(40))
      #expect(world.activeEvents == [.connected(outbound: 128, inbound: 128)])
      #expect(world.passiveEvents == [.connected(outbound: 128, inbound: 128)])
      #expect(world.datagrams.prefix(4).map { $0.bytes[12] } == [1, 2, 10, 11])
      #expect(world.library.associationCount == 2)
    }

    @Test("The handshake gets through 30 % loss, duplication and reordering", arguments: 1...8)
    func lossyHandshake(seed: UInt64) throws {
      let link = Link(
        delay: .milliseconds(20), jitter: .milliseconds(10), loss: 0.3, duplication: 0.2, reordering: 0.2)
      let world = try DataChannelWorld(seed: seed, link: link)
      #expect(world.connect(within: .seconds(60)))
    }

    @Test("A peer that never answers: aborted for time, and nothing is left to do")
    func silence() throws {
      let world = try DataChannelWorld(link: .cut)
      world.run(for: .seconds(120)) { $0.active?.state != .connecting }
      #expect(world.active?.state == .aborted(.timeout))
      #expect(world.activeEvents == [.aborted(.timeout)])
      #expect(world.passive?.state == .connecting)
    }

    @Test("close: what waits still arrives, then both are closed")
    func close() throws {
      let world = try DataChannelWorld(link: Link(loss: 0.02))
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "_reliable"))
      for index in 0..<50 { try world.send([UInt8](repeating: UInt8(index), count: 2_000), on: id) }
      world.active?.close(at: world.clock.now)
      #expect(world.active?.state == .closing)
      world.run(for: .seconds(30)) { $0.active?.state == .closed && $0.passive?.state == .closed }
      #expect(world.active?.state == .closed)
      #expect(world.passive?.state == .closed)
      #expect(world.passiveEvents.last == .closed)
      #expect(world.takePassiveMessages().map { $0.bytes[0] } == (0..<50).map { UInt8($0) })
      #expect(
        thrown { try world.active?.send([1].span, kind: .text, channel: id, at: .zero) } == .notConnected)
      #expect(world.library.associationCount == 0)
      #expect(world.library.nextDeadline == nil)
    }

    @Test("close to a peer that is gone ends after 5 s")
    func closeAlone() throws {
      let world = try DataChannelWorld()
      #expect(world.connect())
      world.network.setLink(
        .cut, between: DataChannelWorld.activeAddress, and: DataChannelWorld.passiveAddress)
      world.active?.close(at: world.clock.now)
      world.run(for: .milliseconds(4_900))
      #expect(world.active?.state == .closing)
      world.run(for: .milliseconds(200))
      #expect(world.active?.state == .closed)
    }

    @Test("abort in the middle of traffic: the peer hears of it, and the aborter's queues are gone")
    func abort() throws {
      let world = try DataChannelWorld()
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x"))
      for _ in 0..<10 { try world.send([UInt8](repeating: 7, count: 60_000), on: id) }
      world.run(for: .milliseconds(15))
      world.active?.abort()
      #expect(world.active?.state == .aborted(.local))
      #expect(world.active?.channels.isEmpty == true)
      world.run(for: .seconds(1))
      #expect(world.passive?.state == .aborted(.peer(cause: 12)))
      #expect(world.library.associationCount == 0)
    }

    @Test("The last reference may go at any moment of the traffic", arguments: 0..<30)
    func teardown(step: Int) throws {
      let world = try DataChannelWorld(
        seed: UInt64(step), link: Link(loss: 0.1, duplication: 0.2, reordering: 0.2))
      if step > 3 {
        world.connect()
        let id = try world.open(DataChannel(label: "x", isOrdered: false))
        for _ in 0..<10 { try world.send([UInt8](repeating: 7, count: 9_000), on: id) }
      }
      world.run(for: .milliseconds(step * 7))
      world.active = nil
      world.run(for: .milliseconds(300))
      world.passive = nil
      world.run(for: .seconds(2))
      #expect(world.library.associationCount == 0)
    }

    @Test("One library at a time; it lives as long as its associations")
    func claim() throws {
      var world: DataChannelWorld? = try DataChannelWorld()
      #expect(thrown { _ = try SCTPLibrary() } == .libraryInUse)
      let survivor = world?.active
      world = nil
      #expect(thrown { _ = try SCTPLibrary() } == .libraryInUse)
      withExtendedLifetime(survivor) {}
    }

    @Test("2,000 associations one after another leave nothing behind in usrsctp's numbers")
    func churn() throws {
      let library = try SCTPLibrary()
      for index in 0..<2_000 {
        let one = try library.makeAssociation(
          role: .active, at: Instant(nanoseconds: Int64(index) * 1_000_000))
        withExtendedLifetime(one) {}
      }
      #expect(library.associationCount == 0)
    }

    @Test("Associations are told apart: 100 pairs on one library", .timeLimit(.minutes(1)))
    func many() throws {
      let library = try SCTPLibrary()
      var now = Instant.zero
      var pairs: [(active: SCTPAssociation, passive: SCTPAssociation)] = []
      for _ in 0..<100 {
        pairs.append(
          (
            try library.makeAssociation(role: .active, at: now),
            try library.makeAssociation(role: .passive, at: now)
          ))
      }
      var partner: [ObjectIdentifier: SCTPAssociation] = [:]
      for pair in pairs {
        partner[ObjectIdentifier(pair.active)] = pair.passive
        partner[ObjectIdentifier(pair.passive)] = pair.active
        _ = try pair.active.openChannel(DataChannel(label: "x"), at: now)
      }
      var buffer = [UInt8](repeating: 0, count: 1_500)
      var received: [ObjectIdentifier: [UInt8]] = [:]
      func turn() {
        while let association = library.pollReady() {
          while let event = association.pollEvent() {
            if case .message(let message) = event { received[ObjectIdentifier(association)] = message.bytes }
          }
          while true {
            var span = buffer.mutableSpan
            guard let count = association.pollTransmit(into: &span) else { break }
            partner[ObjectIdentifier(association)]?.handle(buffer.span.extracting(0..<count), at: now)
          }
        }
        now += .milliseconds(10)
        library.handleTimeout(at: now)
      }
      for _ in 0..<10 { turn() }
      for (index, pair) in pairs.enumerated() {
        try pair.active.send([UInt8(index), 1].span, kind: .binary, channel: 0, at: now)
      }
      for _ in 0..<100 { turn() }
      for (index, pair) in pairs.enumerated() {
        #expect(received[ObjectIdentifier(pair.passive)] == [UInt8(index), 1])
      }
    }
  }
}
