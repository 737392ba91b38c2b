import PalbeICE
import PalbeUnits
import Testing

@Suite("A peer cannot make an agent grow")
struct ICEBoundsTests {
  private func agent() -> ICEAgent {
    var random = RandomSource(seed: 9)
    var agent = ICEAgent(
      role: .controlling, local: ICECredentials(using: &random), random: RandomSource(seed: 1))
    for base in 0..<20 {
      let address = SocketAddress(ipv4: 10, 0, 1, UInt8(base), port: 4_000)
      agent.addLocalCandidate(ICECandidate(.host, address), base: base, at: .zero)
    }
    agent.setRemote(ICECredentials(using: &random), isLite: false, at: .zero)
    return agent
  }

  @Test("RFC 8445 §6.1.2.5: 100 pairs and 64 candidates at most, and datagrams nobody polls are dropped")
  func candidates() {
    var agent = agent()
    for index in 0..<1_000 {
      let address = SocketAddress(ipv4: 192, 0, UInt8(index >> 8), UInt8(index & 255), port: 9_000)
      agent.addRemoteCandidate(ICECandidate(.host, address), at: .zero)
    }
    var now = Instant.zero
    var paths = Set<String>()
    for _ in 0..<400 {
      guard let next = agent.nextDeadline else { break }
      now = max(now, next)
      agent.handleTimeout(at: now)
      while let out = agent.pollTransmit() {
        paths.insert("\(out.base) \(out.remote)")
      }
      if agent.state == .failed { break }
    }
    #expect(paths.count <= 100)

    var silent = self.agent()
    silent.addRemoteCandidate(ICECandidate(.host, ICEWorld.server), at: .zero)
    for step in 0..<2_000 { silent.handleTimeout(at: .zero + .milliseconds(10 * step)) }
    var count = 0
    while silent.pollTransmit() != nil { count += 1 }
    #expect(count <= 64)
  }

  @Test("Candidates of another generation, component, transport or family are not paired")
  func skipped() throws {
    var random = RandomSource(seed: 9)
    var agent = ICEAgent(
      role: .controlling, local: ICECredentials(using: &random), random: RandomSource(seed: 1))
    agent.addLocalCandidate(ICECandidate(.host, ICEWorld.client), base: 0, at: .zero)
    agent.setRemote(ICECredentials(using: &random), isLite: true, at: .zero)
    let lines = [
      "candidate:1 1 udp 1 192.0.2.1 5 typ host ufrag other",
      "candidate:1 2 udp 1 192.0.2.1 5 typ host",
      "candidate:1 1 tcp 1 192.0.2.1 5 typ host tcptype passive",
      "candidate:1 1 udp 1 2001:db8::1 5 typ host",
      "candidate:1 1 udp 1 192.0.2.1 0 typ host",
    ]
    for line in lines { agent.addRemoteCandidate(try ICECandidate.parse(line), at: .zero) }
    #expect(agent.pollTransmit() == nil)
    agent.addRemoteCandidate(try ICECandidate.parse("candidate:1 1 udp 1 192.0.2.1 5 typ host"), at: .zero)
    #expect(agent.pollTransmit() != nil)
  }
}
