import PalbeLiveKit
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

@Suite("RFC 6544: participants over TCP connections")
struct StreamTests {
  @Test("§4.5: answers carry a passive TCP candidate beside the UDP one")
  func candidates() throws {
    let stream = SocketAddress(ipv4: 192, 0, 2, 1, port: 7_881).overTCP
    let world = try World { $0.candidates.append(stream) }
    let alice = try world.client("alice")
    world.join(alice)
    let lines = try #require(alice.answer?.media.first { !$0.candidates.isEmpty }?.candidates)
    #expect(lines.count == 2)
    #expect(lines[0].contains(" udp ") && lines[0].hasSuffix("192.0.2.1 7882 typ host"))
    #expect(lines[1].contains(" tcp ") && lines[1].hasSuffix("192.0.2.1 7881 typ host tcptype passive"))
  }

  @Test("A call over TCP; what comes from the same address and port over UDP is a stranger's")
  func call() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    alice.usesTCP = true
    world.join(alice)
    let bob = try world.client("bob")
    bob.usesTCP = true
    world.join(bob)
    #expect(world.connect(alice) && world.connect(bob))
    #expect(world.isServed(alice.socketAddress.overTCP))
    #expect(!world.isServed(alice.socketAddress))
    try ForwardingTests.send(3, from: alice, track: 0, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == 6)
    let received = world.received.count
    for packet in try alice.videoFrame(0, isKeyFrame: false) {
      world.receive(packet, from: alice.socketAddress)
    }
    #expect(world.received.count == received)
  }

  @Test("A connection that ends is forgotten at once; the client goes on over another")
  func ends() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    world.join(alice)
    let bob = try world.client("bob")
    bob.usesTCP = true
    world.join(bob)
    #expect(world.connect(alice) && world.connect(bob))
    world.handle(.disconnected(bob.address))
    world.handle(.disconnected(SocketAddress(ipv4: 203, 0, 113, 1, port: 1).overTCP))
    #expect(!world.isServed(bob.address))
    let before = world.sentByteCounts
    try ForwardingTests.send(3, from: alice, track: 0, in: world)
    #expect(world.sentByteCounts[bob.address] == before[bob.address])
    // Over UDP now: its next checks nominate.
    bob.usesTCP = false
    world.run(for: .seconds(8))
    #expect(world.isServed(bob.address))
    let count = bob.packets(payloadType: 96).count
    try ForwardingTests.send(3, from: alice, track: 0, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == count + 6)
  }

  @Test("Who leaves is served no more, so that its connection can be closed")
  func leaves() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.usesTCP = true
    world.join(alice)
    #expect(world.connect(alice))
    world.signal(.leave(.init()), from: alice)
    #expect(!world.isServed(alice.address))
  }
}
