import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits
import Testing

@testable import PalbeSFUCore

@Suite("Operation: drain, settings, TURN credentials, counts (S4 part 5)")
struct OperationTests {
  @Test(
    "a draining worker makes no rooms, keeps those that are there, and ends with leave RECONNECT (field fault 19)"
  )
  func drain() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio)]
    world.join(alice)
    #expect(world.connect(alice))
    world.handle(.drain)

    // A room that is there is joined.
    let bob = try world.client("bob")
    world.join(bob)
    #expect(world.connect(bob))
    // A new one is not made, neither by a join nor by an operator.
    let carol = try world.client("carol")
    world.join(carol, grant: { $0.room = "other" })
    #expect(carol.join == nil)
    #expect(carol.leaves.map(\.reason) == [.serverShutdown])
    #expect(carol.leaves.map(\.action) == [.reconnect])
    #expect(world.command(.create(RoomSettings(name: "other"))) == .refused(.draining))
    #expect(world.command(.create(RoomSettings(name: "room"))) != .refused(.draining))
    // Nobody is disturbed meanwhile.
    world.run(for: .seconds(20))
    #expect(alice.leaves.isEmpty && bob.leaves.isEmpty)
    #expect(world.worker.participantCount == 2)
    // An idle tab is told like everyone else.
    world.handle(.shutDown)
    for client in [alice, bob] {
      #expect(client.leaves.map(\.reason) == [.serverShutdown])
      #expect(client.leaves.map(\.action) == [.reconnect])
      #expect(client.leaves.map(\.canReconnect) == [true])
    }
    #expect(world.worker.participantCount == 0)
  }

  @Test("new settings count for what begins after them; the candidates stay")
  func reconfigure() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice)
    var new = SFUConfiguration(candidates: [])
    new.createsRooms = false
    new.maxParticipantsPerRoom = 1
    new.requiresE2EE = true
    world.handle(.reconfigure(new))
    let bob = try world.client("bob")
    world.join(bob, grant: { $0.room = "other" })
    #expect(bob.join == nil)
    // The room that is there keeps its own.
    let carol = try world.client("carol")
    carol.tracks = [world.track("mic", .audio)]
    world.join(carol)
    #expect(world.connect(carol))
    #expect(carol.leaves.isEmpty)
  }

  @Test("a new limit of signals holds at once, for those who are there too")
  func limits() throws {
    let world = try World()
    let alice = try world.client("alice")
    let bob = try world.client("bob")
    for client in [alice, bob] { world.join(client) }
    for _ in 0..<150 { world.signal(.ping(1), from: alice) }
    #expect(alice.leaves.isEmpty)
    var new = SFUConfiguration(candidates: [])
    new.signalRate = 10
    world.handle(.reconfigure(new))
    for _ in 0..<150 { world.signal(.ping(1), from: bob) }
    #expect(bob.leaves.map(\.reason) == [.participantRemoved])
  }

  @Test("each participant gets TURN credentials of its own, with an expiry (livekit protocol 2, TURN)")
  func turn() throws {
    let world = try World {
      $0.iceServers = [.with { $0.urls = ["stun:stun.example.org:3478"] }]
      $0.turnServers = [
        TURNServer(url: "turn:t.example.org:3478?transport=udp", secret: "north", lifetime: .seconds(3_600))
      ]
    }
    let alice = try world.client("alice")
    let bob = try world.client("bob")
    world.join(alice)
    world.join(bob)
    let servers = try #require(alice.join?.iceServers)
    #expect(servers.count == 2)
    #expect(servers[0].urls == ["stun:stun.example.org:3478"] && servers[0].credential.isEmpty)
    let sid = try #require(alice.join?.participant?.sid)
    // The clock of the test stands at 1,760,000,000.
    #expect(servers[1].username == "1760003600:\(sid)")
    #expect(servers[1].credential.utf8.count == 28)
    let other = try #require(bob.join?.iceServers.last)
    #expect(other.username != servers[1].username && other.credential != servers[1].credential)
  }

  @Test("what is there and what happened is counted, and not lost with those who leave")
  func counts() throws {
    let world = try World()
    let (alice, _) = try call(world)
    let before = world.worker.statistics()
    #expect(before.rooms == 1 && before.participants == 2)
    #expect(before.publishedTracks.audio == 1 && before.publishedTracks.video == 1)
    #expect(before.subscribedTracks.audio == 1 && before.subscribedTracks.video == 1)
    #expect(before.totals.joins == 2 && before.totals.connections == 2)
    #expect(before.totals.connectMilliseconds.counts.reduce(0, +) == 2)

    try ForwardingTests.send(60, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    let during = world.worker.statistics()
    #expect(
      during.totals.received.packets > 50 && during.totals.received.bytes > during.totals.received.packets)
    #expect(during.totals.sent.packets > 50)
    world.signal(.leave(.with { $0.reason = .clientInitiated }), from: alice)
    let after = world.worker.statistics()
    #expect(after.participants == 1)
    #expect(
      after.publishedTracks == WorkerStatistics.ByKind()
        && after.subscribedTracks == WorkerStatistics.ByKind())
    #expect(after.totals.received == during.totals.received)
    #expect(after.totals.sent == during.totals.sent)
    #expect(after.totals.sessionMilliseconds.counts.reduce(0, +) == 1)
  }

  @Test("a packet that was kept back is counted, and not lost with who leaves")
  func refusals() throws {
    let world = try World()
    let (_, bob) = try call(world)
    let participant = try #require(world.worker.participants.first { $0.identity == "bob" })
    var packet = [UInt8](repeating: 0, count: 64)
    var lengths: [Int?] = []
    for _ in 0..<3 {
      packet.replaceSubrange(0..<12, with: [0x80, 96, 0, 1, 0, 0, 0, 1, 0xab, 0xcd, 0xef, 1])
      var span = packet.mutableSpan
      lengths.append(participant.downTransport.protectRTP(&span, count: 20))
    }
    #expect(lengths[0] != nil && lengths[1] == nil && lengths[2] == nil)
    #expect(world.worker.statistics().totals.refused == 2)
    world.signal(.leave(.with { $0.reason = .clientInitiated }), from: bob)
    #expect(world.worker.statistics().participants == 1)
    #expect(world.worker.statistics().totals.refused == 2)
  }
}
