import PalbeDTLS
import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

struct LivenessTests {
  @Test(
    "LiveKit protocol §4 (31): 30 s without an authenticated check: told to resume, gone 5 s later, others learn of it"
  )
  func consent() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    alice.answersChecks = false
    #expect(!world.run(for: .seconds(24)) { alice.isClosed })
    #expect(world.run(for: .seconds(8)) { alice.isClosed })
    #expect(alice.leaves.map(\.reason) == [.connectionTimeout])
    #expect(alice.leaves.map(\.action) == [.resume])
    let isGone = { bob.updates(of: "alice").last?.state == .disconnected }
    #expect(!world.run(for: .seconds(4), until: isGone))
    #expect(world.run(for: .seconds(2), until: isGone))
    #expect(bob.updates(of: "alice").last?.disconnectReason == .connectionTimeout)
    #expect(!world.run(for: .seconds(120)) { bob.isClosed })
  }

  @Test("LiveKit protocol §4 (14): a client that stops pinging loses its WebSocket, and is asked to resume")
  func ping() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    alice.pingsAutomatically = false
    #expect(!world.run(for: .seconds(10)) { alice.isClosed })
    #expect(world.run(for: .seconds(6)) { alice.isClosed })
    #expect(alice.leaves.map(\.action) == [.resume])
    #expect(!bob.isClosed)
    // Its media flows: only after a minute without signaling it is gone.
    let isGone = { bob.updates(of: "alice").last?.state == .disconnected }
    #expect(!world.run(for: .seconds(58), until: isGone))
    #expect(world.run(for: .seconds(3), until: isGone))
  }

  @Test("A transport that does not come up within 60 s ends the participant")
  func connect() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.answersChecks = false
    world.join(alice)
    #expect(!world.run(for: .seconds(59)) { alice.isClosed })
    #expect(world.run(for: .seconds(2)) { alice.isClosed })
    world.run(for: .seconds(60))
    #expect(world.worker.nextDeadline == nil)
  }

  @Test("RFC 8827 §6.5: another certificate than the signaled one ends the participant before any media")
  func certificate() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(
      alice,
      request: { request in
        guard var offer = try? SessionDescription(parsing: request.publisherOffer?.sdp ?? "") else { return }
        for index in offer.media.indices {
          offer.media[index].attributes.set(
            "fingerprint", Fingerprint(sha256: [UInt8](repeating: 7, count: 32)).description)
        }
        request.publisherOffer?.sdp = offer.description
      })
    #expect(world.run(for: .seconds(5)) { alice.isClosed })
    #expect(alice.leaves.map(\.reason) == [.mediaFailure])
  }

  @Test("No DTLS answer before an authenticated check from that address")
  func unproven() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice)
    alice.dtls.start(at: world.now)
    let flight = alice.dtls.pollTransmit()
    let hello = try #require(flight)
    let sent = world.network.statistics.sent
    world.receive(hello, from: alice.address)
    #expect(world.network.statistics.sent == sent)
  }

  @Test(
    "A lost handshake flight is repeated: transports come up under 20 % loss",
    arguments: [UInt64(1), 2, 3, 4])
  func lossyHandshake(seed: UInt64) throws {
    let world = try World(seed: seed, link: Link(delay: .milliseconds(20), loss: 0.2))
    let alice = try world.client("alice")
    world.join(alice)
    #expect(world.run(for: .seconds(30)) { alice.updates(of: "alice").last?.state == .active })
  }

  @Test("A new address of the client's is followed: media goes where it nominated")
  func rebinding() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    world.network.translate(bob.address, to: SocketAddress(ipv4: 198, 51, 100, 9, port: 4_000))
    world.run(for: .seconds(8))
    try ForwardingTests.send(3, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == 6)
  }
}
