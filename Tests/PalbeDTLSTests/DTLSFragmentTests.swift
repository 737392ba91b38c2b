import CPalbeOpenSSL
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeDTLS

@Suite("RFC 6347 §4.2.3: large flights in fragments")
struct DTLSFragmentTests {
  /// Blows a ClientHello up to `count` bytes by offering protocols (ALPN) that our server does not look at.
  private func inflate(_ endpoint: borrowing DTLSEndpoint, by count: Int) {
    var list = [UInt8]()
    while list.count + 101 <= count { list += [100] + [UInt8](repeating: 120, count: 100) }
    #expect(unsafe SSL_set_alpn_protos(endpoint.connection, list, UInt32(list.count)) == 0)
  }

  @Test("A 1,200-byte ClientHello in fragments completes", arguments: [256, 500, 1_000])
  func clientHello(mtu: Int) throws {
    let world = try DTLSWorld(link: Link(mtu: mtu), mtu: mtu)
    inflate(world.client, by: 1_050)
    #expect(world.connect())
    let hello = world.datagrams.prefix { $0.fromClient }
    #expect(hello.count >= 2)
    #expect(hello.map(\.bytes.count).reduce(0, +) >= 1_200)
    #expect(world.datagrams.allSatisfy { $0.bytes.count <= mtu })
    #expect(world.network.statistics.oversized == 0)
  }

  @Test("Its fragments in reverse order, each twice, one lost the first time")
  func shuffled() throws {
    let world = try DTLSWorld(link: Link(delay: .milliseconds(10)), mtu: 300)
    inflate(world.client, by: 1_050)
    let start = world.clock.now
    world.drops = { index, _, _ in index == 2 }
    world.rewrite = { bytes, _ in [bytes, bytes] }
    world.client.start(at: world.clock.now)
    var fragments = [[UInt8]]()
    while let fragment = world.client.pollTransmit() { fragments.append(fragment) }
    #expect(fragments.count >= 4)
    for fragment in fragments.dropFirst().reversed() {
      try world.server.handle(fragment.span, at: world.clock.now)
      try world.server.handle(fragment.span, at: world.clock.now)
    }
    #expect(world.server.pollTransmit() == nil)
    #expect(world.connect())
    #expect(world.clock.now - start <= .milliseconds(400))
  }

  @Test("Flights are cut to the MTU and no datagram holds two", arguments: [256, 400, 1_200])
  func mtu(mtu: Int) throws {
    let world = try DTLSWorld(link: Link(mtu: mtu), mtu: mtu)
    #expect(world.connect())
    for (_, bytes) in world.datagrams {
      // Walk the records: they fill the datagram exactly.
      var offset = 0
      while offset + 13 <= bytes.count {
        offset += 13 + Int(bytes[offset + 11]) << 8 + Int(bytes[offset + 12])
      }
      #expect(offset == bytes.count)
    }
  }

  @Test("The retransmission time is the caller's; where OpenSSL keeps it, its clock resends too")
  func openSSLClock() throws {
    let world = try DTLSWorld()
    world.client.start(at: world.clock.now)
    #expect(world.client.bio.timer.isCallers == true)
    #expect(world.client.nextDeadline == world.clock.now + .milliseconds(100))
    world.client.handleTimeout(at: world.clock.now + .milliseconds(99))
    #expect(world.client.bio.outgoing.count == 1)
    world.client.handleTimeout(at: world.clock.now + .milliseconds(100))
    #expect(world.client.bio.outgoing.count == 2)
    #expect(world.client.nextDeadline == world.clock.now + .milliseconds(300))

    var other = try DTLSEndpoint(role: .client, identity: DTLSWorld.clientIdentity)
    other.bio.timer.leaveToOpenSSL()
    other.start(at: .zero)
    let deadline = other.nextDeadline
    let left = try #require(deadline) - Instant.zero
    #expect(left > .milliseconds(20) && left <= .milliseconds(100))
    // The one place where real time passes: 100 ms, at most two seconds.
    let limit = ContinuousClock.now + .seconds(2)
    while other.bio.outgoing.count < 2, ContinuousClock.now < limit { other.handleTimeout(at: .zero) }
    #expect(other.bio.outgoing.count == 2)
  }
}
