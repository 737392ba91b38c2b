import PalbeDTLS
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

@Suite("RFC 6347 §4.2.4: loss, fragments and hostile datagrams")
struct DTLSLossTests {
  @Test("Any one datagram of the handshake may be lost: sent again after 100 ms", arguments: 0..<8)
  func oneDatagram(index: Int) throws {
    let world = try DTLSWorld()
    let start = world.clock.now
    world.drops = { at, _, _ in at == index }
    #expect(world.connect())
    #expect(world.clock.now - start <= .milliseconds(260))
    #expect(try ExportedKeys(world.server) == ExportedKeys(world.client).mirrored)
  }

  @Test("Any one flight may be lost whole", arguments: 0..<4)
  func oneFlight(flight: Int) throws {
    let world = try DTLSWorld(mtu: 300)
    let start = world.clock.now
    let counter = FlightCounter()
    world.drops = { _, fromClient, now in counter.flight(fromClient, now) == flight }
    #expect(world.connect())
    #expect(world.clock.now - start <= .milliseconds(260))
    #expect(try ExportedKeys(world.server) == ExportedKeys(world.client).mirrored)
  }

  @Test("30 % loss each way, duplication, reordering: connected within 60 s", arguments: 1...30)
  func randomLoss(seed: UInt64) throws {
    let link = Link(
      delay: .milliseconds(20), jitter: .milliseconds(10), loss: 0.3, duplication: 0.2, reordering: 0.2)
    let world = try DTLSWorld(seed: seed, link: link, mtu: seed.isMultiple(of: 2) ? 1_200 : 300)
    #expect(world.connect(within: .seconds(60)), "seed \(seed): \(world.client.state) \(world.server.state)")
    guard world.areConnected else { return }
    #expect(try ExportedKeys(world.server) == ExportedKeys(world.client).mirrored)
  }

  @Test("A peer that never answers: failed after about a dozen tries, without an end of memory or time")
  func silence() throws {
    let world = try DTLSWorld(link: .cut)
    let start = world.clock.now
    #expect(!world.connect(within: .seconds(60)))
    #expect(world.client.state == .failed(.timeout))
    #expect(world.client.nextDeadline == nil)
    #expect((10...16).contains(world.datagrams.count))
    #expect(world.clock.now - start <= .seconds(60))
  }

  @Test("Garbage, truncated and foreign datagrams neither connect nor kill an association")
  func garbage() throws {
    let world = try DTLSWorld()
    #expect(world.connect())
    let flights = world.datagrams
    var random = RandomSource(seed: 5)
    let now = world.clock.now
    for (fromClient, bytes) in flights {
      for count in 0..<bytes.count {
        let prefix = Array(bytes[..<count])
        try? world.server.handle(prefix.span, at: now)
        try? world.client.handle(prefix.span, at: now)
      }
      var changed = bytes
      changed[Int(random.next() % UInt64(bytes.count))] ^= 0x55
      try? world.server.handle(changed.span, at: now)
      if fromClient { try? world.server.handle(bytes.span, at: now) }
    }
    for count in [1, 13, 100, 2_048, 2_049, 60_000] {
      let noise = random.bytes(count)
      let handshakeNoise = [22, 254, 253] + noise
      try? world.server.handle(noise.span, at: now)
      try? world.client.handle(handshakeNoise.span, at: now)
    }
    world.drain()
    let message: [UInt8] = [9]
    try world.client.send(message.span, at: now)
    world.run(for: .seconds(1))
    #expect(world.server.pollReceived() == message)
    #expect(world.areConnected)
  }

  @Test("Garbage before the ClientHello does not stop a handshake")
  func garbageFirst() throws {
    let world = try DTLSWorld()
    var random = RandomSource(seed: 6)
    for count in 1...200 {
      let noise = random.bytes(count)
      try? world.server.handle(noise.span, at: world.clock.now)
    }
    #expect(world.server.state == .handshaking)
    #expect(world.connect())
  }
}

/// Numbers flights: what one side sends at one moment.
final class FlightCounter {
  private var last: (fromClient: Bool, at: Instant)?
  private var count = -1

  func flight(_ fromClient: Bool, _ now: Instant) -> Int {
    if last?.fromClient != fromClient || last?.at != now { count += 1 }
    last = (fromClient, now)
    return count
  }
}
