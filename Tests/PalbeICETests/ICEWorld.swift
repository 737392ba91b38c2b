import PalbeICE
import PalbeNetSim
import PalbeTestKit
import PalbeUnits

/// Two agents over a simulated network in virtual time; the second one is full or lite.
struct ICEWorld {
  enum Side { case first, second }
  enum Peer {
    case full(ICEAgent)
    case lite(ICELiteAgent)
  }

  var clock = VirtualClock()
  /// Of the lite agent.
  var random = RandomSource(seed: 7_675)
  var network: NetworkSimulator
  var first: ICEAgent
  var second: Peer
  /// The sockets of each side; an agent's base is the index here.
  var firstBases: [SocketAddress]
  var secondBases: [SocketAddress]
  var firstEvents: [ICEEvent] = []
  var secondEvents: [ICEEvent] = []
  var liteActions: [LiteAction] = []
  /// STUN datagrams that each side sent, with the time.
  var sent: [(at: Instant, side: Side, message: STUNMessage, to: SocketAddress)] = []

  static let client = SocketAddress(ipv4: 10, 0, 0, 2, port: 40_000)
  static let server = SocketAddress(ipv4: 192, 0, 2, 10, port: 7_882)

  /// A full controlling client and a lite server.
  static func withLiteServer(seed: UInt64, link: Link = Link(), bases: [SocketAddress] = [client]) -> ICEWorld
  {
    var random = RandomSource(seed: seed)
    let lite = ICELiteAgent(local: ICECredentials(using: &random))
    let agent = ICEAgent(
      role: .controlling, local: ICECredentials(using: &random), random: RandomSource(seed: random.next()))
    return ICEWorld(
      network: NetworkSimulator(seed: random.next(), link: link), first: agent, second: .lite(lite),
      firstBases: bases, secondBases: [server])
  }

  /// Two full agents; the tie-breaker of the first one is the higher.
  static func withFullAgents(
    seed: UInt64, link: Link = Link(), roles: (ICERole, ICERole) = (.controlling, .controlled)
  ) -> ICEWorld {
    var random = RandomSource(seed: seed)
    let one = ICEAgent(
      role: roles.0, local: ICECredentials(using: &random), tieBreaker: 2,
      random: RandomSource(seed: random.next()))
    let two = ICEAgent(
      role: roles.1, local: ICECredentials(using: &random), tieBreaker: 1,
      random: RandomSource(seed: random.next()))
    return ICEWorld(
      network: NetworkSimulator(seed: random.next(), link: link), first: one, second: .full(two),
      firstBases: [client], secondBases: [server])
  }

  var now: Instant { clock.now }

  var lite: ICELiteAgent? {
    if case .lite(let agent) = second { return agent }
    return nil
  }
  var other: ICEAgent? {
    if case .full(let agent) = second { return agent }
    return nil
  }

  mutating func withSecond(_ body: (inout ICEAgent) -> Void) {
    guard case .full(var agent) = second else { return }
    body(&agent)
    second = .full(agent)
  }

  mutating func withLite(_ body: (inout ICELiteAgent) -> Void) {
    guard case .lite(var agent) = second else { return }
    body(&agent)
    second = .lite(agent)
  }

  /// Gives each side the other's credentials and candidates at once.
  mutating func signal() {
    let now = clock.now
    for (base, address) in firstBases.enumerated() {
      first.addLocalCandidate(ICECandidate(.host, address), base: base, at: now)
    }
    switch second {
    case .lite(var agent):
      first.setRemote(agent.local, isLite: true, at: now)
      agent.setRemote(first.local)
      second = .lite(agent)
    case .full(var agent):
      first.setRemote(agent.local, isLite: false, at: now)
      agent.setRemote(first.local, isLite: false, at: now)
      for (base, address) in secondBases.enumerated() {
        agent.addLocalCandidate(ICECandidate(.host, address), base: base, at: now)
      }
      for address in firstBases { agent.addRemoteCandidate(ICECandidate(.host, address), at: now) }
      second = .full(agent)
    }
    for address in secondBases { first.addRemoteCandidate(ICECandidate(.host, address), at: now) }
  }

  /// Runs until `condition` holds; false when it does not within `limit`.
  @discardableResult
  mutating func run(for limit: TimeDelta, until condition: (ICEWorld) -> Bool = { _ in false }) -> Bool {
    let end = clock.now + limit
    while true {
      drain()
      if condition(self) { return true }
      var next = end
      if let arrival = network.nextArrival { next = min(next, arrival) }
      if let deadline = first.nextDeadline { next = min(next, deadline) }
      if let deadline = other?.nextDeadline ?? lite?.nextCheckAt { next = min(next, deadline) }
      if next >= end {
        clock.advance(to: end)
        return false
      }
      clock.advance(to: next)
      step()
    }
  }

  private mutating func step() {
    let now = clock.now
    while let datagram = network.poll(at: now) {
      if let base = firstBases.firstIndex(of: datagram.destination) {
        first.handle(datagram.bytes, from: datagram.source, base: base, at: now)
      } else if let base = secondBases.firstIndex(of: datagram.destination) {
        switch second {
        case .full(var agent):
          agent.handle(datagram.bytes, from: datagram.source, base: base, at: now)
          second = .full(agent)
        case .lite(var agent):
          let action = agent.handle(datagram.bytes, from: datagram.source, at: now)
          second = .lite(agent)
          sendChecks()
          liteActions.append(action)
          switch action {
          case .respond(let bytes), .respondAndSelect(let bytes, _):
            send(bytes, .second, from: datagram.destination, to: datagram.source)
          case .proven, .ignored: break
          }
        }
      }
    }
    if let deadline = first.nextDeadline, deadline <= now { first.handleTimeout(at: now) }
    sendChecks()
    withSecond { agent in
      if let deadline = agent.nextDeadline, deadline <= now { agent.handleTimeout(at: now) }
    }
  }

  private mutating func sendChecks() {
    guard case .lite(var agent) = second else { return }
    let checks = agent.checks(at: clock.now, using: &random)
    second = .lite(agent)
    for (bytes, destination) in checks { send(bytes, .second, from: secondBases[0], to: destination) }
  }

  private mutating func drain() {
    while let out = first.pollTransmit() {
      send(out.bytes, .first, from: firstBases[out.base], to: out.remote)
    }
    while let event = first.pollEvent() { firstEvents.append(event) }
    guard case .full(var agent) = second else { return }
    while let out = agent.pollTransmit() {
      send(out.bytes, .second, from: secondBases[out.base], to: out.remote)
    }
    while let event = agent.pollEvent() { secondEvents.append(event) }
    second = .full(agent)
  }

  private mutating func send(_ bytes: [UInt8], _ side: Side, from: SocketAddress, to: SocketAddress) {
    if let message = try? STUNMessage.parse(bytes) { sent.append((clock.now, side, message, to)) }
    network.send(bytes, from: from, to: to, at: clock.now)
  }
}
