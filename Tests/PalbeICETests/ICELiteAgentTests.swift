import PalbeICE
import PalbeUnits
import Testing

@Suite("RFC 8445 §2.5: the lite agent")
struct ICELiteAgentTests {
  private let client = SocketAddress(ipv4: 10, 0, 0, 2, port: 40_000)
  private let start = Instant(nanoseconds: 5_000_000_000)
  private var peer = LitePeer(seed: 21)

  @Test("RFC 8445 §7.3: a check is answered with its source, under our password, before the peer's is known")
  mutating func answer() throws {
    var agent = peer.agent()
    let request = peer.check(agent)
    guard case .respond(let bytes) = agent.handle(request, from: client, at: start) else {
      Issue.record("no answer")
      return
    }
    let response = try STUNMessage.parse(bytes)
    #expect(response.messageClass == .success)
    #expect(response.mappedAddress == client)
    #expect(response.isAuthentic(in: bytes, key: Array(agent.local.password.utf8)))
    #expect(response.transactionID == (try STUNMessage.parse(request)).transactionID)
    #expect(agent.isHeard(client, at: start) && !agent.isProven(client, at: start))
    #expect(agent.selectedRemote == nil)
    try peer.prove(&agent, at: client, start)
    #expect(agent.selectedRemote == client)
    #expect(!agent.isNominated)
    #expect(agent.isProven(client, at: start))
  }

  @Test("RFC 6544 §8: a TCP connection that ends is proven no more; media goes to the latest check's source")
  mutating func forget() throws {
    var agent = peer.agent()
    let stream = client.overTCP
    try peer.connect(&agent, from: client, at: start)
    let later = start + .seconds(1)
    try peer.connect(&agent, nominates: true, from: stream, at: later)
    #expect(agent.selectedRemote == stream)
    #expect(agent.isProven(client, at: later))
    agent.forget(stream, at: later)
    #expect(!agent.isProven(stream, at: later))
    #expect(agent.selectedRemote == client && !agent.isNominated)
    agent.forget(client, at: later)
    #expect(agent.selectedRemote == nil)
    try peer.connect(&agent, from: stream, at: start + .seconds(2))
    #expect(agent.selectedRemote == stream)
  }

  @Test("RFC 7675 §5.1: without consent nothing is sent anywhere before an address proves itself again")
  mutating func loseConsent() throws {
    var agent = peer.agent()
    try peer.connect(&agent, nominates: true, from: client, at: start)
    agent.loseConsent()
    #expect(agent.selectedRemote == nil && !agent.isProven(client, at: start))
    try peer.connect(&agent, from: client, at: start + .seconds(40))
    #expect(agent.selectedRemote == client)
  }

  @Test("The fragment of a request is found without reading the rest; nothing else has one")
  mutating func fragments() {
    let agent = peer.agent()
    let request = peer.check(agent)
    for length in request.indices {
      let found = ICELiteAgent.localUsernameFragment(of: Array(request[..<length]))
      #expect(found == nil || found == agent.local.usernameFragment)
    }
    var long = STUNMessage(.request, transactionID: STUNTransactionID(using: &peer.random))
    long.username = Array("0123456789abcdef:x".utf8)
    #expect(ICELiteAgent.localUsernameFragment(of: long.encoded()) == nil)
    long.username = Array("0123456789abcde:x".utf8)
    #expect(ICELiteAgent.localUsernameFragment(of: long.encoded()) == "0123456789abcde")
    long.username = Array("nocolon".utf8)
    #expect(ICELiteAgent.localUsernameFragment(of: long.encoded()) == nil)
    long.username = [0xff, 0xfe, 58]
    _ = ICELiteAgent.localUsernameFragment(of: long.encoded())
  }

  @Test("RFC 8445 §8.1.1: the last nomination wins, a plain check does not move media")
  mutating func nomination() throws {
    var agent = peer.agent()
    let other = SocketAddress(ipv4: 10, 9, 0, 2, port: 41_000)
    try peer.connect(&agent, nominates: true, from: client, at: start)
    #expect(agent.isNominated)
    try peer.connect(&agent, from: other, at: start)
    #expect(agent.selectedRemote == client)
    #expect(agent.isProven(other, at: start))
    let moved = agent.handle(peer.check(agent, nominates: true), from: other, at: start)
    guard case .respondAndSelect(_, other) = moved else {
      Issue.record("not moved: \(moved)")
      return
    }
    #expect(agent.selectedRemote == other)
  }

  @Test("RFC 8445 §7.3.1.1: a peer that claims to be controlled gets 487")
  mutating func roleConflict() throws {
    var agent = peer.agent()
    let request = peer.check(agent, role: .controlled(tieBreaker: .max))
    guard case .respond(let bytes) = agent.handle(request, from: client, at: start) else {
      Issue.record("no answer")
      return
    }
    let response = try STUNMessage.parse(bytes)
    #expect(response.errorCode?.code == 487)
    #expect(response.isAuthentic(in: bytes, key: Array(agent.local.password.utf8)))
    #expect(agent.selectedRemote == nil)
  }

  @Test("RFC 8489 §6.3.1: an unknown required attribute gets 420 and is named")
  mutating func unknownAttribute() throws {
    var agent = peer.agent()
    // PRIORITY's type is replaced by an unknown one before the integrity is computed: built by hand.
    var request = STUNMessage(.request, transactionID: STUNTransactionID(using: &peer.random))
    request.username = Array("\(agent.local.usernameFragment):x".utf8)
    var plain = request.encoded()
    plain.removeLast(8)
    plain += [0x7f, 0x33, 0, 0]
    plain[3] = UInt8(plain.count - 20)
    let sealed = STUNTestKit.seal(plain, key: Array(agent.local.password.utf8))
    guard case .respond(let bytes) = agent.handle(sealed, from: client, at: start) else {
      Issue.record("no answer")
      return
    }
    let response = try STUNMessage.parse(bytes)
    #expect(response.errorCode?.code == 420)
    #expect(response.unknownAttributes == [0x7f33])
  }

  @Test("Unproven sources get no answer: garbage, other fragments, wrong or missing integrity, responses")
  mutating func ignored() {
    var agent = peer.agent()
    let another = peer.agent()
    let wrongPassword = String(repeating: "x", count: 24)
    var unsigned = STUNMessage(.request, transactionID: STUNTransactionID(using: &peer.random))
    unsigned.username = Array("\(agent.local.usernameFragment):x".utf8)
    let cases: [([UInt8], ICEIgnoreReason)] = [
      ([0, 1, 2], .notSTUN(.notSTUN)),
      (peer.check(another), .otherAgent),
      (peer.check(agent, password: wrongPassword), .unauthenticated),
      (unsigned.encoded(), .unauthenticated),
      (
        STUNMessage(.success, transactionID: STUNTransactionID(high: 0, low: 0)).encoded(),
        .unknownTransaction
      ),
      (STUNMessage(.indication, transactionID: STUNTransactionID(high: 0, low: 0)).encoded(), .indication),
      (
        STUNMessage(.request, method: 3, transactionID: STUNTransactionID(high: 0, low: 0)).encoded(),
        .otherMethod(3)
      ),
    ]
    for (bytes, reason) in cases {
      #expect(agent.handle(bytes, from: client, at: start) == .ignored(reason))
    }
    #expect(agent.selectedRemote == nil)
    #expect(agent.lastAuthenticatedCheck == nil)
    #expect(!agent.isProven(client, at: start))
    #expect(!agent.isExpired(at: .distantFuture))
  }

  @Test("RFC 7675 §5.1: consent ends 30 s after the last check, or the last answer to one of ours")
  mutating func consent() throws {
    var agent = peer.agent()
    try peer.connect(&agent, nominates: true, from: client, at: start)
    #expect(!agent.isExpired(at: start + .seconds(30)))
    #expect(agent.isExpired(at: start + .milliseconds(30_001)))
    let deadline = try #require(agent.consentDeadline)
    #expect(agent.isExpired(at: deadline))
    try peer.connect(&agent, from: client, at: start + .seconds(29))
    #expect(!agent.isExpired(at: start + .seconds(59)))
    #expect(!agent.isProven(client, at: start + .seconds(60)))
    // Checks go on, under a source that may be forged by now, and ours are not answered.
    var now = start + .seconds(29)
    for _ in 0..<12 {
      now += .milliseconds(2_500)
      _ = agent.handle(peer.check(agent, nominates: true), from: client, at: now)
      _ = agent.checks(at: now, using: &peer.random)
    }
    #expect(agent.selectedRemote == client && !agent.isExpired(at: now))
    now += .milliseconds(2_500)
    _ = agent.handle(peer.check(agent, nominates: true), from: client, at: now)
    #expect(agent.selectedRemote == nil && agent.isExpired(at: now))
  }

  @Test("RFC 8445 §9: a restart keeps the old address until the peer nominates under the new credentials")
  mutating func restart() throws {
    var agent = peer.agent()
    let old = agent
    let moved = SocketAddress(ipv4: 172, 16, 0, 9, port: 50_000)
    try peer.connect(&agent, nominates: true, from: client, at: start)
    agent.restart(local: ICECredentials(using: &peer.random))
    // The old path keeps its consent, under the credentials that it had, while the new one is found.
    let later = start + .seconds(5)
    let late = agent.handle(peer.check(old, nominates: true), from: client, at: later)
    guard case .respond = late else {
      Issue.record("old credentials refused too early: \(late)")
      return
    }
    try peer.prove(&agent, at: client, later)
    #expect(agent.isProven(client, at: start + .seconds(35)))
    // The peer's new credentials may come behind its first checks.
    _ = agent.handle(peer.check(agent), from: moved, at: later)
    #expect(agent.nextCheckAt == nil && agent.checks(at: later, using: &peer.random).isEmpty)
    peer.credentials = ICECredentials(using: &peer.random)
    agent.setRemote(peer.credentials)
    #expect(agent.nextCheckAt.map { $0 <= later } == true)
    try peer.prove(&agent, at: moved, later)
    #expect(agent.isProven(moved, at: later) && agent.selectedRemote == client)
    _ = agent.handle(peer.check(agent, nominates: true), from: moved, at: later)
    #expect(agent.selectedRemote == moved)
    #expect(agent.handle(peer.check(old), from: client, at: later) == .ignored(.otherAgent))
  }

  @Test("Bounded: a peer that changes its source 1,000 times holds 8 addresses, and media stays where it was")
  mutating func bounded() throws {
    var agent = peer.agent()
    try peer.connect(&agent, from: client, at: start)
    let sources = (1...1_000).map { SocketAddress(ipv4: 10, 0, 0, 3, port: UInt16($0)) }
    for (index, source) in sources.enumerated() {
      _ = agent.handle(peer.check(agent, nominates: true), from: source, at: start + .milliseconds(index))
    }
    #expect(sources.count { agent.isHeard($0, at: start + .seconds(1)) } == 7)
    #expect(agent.isHeard(sources[999], at: start + .seconds(1)))
    #expect(agent.selectedRemote == client)
  }

  @Test("A server finds the agent by the fragment before the colon")
  mutating func fragment() {
    let agent = peer.agent()
    let request = peer.check(agent)
    #expect(ICELiteAgent.localUsernameFragment(of: request) == agent.local.usernameFragment)
    #expect(ICELiteAgent.localUsernameFragment(of: [22, 254, 253]) == nil)
    let response = STUNMessage(.success, transactionID: STUNTransactionID(high: 0, low: 0)).encoded()
    #expect(ICELiteAgent.localUsernameFragment(of: response) == nil)
  }
}
