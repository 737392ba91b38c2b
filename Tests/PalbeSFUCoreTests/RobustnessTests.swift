import PalbeDTLS
import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeUnits
import Testing

@testable import PalbeSFUCore

struct RobustnessTests {
  /// Bytes with some changed, cut or added.
  private func mutated(_ bytes: [UInt8], _ random: inout RandomSource) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...8, using: &random) where !bytes.isEmpty {
      let index = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: bytes[index] = UInt8(truncatingIfNeeded: random.next())
      case 1: bytes.remove(at: index)
      case 2: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: index)
      default: bytes.removeLast(min(bytes.count, Int.random(in: 0..<40, using: &random)))
      }
    }
    return bytes
  }

  private func stillWorks(_ world: World, _ alice: ScriptedClient, _ bob: ScriptedClient) throws {
    let before = bob.packets(payloadType: 96).count
    try ForwardingTests.send(3, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == before + 6)
  }

  @Test("Garbage on a signaling connection changes nothing for the others", arguments: [UInt64(1), 2])
  func signals(seed: UInt64) throws {
    let world = try World(seed: seed)
    let (alice, bob) = try call(world)
    let mallory = try world.client("mallory")
    mallory.reoffersOnRequirement = false
    mallory.tracks = [world.track("cam", .video)]
    world.join(mallory)
    var random = RandomSource(seed: seed)
    let seeds: [LiveKit.SignalRequest.Message] = [
      .offer(mallory.offerMessage()), .addTrack(mallory.addTrack(mallory.tracks[0])),
      .mute(.with { $0.sid = "TR_x" }), .subscription(.with { $0.trackSids = ["TR_x"] }),
      .trackSetting(.with { $0.trackSids = ["TR_x"] }), .trickle(.with { $0.candidateInit = "{}" }),
      .updateMetadata(.with { $0.metadata = "x" }), .pingReq(.with { $0.timestamp = -1 }),
      .syncState(.with { $0.trackSidsDisabled = ["a"] }), .simulate(.with { $0.scenario = .migration(true) }),
    ]
    for round in 0..<600 {
      let bytes =
        round % 4 == 0
        ? random.bytes(Int.random(in: 0..<300, using: &random))
        : mutated(
          LiveKit.SignalRequest(seeds[Int.random(in: 0..<seeds.count, using: &random)]).serialized(), &random)
      world.handle(.signal(mallory.connection, bytes))
      if mallory.isClosed { break }
    }
    world.handle(.signal(ConnectionID(999), [1, 2, 3]))
    world.handle(.closed(ConnectionID(999)))
    try stillWorks(world, alice, bob)
  }

  @Test("Who leaves while packets wait for its link takes them along", arguments: [0, 3, 20])
  func leavesWhilePaced(wait: Int) throws {
    let call = try LayeredCall([.kilobitsPerSecond(600)], seed: 1)
    let world = call.world
    let link = SimulatedLink("900 kbit/s", Link(delay: .milliseconds(25), bandwidth: .kilobitsPerSecond(900)))
    try call.run(until: .seconds(8), over: link)
    // What the link was measured to carry takes a key frame in steps.
    call.source.layers[0].wantsKeyFrame = true
    let end = world.now + .seconds(2)
    while call.link?.heldByteCount == 0, world.now < end {
      try call.run(until: world.now - call.start + .milliseconds(10), over: link)
    }
    #expect((call.link?.heldByteCount ?? 0) > 2_000)
    world.run(for: .milliseconds(wait))
    world.signal(.leave(LiveKit.LeaveRequest()), from: call.bob)
    try call.run(until: world.now - call.start + .seconds(3))
    let carol = try world.client("carol")
    world.join(carol)
    #expect(world.connect(carol))
    #expect(world.worker.participantCount == 2 && call.link == nil)
  }

  @Test(
    "Who says goodbye right behind its media, both read at once, takes nobody along",
    arguments: [false, true])
  func leavesBehindItsMedia(isHeard: Bool) throws {
    let world = try World()
    let (alice, bob) = try call(world)
    // Without subscriptions nothing else keeps the track.
    if !isHeard {
      world.signal(.leave(LiveKit.LeaveRequest()), from: bob)
      world.clients.removeAll { $0 === bob }
      world.run(for: .milliseconds(500))
    }
    var datagrams = try alice.videoFrame(1, isKeyFrame: true, packets: 6, size: 900)
    alice.dtls.close(at: world.now)
    while let bytes = alice.dtls.pollTransmit() { datagrams.append(bytes) }
    world.clients.removeAll { $0 === alice }
    for bytes in datagrams {
      var buffer = bytes + [UInt8](repeating: 0, count: 64)
      var span = buffer.mutableSpan
      world.worker.receive(&span, count: bytes.count, from: alice.address, at: world.now)
    }
    #expect(world.worker.participants.map(\.identity).sorted() == (isHeard ? ["bob"] : []))
    world.run(for: .seconds(1))
    #expect(world.worker.participants.count == (isHeard ? 1 : 0))
  }

  @Test("Garbage datagrams, from strangers and from a participant's own address, change nothing")
  func datagrams() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    try stillWorks(world, alice, bob)
    var random = RandomSource(seed: 5)
    let stranger = SocketAddress(ipv4: 203, 0, 113, 9, port: 99)
    let real = try alice.videoFrame(1, isKeyFrame: false)
    for round in 0..<3_000 {
      var bytes =
        round % 3 == 0
        ? mutated(real[0], &random) : random.bytes(Int.random(in: 1..<200, using: &random))
      let firsts: [UInt8] = [0, 1, 20, 22, 64, 128, 144, 191]
      if round % 3 == 1, !bytes.isEmpty { bytes[0] = firsts[round % firsts.count] }
      world.receive(bytes, from: [stranger, bob.address, alice.address][round % 3])
    }
    for length in 0..<real[1].count { world.receive(Array(real[1][..<length]), from: alice.address) }
    #expect(!alice.isClosed && !bob.isClosed)
    try stillWorks(world, alice, bob)
    #expect(world.reuses == 0)
  }

  @Test(
    "LiveKit protocol §4 (32): everything closes under traffic, in any order", arguments: [UInt64(1), 2, 3])
  func teardown(seed: UInt64) throws {
    let world = try World(seed: seed)
    let (alice, bob) = try call(world)
    let carol = try world.client("carol")
    carol.tracks = [world.track("cam2", .video)]
    world.join(carol)
    #expect(world.connect(carol))
    var random = RandomSource(seed: seed)
    var open = [alice, bob, carol]
    for _ in 0..<30 {
      if alice.srtp != nil { world.send(try alice.videoFrame(1, isKeyFrame: true), from: alice) }
      world.send(try carol.videoFrame(0, isKeyFrame: true), from: carol)
      world.run(for: .milliseconds(15))
      guard Int.random(in: 0..<5, using: &random) == 0, !open.isEmpty else { continue }
      let client = open.remove(at: Int.random(in: 0..<open.count, using: &random))
      world.handle(.closed(client.connection))
    }
    for client in open { world.handle(.closed(client.connection)) }
    // Their checks go on, so that they might resume; the room outlives them by 20 s.
    world.run(for: .seconds(90))
    #expect(world.worker.nextDeadline == nil)
  }
}
