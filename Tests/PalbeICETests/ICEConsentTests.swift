import PalbeICE
import PalbeNetSim
import PalbeUnits
import Testing

@Suite("RFC 7675: consent, and RFC 8445 §9: restarts")
struct ICEConsentTests {
  private func connected(seed: UInt64) -> ICEWorld {
    var world = ICEWorld.withLiteServer(seed: seed)
    world.signal()
    world.run(for: .seconds(1)) { $0.first.state == .completed }
    #expect(world.first.state == .completed)
    return world
  }

  @Test("RFC 7675 §5.1: consent checks come 4 to 6 s apart, each a new transaction, and keep the call alive")
  func interval() {
    var world = connected(seed: 1)
    world.sent.removeAll()
    world.run(for: .seconds(600))
    #expect(world.first.state == .completed)
    let checks = world.sent.filter { $0.side == .first && $0.message.messageClass == .request }
    #expect((95...155).contains(checks.count))
    for (earlier, later) in zip(checks, checks.dropFirst()) {
      #expect((TimeDelta.seconds(4)...TimeDelta.seconds(6)).contains(later.at - earlier.at))
    }
    #expect(Set(checks.map(\.message.transactionID)).count == checks.count)
    #expect(world.lite?.isExpired(at: world.now) == false)
  }

  @Test(
    "mediasoup 1332: a silent peer is disconnected, then failed 30 s after its last answer, on both sides")
  func silence() throws {
    var world = connected(seed: 2)
    let cut = world.now
    world.network.setLink(.cut, between: ICEWorld.client, and: ICEWorld.server)
    #expect(world.run(for: .seconds(20)) { $0.first.state == .disconnected })
    #expect(world.now - cut >= .milliseconds(12_400))
    #expect(world.run(for: .seconds(60)) { $0.first.state == .failed })
    #expect(world.now - cut <= .seconds(30))
    #expect(world.first.selectedPair == nil)
    #expect(world.firstEvents.suffix(2) == [.selectedPairChanged(nil), .stateChanged(.failed)])
    #expect(world.lite?.isExpired(at: world.now + .seconds(1)) == true)
    world.sent.removeAll()
    world.run(for: .seconds(100))
    #expect(world.sent.isEmpty)
  }

  @Test("RFC 7675 §5.1: an interruption of 20 s heals by itself")
  func interruption() {
    var world = connected(seed: 3)
    world.network.setLink(.cut, between: ICEWorld.client, and: ICEWorld.server)
    world.run(for: .seconds(20))
    #expect(world.first.state == .disconnected)
    world.network.setLink(Link(), between: ICEWorld.client, and: ICEWorld.server)
    #expect(world.run(for: .seconds(7)) { $0.first.state == .completed })
  }

  @Test("RFC 7675 §5.1: an answer counts only with the peer's password and from the peer's address")
  func forged() {
    var world = connected(seed: 4)
    world.sent.removeAll()
    world.run(for: .seconds(7)) { !$0.sent.isEmpty }
    guard let check = world.sent.first else { return }
    var answer = STUNMessage(.success, transactionID: check.message.transactionID)
    answer.mappedAddress = ICEWorld.client
    let forged = answer.encoded(integrityKey: Array("not the password at all".utf8))
    #expect(
      world.first.handle(forged, from: ICEWorld.server, base: 0, at: world.now) == .unauthenticated)
  }

  @Test("RFC 8445 §9: a restart moves to the new credentials without a moment disconnected")
  func restart() throws {
    var world = connected(seed: 5)
    var random = RandomSource(seed: 50)
    world.firstEvents.removeAll()
    world.first.restart(local: ICECredentials(using: &random), at: world.now)
    world.withLite { $0.restart(local: ICECredentials(using: &random)) }
    #expect(world.first.selectedPair != nil)
    world.run(for: .seconds(40))
    #expect(world.first.state == .completed)
    world.signal()
    #expect(world.run(for: .seconds(1)) { $0.lite?.isNominated == true })
    world.run(for: .seconds(100))
    #expect(world.first.state == .completed)
    #expect(!world.firstEvents.contains(.stateChanged(.disconnected)))
    #expect(!world.firstEvents.contains(.selectedPairChanged(nil)))
    let fragment = try #require(world.lite?.local.usernameFragment)
    let last = try #require(world.sent.last { $0.side == .first && $0.message.messageClass == .request })
    #expect(last.message.username?.starts(with: Array(fragment.utf8)) == true)
  }

  @Test("RFC 8445 §9: a restart after failure begins again, from another address too")
  func restartAfterFailure() {
    var world = connected(seed: 6)
    var random = RandomSource(seed: 60)
    world.network.setLink(.cut, between: ICEWorld.client, and: ICEWorld.server)
    #expect(world.run(for: .seconds(60)) { $0.first.state == .failed })
    world.first.restart(local: ICECredentials(using: &random), at: world.now)
    world.withLite { $0.restart(local: ICECredentials(using: &random)) }
    #expect(world.first.state == .new)
    world.firstBases.append(SocketAddress(ipv4: 10, 77, 0, 2, port: 40_100))
    world.signal()
    #expect(world.run(for: .seconds(10)) { $0.first.state == .completed })
    #expect(world.first.selectedPair?.base == 1)
    #expect(world.lite?.selectedRemote == world.firstBases[1])
  }

  @Test("Two full agents restart at once")
  func restartFull() {
    var world = ICEWorld.withFullAgents(seed: 7, link: Link(loss: 0.1))
    world.signal()
    world.run(for: .seconds(10)) { $0.first.state == .completed && $0.other?.state == .completed }
    var random = RandomSource(seed: 70)
    let now = world.now
    world.first.restart(local: ICECredentials(using: &random), at: now)
    world.withSecond { $0.restart(local: ICECredentials(using: &random), at: now) }
    world.signal()
    world.sent.removeAll()
    world.run(for: .seconds(120))
    #expect(world.first.state == .completed)
    #expect(world.other?.state == .completed)
    #expect(world.sent.contains { $0.message.useCandidate })
  }
}
