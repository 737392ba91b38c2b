import PalbeICE
import PalbeNetSim
import PalbeUnits
import Testing

@Suite("RFC 8445: the full agent")
struct ICEAgentTests {
  @Test("A client and a lite server connect in one round trip and complete in two")
  func lite() throws {
    var world = ICEWorld.withLiteServer(seed: 1)
    let start = world.now
    world.signal()
    #expect(world.run(for: .seconds(1)) { $0.first.state == .connected || $0.first.state == .completed })
    #expect(world.now - start == .milliseconds(20))
    #expect(world.run(for: .seconds(1)) { $0.first.state == .completed })
    #expect(world.now - start == .milliseconds(40))
    #expect(world.lite?.isNominated == true)
    #expect(world.lite?.selectedRemote == ICEWorld.client)
    #expect(
      world.first.selectedPair
        == ICESelectedPair(base: 0, local: ICEWorld.client, remote: ICEWorld.server))
    #expect(
      world.firstEvents == [
        .stateChanged(.checking), .selectedPairChanged(world.first.selectedPair), .stateChanged(.connected),
        .stateChanged(.completed),
      ])
  }

  @Test("Two full agents connect and complete, whoever controls", arguments: [true, false])
  func full(firstControls: Bool) {
    var world = ICEWorld.withFullAgents(
      seed: 2, roles: firstControls ? (.controlling, .controlled) : (.controlled, .controlling))
    world.signal()
    #expect(world.run(for: .seconds(2)) { $0.first.state == .completed && $0.other?.state == .completed })
    #expect(world.first.selectedPair?.remote == ICEWorld.server)
    #expect(world.other?.selectedPair?.remote == ICEWorld.client)
    #expect(world.first.role == (firstControls ? .controlling : .controlled))
  }

  @Test("RFC 8445 §7.3.1.1: a role conflict is settled by the tie-breakers", arguments: [true, false])
  func roleConflict(bothControl: Bool) {
    let role = bothControl ? ICERole.controlling : .controlled
    var world = ICEWorld.withFullAgents(seed: 3, roles: (role, role))
    world.signal()
    #expect(world.run(for: .seconds(3)) { $0.first.state == .completed && $0.other?.state == .completed })
    #expect(world.first.role == .controlling)
    #expect(world.other?.role == .controlled)
  }

  @Test("30 % loss each way, duplication and reordering: completed within 10 s", arguments: 0..<40)
  func loss(seed: UInt64) {
    let link = Link(
      delay: .milliseconds(30), jitter: .milliseconds(10), loss: 0.3, duplication: 0.1, reordering: 0.1)
    var world = ICEWorld.withFullAgents(seed: seed, link: link)
    world.signal()
    let isDone = world.run(for: .seconds(10)) {
      $0.first.state == .completed && $0.other?.state == .completed
    }
    #expect(isDone, "seed \(seed)")
    var lite = ICEWorld.withLiteServer(seed: seed, link: link)
    lite.signal()
    #expect(lite.run(for: .seconds(10)) { $0.lite?.isNominated == true }, "seed \(seed)")
  }

  @Test("Corrupted checks never connect the wrong pair or trap", arguments: 0..<10)
  func corruption(seed: UInt64) {
    var world = ICEWorld.withFullAgents(seed: seed, link: Link(corruption: 0.4))
    world.signal()
    #expect(world.run(for: .seconds(20)) { $0.first.state == .completed && $0.other?.state == .completed })
    #expect(world.first.selectedPair?.local == ICEWorld.client)
  }

  @Test("RFC 8445 §7.3.1.3: a client behind a NAT is found as peer-reflexive")
  func nat() {
    var world = ICEWorld.withFullAgents(seed: 4)
    let outside = SocketAddress(ipv4: 203, 0, 113, 5, port: 61_000)
    world.network.translate(ICEWorld.client, to: outside)
    world.signal()
    #expect(world.run(for: .seconds(3)) { $0.first.state == .completed && $0.other?.state == .completed })
    #expect(world.first.selectedPair?.local == outside)
    #expect(world.other?.selectedPair?.remote == outside)
  }

  @Test("RFC 7675 §4.1: a lite server follows a client whose NAT rebinds")
  func rebinding() {
    var world = ICEWorld.withLiteServer(seed: 5)
    world.network.translate(ICEWorld.client, to: SocketAddress(ipv4: 203, 0, 113, 5, port: 61_000))
    world.signal()
    #expect(world.run(for: .seconds(1)) { $0.first.state == .completed })
    let outside = SocketAddress(ipv4: 203, 0, 113, 5, port: 61_999)
    world.network.translate(ICEWorld.client, to: outside)
    #expect(world.run(for: .seconds(7)) { $0.lite?.selectedRemote == outside })
    world.run(for: .seconds(60))
    #expect(world.first.state == .completed)
    #expect(world.first.selectedPair?.local == outside)
    #expect(world.firstEvents.last == .selectedPairChanged(world.first.selectedPair))
  }

  @Test("The dead of several addresses do not hold up the call; the better one is nominated")
  func severalAddresses() {
    let dead = SocketAddress(ipv4: 172, 17, 0, 1, port: 40_001)
    let slow = SocketAddress(ipv4: 10, 0, 0, 9, port: 40_002)
    var world = ICEWorld.withLiteServer(seed: 6, bases: [dead, slow, ICEWorld.client])
    world.network.setLink(.cut, between: dead, and: ICEWorld.server)
    world.network.setLink(Link(delay: .milliseconds(300)), between: slow, and: ICEWorld.server)
    let start = world.now
    world.signal()
    #expect(world.run(for: .seconds(2)) { $0.first.state == .connected })
    #expect(world.now - start <= .milliseconds(150))
    #expect(world.run(for: .seconds(2)) { $0.first.state == .completed })
    #expect(world.first.selectedPair?.base == 2)
  }

  @Test("RFC 8445 §14.2: checks leave 50 ms apart, the best pair first")
  func pacing() {
    let bases = (0..<8).map { SocketAddress(ipv4: 10, 0, 0, 20 + UInt8($0), port: 40_000) }
    var world = ICEWorld.withLiteServer(seed: 7, link: .cut, bases: bases)
    world.signal()
    world.run(for: .milliseconds(240))
    let times = world.sent.map(\.at)
    #expect(times.count == 5)
    for (earlier, later) in zip(times, times.dropFirst()) { #expect(later - earlier == .milliseconds(50)) }
    #expect(world.sent.allSatisfy { $0.message.role != nil && !$0.message.useCandidate })
  }

  @Test(
    "No answer from anywhere: failed after 30 s, or at once when every check failed and no candidate follows")
  func failure() {
    var world = ICEWorld.withLiteServer(seed: 8, link: .cut)
    let start = world.now
    world.signal()
    #expect(world.run(for: .seconds(60)) { $0.first.state == .failed })
    #expect(world.now - start == .seconds(30))
    #expect(world.first.nextDeadline == nil)

    var final = ICEWorld.withLiteServer(seed: 8, link: .cut)
    final.signal()
    final.first.endOfRemoteCandidates(at: final.now)
    #expect(final.run(for: .seconds(60)) { $0.first.state == .failed })
    #expect(final.now - start < .seconds(15))
  }
}
