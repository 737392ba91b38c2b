import PalbeDTLS
import PalbeICE
import PalbeNetSim
import PalbeRTP
import PalbeUnits
import Testing

@testable import PalbeSFUCore

/// Requirement: no amplification, no call taken over by who can forge or copy a datagram. An address gets media once it proved
/// itself.
struct ProofTests {
  private let victim = SocketAddress(ipv4: 203, 0, 113, 9, port: 5_555)

  @Test("RFC 8445 §19.5.1: nominations of a forged address move no media, and bring three bytes for one")
  func forgedNominations() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let participant = try #require(world.participant("bob"))
    var spent = 0
    for number in 0..<300 {
      if number % 60 == 0 {
        let check = world.check(participant) { $0.useCandidate = true }
        spent += check.count
        world.receive(check, from: victim)
      }
      world.send(try alice.videoFrame(1, isKeyFrame: number == 0), from: alice)
      world.run(for: .milliseconds(33))
      #expect(world.sentByteCounts[victim, default: 0] <= 3 * spent)
    }
    world.run(for: .milliseconds(100))
    #expect(world.sentByteCounts[victim, default: 0] > 0)
    #expect(bob.packets(payloadType: 96).count == 600)
  }

  @Test("RFC 8489 §6.2.1: a check that is recorded and sent from elsewhere brings nothing there")
  func recordedCheck() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let participant = try #require(world.participant("bob"))
    let recorded = world.check(participant) { $0.useCandidate = true }
    world.receive(recorded, from: bob.address)
    for source in [victim, victim.overTCP] {
      world.receive(recorded, from: source)
      try ForwardingTests.send(5, from: alice, track: 1, in: world)
      world.run(for: .milliseconds(200))
      #expect(world.sentByteCounts[source] == nil && !world.isServed(source))
    }
  }

  @Test("A check from another participant's address does not take that address over")
  func foreignAddress() throws {
    let world = try World()
    let bob = try world.client("bob")
    bob.tracks = [world.track("mic", .audio)]
    world.join(bob)
    try #require(world.connect(bob))
    let mallory = try world.client("mallory")
    world.join(mallory)
    try #require(world.connect(mallory))
    let participant = try #require(world.participant("mallory"))
    for _ in 0..<20 {
      world.receive(world.check(participant) { $0.useCandidate = true }, from: bob.address)
      world.send([try bob.media(0, payload: [1, 2, 3])], from: bob)
      world.run(for: .milliseconds(20))
    }
    world.run(for: .milliseconds(100))
    #expect(mallory.packets(payloadType: 111).count == 20)
    #expect(mallory.packets(payloadType: 111).allSatisfy { $0.payload == [1, 2, 3] })
    // Bob's client refuses the check of mallory's transport, which it has no credentials of.
    #expect(participant.transport.remote == mallory.address)
  }

  @Test("RFC 7675 §4.1: a client whose NAT rebinds gets its media a round trip after its next check")
  func rebinding() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    world.run(for: .seconds(3))
    let outside = SocketAddress(ipv4: 203, 0, 113, 70, port: 61_000)
    world.network.translate(bob.address, to: outside)
    try #require(world.run(for: .seconds(7)) { world.sentByteCounts[outside] != nil })
    let heardAt = world.now
    let participant = try #require(world.participant("bob"))
    #expect(participant.transport.remote == bob.address)
    #expect(world.run(for: .seconds(1)) { participant.transport.remote == outside })
    #expect(world.now - heardAt == .milliseconds(20))
    let before = bob.packets.count
    try ForwardingTests.send(5, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets.count > before)
  }

  @Test("The proof costs a first connection no time: it is there when the handshake comes")
  func setUp() throws {
    let world = try World()
    let alice = try world.client("alice")
    let start = world.now
    world.join(alice)
    try #require(world.connect(alice))
    // A check and its answer, then a handshake of two round trips.
    #expect(world.now - start == .milliseconds(60))
  }

  @Test("A handshake that comes before the proof is answered with it, and nowhere else")
  func earlyHandshake() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.answersChecks = false
    world.join(alice)
    let participant = try #require(world.participant("alice"))
    world.receive(world.check(participant), from: alice.address)
    let answered = world.sentByteCounts[alice.address, default: 0]
    alice.dtls.start(at: world.now)
    let flight = alice.dtls.pollTransmit()
    world.receive(try #require(flight), from: alice.address)
    #expect(world.sentByteCounts[alice.address] == answered)
    // The client's ICE has got our check by now.
    world.run(for: .milliseconds(10))
    alice.answersChecks = true
    world.receive(world.check(participant), from: alice.address)
    #expect(world.run(for: .milliseconds(500)) { alice.srtp != nil })
  }

  @Test("An address that answers no check of ours any more gets nothing after 30 s, though checks go on")
  func lapsedProof() throws {
    let world = try World { $0.consentGrace = .seconds(20) }
    let (alice, bob) = try call(world)
    let participant = try #require(world.participant("bob"))
    bob.answersChecks = false
    for _ in 0..<14 {
      world.receive(world.check(participant) { $0.useCandidate = true }, from: bob.address)
      world.run(for: .milliseconds(2_500))
    }
    #expect(participant.transport.remote == nil)
    let before = bob.packets.count
    try ForwardingTests.send(10, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets.count == before)
  }
}
