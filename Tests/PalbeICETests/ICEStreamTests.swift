import PalbeICE
import PalbeUnits
import Testing

/// Requirement: a client that UDP does not reach connects to an SFU's passive TCP candidate.
@Suite("RFC 6544: the full agent as the active side")
struct ICEStreamTests {
  /// An agent against a lite one in virtual time; each transport works or is silent. A stream is named by our end of it.
  struct StreamWorld {
    static let datagrams = ICEWorld.server
    static let stream = SocketAddress(ipv4: 192, 0, 2, 10, port: 7_881).overTCP
    static let delay = TimeDelta.milliseconds(10)

    var now = Instant(nanoseconds: 1_000_000_000)
    var agent: ICEAgent
    var lite: ICELiteAgent
    var worksOverUDP = false
    var worksOverTCP = true
    /// Our end of the connection; another one after each end.
    var ourPort: UInt16 = 50_000
    var events: [ICEEvent] = []
    var sent: [(at: Instant, to: SocketAddress)] = []
    private var arrivals: [(at: Instant, bytes: [UInt8], source: SocketAddress)] = []
    private var random = RandomSource(seed: 7_675)

    init(offers: [SocketAddress] = [Self.datagrams, Self.stream], udp: Bool = false, tcp: Bool = true) {
      var random = RandomSource(seed: 6_544)
      lite = ICELiteAgent(local: ICECredentials(using: &random))
      agent = ICEAgent(
        role: .controlling, local: ICECredentials(using: &random), random: RandomSource(seed: random.next()))
      worksOverUDP = udp
      worksOverTCP = tcp
      agent.addLocalCandidate(ICECandidate(.host, ICEWorld.client), base: 0, at: now)
      agent.addLocalCandidate(ICECandidate.active(ICEWorld.client), base: 0, at: now)
      agent.setRemote(lite.local, isLite: true, at: now)
      lite.setRemote(agent.local)
      for address in offers { agent.addRemoteCandidate(ICECandidate(.host, address), at: now) }
    }

    mutating func run(for time: TimeDelta, until isDone: (StreamWorld) -> Bool = { _ in false }) -> Bool {
      let end = now + time
      while now < end {
        drain()
        if isDone(self) { return true }
        var next = min(end, agent.nextDeadline ?? end)
        if let arrival = arrivals.map(\.at).min() { next = min(next, arrival) }
        now = max(now, next)
        while let index = arrivals.firstIndex(where: { $0.at <= now }) {
          let arrival = arrivals.remove(at: index)
          agent.handle(arrival.bytes.span, from: arrival.source, base: 0, at: now)
        }
        agent.handleTimeout(at: now)
      }
      return isDone(self)
    }

    private mutating func drain() {
      while let event = agent.pollEvent() { events.append(event) }
      while let out = agent.pollTransmit() {
        sent.append((now, out.remote))
        let isStream = out.remote.transport == .tcp
        guard isStream ? worksOverTCP : worksOverUDP else { continue }
        var source = ICEWorld.client
        if isStream {
          source = source.overTCP
          source.port = ourPort
        }
        let action = lite.handle(out.bytes, from: source, at: now + Self.delay)
        for (bytes, _) in lite.checks(at: now + Self.delay, using: &random) {
          arrivals.append((now + Self.delay * 2, bytes, out.remote))
        }
        switch action {
        case .respond(let bytes), .respondAndSelect(let bytes, _):
          arrivals.append((now + Self.delay * 2, bytes, out.remote))
        case .proven: break
        case .ignored(let reason): Issue.record("\(reason)")
        }
      }
    }
  }

  @Test("UDP is silent: media has a connection after half a second and a round trip, and it is nominated")
  func silence() {
    var world = StreamWorld()
    let start = world.now
    #expect(world.run(for: .seconds(2)) { $0.agent.state == .connected })
    #expect(world.now - start == .milliseconds(520))
    #expect(world.agent.selectedPair?.remote == StreamWorld.stream)
    #expect(world.agent.selectedPair?.local.transport == .tcp)
    #expect(world.lite.selectedRemote?.port == world.ourPort && !world.lite.isNominated)
    #expect(world.run(for: .seconds(3)) { $0.agent.state == .completed })
    #expect(world.now - start == .milliseconds(2_040))
    #expect(world.lite.isNominated && world.lite.selectedRemote?.transport == .tcp)
    // It holds: consent is checked over the connection.
    #expect(world.run(for: .seconds(90)) { $0.agent.state == .failed } == false)
    #expect(world.agent.selectedPair?.remote == StreamWorld.stream)
  }

  @Test("RFC 8489 §6.2.2: a check over TCP is sent once, and has failed when nothing came")
  func once() {
    var world = StreamWorld(offers: [StreamWorld.stream], tcp: false)
    world.agent.endOfRemoteCandidates(at: world.now)
    #expect(world.run(for: .seconds(20)) { $0.agent.state == .failed })
    #expect(world.sent.map(\.to) == [StreamWorld.stream])
  }

  @Test("An SFU that offers TCP alone is connected to at once")
  func alone() {
    var world = StreamWorld(offers: [StreamWorld.stream])
    let start = world.now
    #expect(world.run(for: .seconds(1)) { $0.agent.state == .completed })
    #expect(world.now - start == .milliseconds(40))
  }

  @Test("Where UDP works no connection is opened")
  func datagrams() {
    var world = StreamWorld(udp: true)
    #expect(!world.run(for: .seconds(60)) { $0.agent.state == .failed })
    #expect(world.agent.selectedPair?.remote == StreamWorld.datagrams)
    #expect(!world.sent.contains { $0.to.transport == .tcp })
  }

  @Test("UDP that answers late, before the connection is nominated, takes the call over")
  func late() {
    var world = StreamWorld()
    #expect(world.run(for: .seconds(1)) { $0.agent.selectedPair?.remote == StreamWorld.stream })
    world.worksOverUDP = true
    #expect(world.run(for: .seconds(3)) { $0.agent.state == .completed })
    #expect(world.agent.selectedPair?.remote == StreamWorld.datagrams)
    #expect(world.lite.selectedRemote == ICEWorld.client)
  }

  @Test("A refused connection fails its pair at once; without another one the agent has failed")
  func refused() {
    var world = StreamWorld(offers: [StreamWorld.stream], tcp: false)
    world.agent.endOfRemoteCandidates(at: world.now)
    #expect(!world.run(for: .milliseconds(100)) { $0.agent.state == .failed })
    world.agent.disconnected(from: StreamWorld.stream, base: 0, at: world.now)
    #expect(world.agent.state == .failed)
    // Of an address that nobody knows nothing follows.
    world.agent.disconnected(from: StreamWorld.datagrams.overTCP, base: 0, at: world.now)
  }

  @Test("A connection that breaks is opened again by a check at once, then each second; the server follows")
  func breaks() {
    var world = StreamWorld()
    #expect(world.run(for: .seconds(5)) { $0.agent.state == .completed })
    world.ourPort += 1
    world.worksOverTCP = false
    var attempts = 0
    for _ in 0..<3 {
      let before = world.sent.count
      world.agent.disconnected(from: StreamWorld.stream, base: 0, at: world.now)
      _ = world.run(for: .milliseconds(1_100)) { $0.sent.count > before }
      attempts += world.sent.count - before
    }
    #expect(attempts == 3)
    #expect(world.agent.state == .completed)
    world.worksOverTCP = true
    world.agent.disconnected(from: StreamWorld.stream, base: 0, at: world.now)
    #expect(world.run(for: .seconds(2)) { $0.lite.selectedRemote?.port == $0.ourPort })
    #expect(world.lite.isNominated)
    // A connection that stays away ends the call as silence does.
    world.worksOverTCP = false
    #expect(world.run(for: .seconds(40)) { $0.agent.state == .failed })
    #expect(world.agent.selectedPair == nil)
  }

  @Test(
    "Active and simultaneous-open candidates of a peer are not connected to, nor passive ones of ours used")
  func skipped() throws {
    var world = StreamWorld(offers: [])
    for type in ["active", "so"] {
      let line = "candidate:1 1 tcp 1518280447 192.0.2.10 7881 typ host tcptype \(type)"
      world.agent.addRemoteCandidate(try ICECandidate.parse(line), at: world.now)
    }
    #expect(!world.run(for: .seconds(5)) { !$0.sent.isEmpty })
    var random = RandomSource(seed: 1)
    var agent = ICEAgent(role: .controlling, local: ICECredentials(using: &random), random: random)
    agent.addLocalCandidate(ICECandidate(.host, ICEWorld.client.overTCP), base: 0, at: .zero)
    agent.setRemote(world.lite.local, isLite: true, at: .zero)
    agent.addRemoteCandidate(ICECandidate(.host, StreamWorld.stream), at: .zero)
    #expect(agent.pollTransmit() == nil)
  }

  @Test("RFC 6544 §4.2 and §4.5: an active candidate names port 9 and is liked better than a passive one")
  func candidate() throws {
    let active = ICECandidate.active(ICEWorld.client)
    #expect(active.attribute.hasSuffix(" tcp \(active.priority) 10.0.0.2 9 typ host tcptype active"))
    #expect(try ICECandidate.parse(active.attribute) == active)
    #expect(active.priority >> 21 & 7 == 6)
    #expect(active.priority > ICECandidate(.host, ICEWorld.client.overTCP).priority)
    #expect(active.priority < ICECandidate.priority(.serverReflexive, localPreference: 0))
  }
}
