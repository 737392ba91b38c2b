import PalbeICE
import PalbeUnits
import Testing

/// Media goes nowhere but to who asked for it: not where a forged or copied check points.
@Suite("RFC 8445 §19.5.1: an address proves itself before it gets media")
struct ICEProofTests {
  private let client = SocketAddress(ipv4: 10, 0, 0, 2, port: 40_000)
  private let victim = SocketAddress(ipv4: 203, 0, 113, 9, port: 5_555)
  private let start = Instant(nanoseconds: 5_000_000_000)
  private var peer = LitePeer(seed: 1_234)

  @Test("A nomination from a forged source does not move media, and brings there three bytes for one at most")
  mutating func forgedSource() throws {
    var agent = peer.agent()
    try peer.connect(&agent, nominates: true, from: client, at: start)
    var received = 0
    var sent = 0
    var now = start
    for step in 0..<400 {
      now += .milliseconds(50)
      if step % 40 == 0 {
        let check = peer.check(agent, nominates: true)
        received += check.count
        guard case .respond(let answer) = agent.handle(check, from: victim, at: now) else {
          Issue.record("no answer")
          return
        }
        sent += answer.count
      }
      for check in agent.checks(at: now, using: &peer.random) where check.to == victim {
        sent += check.bytes.count
      }
      #expect(sent <= 3 * received)
      #expect(agent.selectedRemote == client)
    }
    #expect(sent > 2 * received)
    #expect(!agent.isProven(victim, at: now))
  }

  @Test("A check that is not answered is sent again after 250, 500 and 1,000 ms")
  mutating func repetition() throws {
    var agent = peer.agent()
    // The longer the request, the more the address may get.
    peer.credentials = try #require(
      ICECredentials(
        usernameFragment: String(repeating: "u", count: 200), password: peer.credentials.password))
    agent.setRemote(peer.credentials)
    try peer.connect(&agent, from: client, at: start)
    // Where the peer is proven to be, all four go out.
    let renewal = start + .seconds(4)
    _ = agent.handle(peer.check(agent), from: client, at: renewal)
    var ids: [STUNTransactionID] = []
    var times: [TimeDelta] = []
    var now = renewal
    while let due = agent.nextCheckAt {
      now = max(now, due)
      for check in agent.checks(at: now, using: &peer.random) {
        times.append(now - renewal)
        ids.append(try STUNMessage.parse(check.bytes).transactionID)
      }
    }
    #expect(times == [0, 250, 750, 1_750].map { .milliseconds($0) })
    #expect(Set(ids).count == 1)
    // The next check of the peer's begins anew, under another transaction.
    _ = agent.handle(peer.check(agent), from: client, at: now)
    let next = agent.checks(at: now, using: &peer.random)
    #expect(next.count == 1)
    #expect(try ids.first != STUNMessage.parse(next[0].bytes).transactionID)
  }

  @Test("A NAT that rebinds: the new address gets media as soon as it answered, the old one until then")
  mutating func rebinding() throws {
    var agent = peer.agent()
    let moved = SocketAddress(ipv4: 10, 0, 0, 2, port: 40_001)
    try peer.connect(&agent, nominates: true, from: client, at: start)
    let now = start + .seconds(2)
    #expect(agent.nextCheckAt == nil)
    _ = agent.handle(peer.check(agent, nominates: true), from: moved, at: now)
    let checks = agent.checks(at: now, using: &peer.random)
    #expect(checks.map(\.to) == [moved] && agent.selectedRemote == client)
    let request = try STUNMessage.parse(checks[0].bytes)
    #expect(request.isAuthentic(in: checks[0].bytes, key: Array(peer.credentials.password.utf8)))
    let name = "\(peer.credentials.usernameFragment):\(agent.local.usernameFragment)"
    #expect(request.username == Array(name.utf8))
    #expect(request.priority != nil && request.role == .controlled(tieBreaker: 0) && !request.useCandidate)
    let answer = try peer.answer(to: checks[0].bytes)
    #expect(agent.handle(answer, from: moved, at: now) == .proven(isSelected: true))
    #expect(agent.selectedRemote == moved && agent.isNominated && agent.nextCheckAt == nil)
    #expect(agent.handle(answer, from: moved, at: now) == .ignored(.unknownTransaction))
  }

  @Test("Only the peer proves an address: from there, under its password, to the transaction of that check")
  mutating func wrongAnswers() throws {
    var agent = peer.agent()
    _ = agent.handle(peer.check(agent, nominates: true), from: victim, at: start)
    let check = try #require(agent.checks(at: start, using: &peer.random).first).bytes
    let right = try peer.answer(to: check)
    let wrong = String(repeating: "x", count: 24)
    #expect(agent.handle(right, from: client, at: start) == .ignored(.unknownTransaction))
    #expect(
      agent.handle(try peer.answer(to: check, password: wrong), from: victim, at: start)
        == .ignored(.unauthenticated))
    #expect(
      agent.handle(try peer.answer(to: check, password: agent.local.password), from: victim, at: start)
        == .ignored(.unauthenticated))
    let other = try peer.answer(to: peer.check(agent))
    #expect(agent.handle(other, from: victim, at: start) == .ignored(.unknownTransaction))
    // The check itself, sent back, is a request for somebody else.
    #expect(agent.handle(check, from: victim, at: start) == .ignored(.otherAgent))
    #expect(agent.selectedRemote == nil && !agent.isProven(victim, at: start))
    for length in right.indices { _ = agent.handle(Array(right[..<length]), from: victim, at: start) }
    #expect(agent.handle(right, from: victim, at: start) == .proven(isSelected: true))
    #expect(agent.selectedRemote == victim)
    #expect(ICELiteAgent.answeredTransaction(of: right.span) == (try STUNMessage.parse(check)).transactionID)
    #expect(ICELiteAgent.answeredTransaction(of: check.span) == nil)
    for length in right.indices where length < 20 {
      #expect(ICELiteAgent.answeredTransaction(of: Array(right[..<length]).span) == nil)
    }
  }

  @Test("RFC 8489 §6.2.1: a copied check is answered where the peer is, and changes nothing anywhere")
  mutating func copies() throws {
    var agent = peer.agent()
    let moved = SocketAddress(ipv4: 172, 16, 0, 9, port: 50_000)
    let recorded = peer.check(agent, nominates: true)
    _ = agent.handle(recorded, from: client, at: start)
    try peer.prove(&agent, at: client, start)
    try peer.connect(&agent, nominates: true, from: moved, at: start + .seconds(1))
    #expect(agent.selectedRemote == moved)
    let later = start + .seconds(20)
    #expect(agent.handle(recorded, from: victim, at: later) == .ignored(.replayed))
    #expect(!agent.isHeard(victim, at: later))
    // From the old address, which is proven still.
    guard case .respond = agent.handle(recorded, from: client, at: later) else {
      Issue.record("a repeated request was not answered")
      return
    }
    #expect(agent.selectedRemote == moved && agent.nextCheckAt == nil)
    #expect(agent.lastAuthenticatedCheck == start + .seconds(1))
    // Of a long call the first checks are forgotten; from elsewhere they move nothing either.
    for _ in 0..<64 { _ = agent.handle(peer.check(agent), from: moved, at: later) }
    guard case .respond = agent.handle(recorded, from: victim, at: later) else {
      Issue.record("remembered for longer than said")
      return
    }
    #expect(agent.selectedRemote == moved)
  }
}
