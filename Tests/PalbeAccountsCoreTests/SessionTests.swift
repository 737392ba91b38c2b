import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits
import PalbeWebTokens
import Testing

@Suite("Accounts: sessions and tokens")
struct SessionTests {
  private let rig: AccountRig<MemoryAccountStore>

  init() throws { rig = try AccountRig(MemoryAccountStore()) }

  @Test("Issue 5, 2: each refresh gives another token; the session stays as long as it is used")
  func rotation() throws {
    var current = try rig.signUp("anna@example.org")
    let first = current
    var seen: Set<String> = [current.refreshToken]
    for _ in 0..<20 {
      rig.advance(by: .seconds(59 * 86_400))
      // Over, and perhaps its key too.
      #expect(throws: BackendFailure.self) { try rig.session(current.accessToken) }
      current = try rig.refresh(current.refreshToken)
      #expect(seen.insert(current.refreshToken).inserted)
      #expect(current.session == first.session && current.user == first.user && !current.isNewUser)
      #expect(try rig.session(current.accessToken).session == first.session)
    }
    rig.advance(by: .seconds(60 * 86_400))
    #expect(accountRefusal { try rig.refresh(current.refreshToken) } == .sessionExpired)
  }

  @Test("Theft: a token used again after its successor was used ends the session, whoever comes first")
  func theft() throws {
    let other = try rig.signUp("ben@example.org")
    let stolen = try rig.signUp("anna@example.org")
    let second = try rig.refresh(stolen.refreshToken)
    let third = try rig.refresh(second.refreshToken)
    _ = rig.ended()
    #expect(accountRefusal { try rig.refresh(stolen.refreshToken) } == .refreshTokenReused)
    #expect(rig.ended() == [stolen.session])
    for token in [stolen, second, third] {
      #expect(accountRefusal { try rig.refresh(token.refreshToken) } == .sessionExpired)
      #expect(throws: BackendFailure.sessionExpired) { try rig.session(token.accessToken) }
    }
    #expect(try rig.session(other.accessToken).user == other.user)
  }

  @Test("Theft: the token before the current one, more than 30 s later")
  func lateTheft() throws {
    let first = try rig.signUp("anna@example.org")
    let second = try rig.refresh(first.refreshToken)
    rig.advance(by: .milliseconds(30_001))
    #expect(accountRefusal { try rig.refresh(first.refreshToken) } == .refreshTokenReused)
    #expect(accountRefusal { try rig.refresh(second.refreshToken) } == .sessionExpired)
  }

  @Test("A lost answer, and two that refresh at once: the same successor for 30 s, with which both go on")
  func lostAnswer() throws {
    let first = try rig.signUp("anna@example.org")
    let lost = try rig.refresh(first.refreshToken)
    rig.advance(by: .seconds(29))
    let again = try rig.refresh(first.refreshToken)
    #expect(again.refreshToken == lost.refreshToken && again.session == lost.session)
    #expect(try rig.session(again.accessToken).user == first.user)
    rig.advance(by: .seconds(1))
    #expect(try rig.refresh(first.refreshToken).refreshToken == lost.refreshToken)
    let next = try rig.refresh(lost.refreshToken)
    #expect(next.refreshToken != lost.refreshToken)
    // The successor was used.
    #expect(accountRefusal { try rig.refresh(first.refreshToken) } == .refreshTokenReused)
  }

  @Test("What somebody made up ends nothing, not even with the session's name")
  func forged() throws {
    let current = try rig.refresh(try rig.signUp("anna@example.org").refreshToken)
    let text = current.refreshToken
    for index in text.indices {
      var forged = text
      forged.replaceSubrange(index...index, with: text[index] == "A" ? "B" : "A")
      #expect(accountRefusal { try rig.refresh(forged) } == .sessionExpired)
    }
    for count in 0..<text.utf8.count {
      #expect(accountRefusal { try rig.refresh(String(text.prefix(count))) } == .sessionExpired)
    }
    for forged in ["", text + "A", text + text, String(repeating: "A", count: 96)] {
      #expect(accountRefusal { try rig.refresh(forged) } == .sessionExpired)
    }
    #expect(throws: Never.self) { try rig.refresh(text) }
  }

  @Test("Issue 5, 2: sessions are listed, newest use first, and ended by their user only")
  func ending() throws {
    let first = try rig.signUp("anna@example.org")
    let second = try rig.signIn("anna@example.org")
    let ben = try rig.signUp("ben@example.org")
    rig.advance(by: .seconds(5))
    _ = try rig.refresh(first.refreshToken)
    let session = try rig.session(first.accessToken)
    #expect(
      try rig.accounts.sessions(of: session, at: rig.now).map(\.id) == [first.session, second.session])
    #expect(
      accountRefusal { try rig.accounts.endSession(first.session, of: ben.user, at: rig.now) }
        == .sessionNotFound)
    try rig.accounts.endSession(second.session, of: first.user, at: rig.now)
    #expect(rig.ended() == [second.session])
    #expect(throws: BackendFailure.sessionExpired) { try rig.session(second.accessToken) }
    #expect(
      accountRefusal { try rig.accounts.endSession(second.session, of: first.user, at: rig.now) }
        == .sessionNotFound)
    #expect(try rig.accounts.sessions(of: session, at: rig.now).map(\.id) == [first.session])
  }

  @Test("A device's sessions end with it")
  func device() throws {
    let first = try rig.signUp("anna@example.org")
    let second = try rig.signIn("anna@example.org")
    var random = RandomSource(seed: 9)
    let device = DeviceID(at: rig.now.wall, using: &random)
    try rig.accounts.setDevice(device, of: second.session)
    let session = try rig.session(first.accessToken)
    #expect(
      try rig.accounts.sessions(of: session, at: rig.now).first { $0.id == second.session }?.device == device)
    // A refresh keeps it.
    _ = try rig.refresh(second.refreshToken)
    try rig.accounts.endSessions(of: device, at: rig.now)
    #expect(rig.ended() == [second.session])
    #expect(throws: BackendFailure.deviceRevoked) { try rig.session(second.accessToken) }
    #expect(accountRefusal { try rig.refresh(second.refreshToken) } == .deviceRevoked)
    try rig.accounts.endSessions(of: first.user, at: rig.now)
    #expect(rig.ended() == [first.session])
  }

  @Test("A user has at most 64 sessions: a further one ends the one that was not used for longest")
  func limit() throws {
    var all = [try rig.signUp("anna@example.org")]
    for _ in 1..<64 {
      rig.advance(by: .seconds(1))
      all.append(try rig.signIn("anna@example.org"))
    }
    #expect(rig.ended().isEmpty)
    _ = try rig.refresh(all[0].refreshToken)
    rig.advance(by: .seconds(1))
    _ = try rig.signIn("anna@example.org")
    #expect(rig.ended() == [all[1].session])
  }

  @Test(
    "Sessions whose time is over are swept, in portions, and what was refused is forgotten when it is over anyway"
  )
  func sweep() throws {
    for index in 0..<300 { _ = try rig.signIn(ExternalIdentity(issuer: "i", subject: "\(index)")) }
    rig.advance(by: .seconds(60 * 86_400 - 400))
    #expect(rig.ended().isEmpty)
    rig.advance(by: .seconds(800))
    #expect(rig.ended().count == 300 && rig.accounts.refused.count == 300)
    rig.advance(by: .seconds(1_000))
    #expect(rig.accounts.refused.isEmpty)
  }

  // MARK: Clocks

  @Test("Issue 5: a clock that is set forward ends nothing, and one that is set back brings nothing back")
  func clockJumps() throws {
    let first = try rig.signUp("anna@example.org")
    let second = try rig.signIn("anna@example.org")
    rig.jump(by: .seconds(400 * 86_400))
    rig.advance(by: .seconds(599))
    #expect(try rig.session(first.accessToken).user == first.user)
    let third = try rig.refresh(first.refreshToken)
    #expect(third.refreshLifetime == .seconds(60 * 86_400))
    #expect(try rig.refresh(first.refreshToken).refreshToken == third.refreshToken)
    rig.advance(by: .seconds(2))
    #expect(throws: BackendFailure.sessionExpired) { try rig.session(first.accessToken) }
    // A token made while the clock ran ahead lives no longer, and is refused as long as it lives.
    try rig.accounts.endSession(third.session, of: third.user, at: rig.now)
    for _ in 0..<20 {
      #expect(throws: BackendFailure.sessionExpired) { try rig.session(third.accessToken) }
      rig.advance(by: .seconds(60))
    }
    rig.jump(by: .seconds(-500 * 86_400))
    for token in [first, third] {
      #expect(throws: BackendFailure.sessionExpired) { try rig.session(token.accessToken) }
    }
    #expect(throws: Never.self) { try rig.refresh(second.refreshToken) }
  }

  @Test("Bug: after the wall clock was put right, tokens and sessions had its old time until the next start")
  func clockPutRight() throws {
    func claims(_ answer: SignedIn) throws -> TokenClaims {
      try rig.accounts.keys.keySet.claims(of: SignedToken(answer.accessToken), allowing: [.edDSA])
    }
    _ = try rig.signUp("anna@example.org")
    for step in [86_400, -2 * 86_400, 700 * 86_400] {
      var answer = try rig.signIn("anna@example.org")
      let before = answer
      rig.jump(by: .seconds(step))
      // What others read follows at once.
      for isRefreshed in [false, true] {
        answer = try isRefreshed ? rig.refresh(answer.refreshToken) : rig.signIn("anna@example.org")
        let (claims, now) = (try claims(answer), rig.now.wall.seconds)
        #expect(claims.issuedAt == now && claims.expiry == now + 600, "\(step)")
        let session = try rig.session(answer.accessToken)
        #expect(session.expiresAt.seconds == now + 600 && session.deadline == rig.now.instant + .seconds(600))
        let views = try rig.accounts.sessions(of: session, at: rig.now)
        #expect(views.first { $0.isCurrent }?.lastUsedAt == rig.now.wall)
        #expect(answer.refreshLifetime == .seconds(60 * 86_400))
      }
      // The one from before lives as long as it was to, and the last one used stands first.
      let session = try rig.session(before.accessToken)
      #expect(session.deadline == rig.now.instant + .seconds(600))
      rig.advance(by: .seconds(1))
      let next = try rig.refresh(before.refreshToken)
      let views = try rig.accounts.sessions(of: rig.session(next.accessToken), at: rig.now)
      #expect(views.first?.id == before.session)
      rig.advance(by: .seconds(601))
      for over in [before, answer, next] {
        #expect(throws: BackendFailure.sessionExpired) { try rig.session(over.accessToken) }
      }
    }
  }

  @Test("A clock that is set back before a start: no token that was refused and forgotten is valid again")
  func setBack() throws {
    func isRotating() -> Bool { rig.accounts.rotatedKeys(at: rig.now) != nil }
    let ended = try rig.signUp("anna@example.org")
    let other = try rig.signIn("anna@example.org")
    try rig.accounts.endSession(ended.session, of: ended.user, at: rig.now)
    rig.advance(by: .seconds(1_200))
    #expect(rig.accounts.refused.isEmpty)
    try rig.restart(seed: 2)
    #expect(!isRotating())
    rig.jump(by: .seconds(-1_100))
    try rig.restart(seed: 3)
    // It would be.
    #expect(throws: Never.self) { try rig.session(ended.accessToken) }
    let keys = rig.accounts.rotatedKeys(at: rig.now)
    rig.accounts.adopt(try #require(keys))
    #expect(throws: BackendFailure.notSignedIn) { try rig.session(ended.accessToken) }
    let next = try rig.refresh(other.refreshToken)
    #expect(try rig.session(next.accessToken).session == other.session)
    #expect(!isRotating())
  }

  @Test("The deadline of a session is its expiry by the steady clock")
  func deadline() throws {
    let answer = try rig.signUp("anna@example.org")
    rig.advance(by: .seconds(100))
    let session = try rig.session(answer.accessToken)
    #expect(session.deadline - rig.now.instant == .seconds(500))
    #expect(session.expiresAt == rig.now.wall + .seconds(500))
  }

  // MARK: Signing keys

  @Test(
    "API: a new key is published for an hour before it signs, the old one verifies until its last token is over"
  )
  func keys() throws {
    let lifetime = TimeDelta.seconds(30 * 86_400)
    var current = try rig.signUp("anna@example.org")
    let first = rig.accounts.keys.keySet
    #expect(first.keys.count == 1)
    rig.advance(by: lifetime)
    let two = rig.accounts.keys.keySet
    #expect(two.keys.count == 2 && two.keys[0] == first.keys[0])
    func signer(_ token: String) throws -> String? {
      try rig.accounts.keys.keySet.keys.first { $0.isSigner(of: try .init(token)) }?.id
    }
    current = try rig.refresh(current.refreshToken)
    #expect(try signer(current.accessToken) == first.keys[0].id)
    rig.advance(by: .seconds(3_600))
    let old = current
    current = try rig.refresh(current.refreshToken)
    #expect(try signer(current.accessToken) == two.keys[1].id)
    rig.advance(by: .seconds(100))
    #expect(rig.accounts.keys.keySet == two)
    #expect(throws: BackendFailure.sessionExpired) { try rig.session(old.accessToken) }
    rig.advance(by: .seconds(1_000))
    #expect(rig.accounts.keys.keySet.keys == [two.keys[1]])
    #expect(throws: BackendFailure.notSignedIn) { try rig.session(old.accessToken) }
    rig.advance(by: .seconds(40 * 30 * 86_400))
    #expect(rig.accounts.keys.keySet.keys.count <= 2)
  }

  @Test("Tokens of other keys, issuers and kinds are refused")
  func foreign() throws {
    let token = try rig.signUp("anna@example.org").accessToken
    let stranger = try AccountRig(MemoryAccountStore(), seed: 77)
    #expect(throws: BackendFailure.notSignedIn) { try stranger.session(token) }
    let other = AccessTokenVerifier(keys: rig.accounts.keys.keySet, issuer: "other")
    #expect(throws: BackendFailure.notSignedIn) {
      try other.session(of: token, at: rig.now.wall, rig.now.instant)
    }
    for count in 0..<token.utf8.count {
      #expect(throws: BackendFailure.notSignedIn) { try rig.session(String(token.prefix(count))) }
    }
  }

  // MARK: Faults

  @Test("A store that fails: a typed error, nothing of it there, nothing refused that was not ended")
  func storeFault() throws {
    let store = MemoryAccountStore()
    let rig = try AccountRig(store)
    let answer = try rig.signUp("anna@example.org")
    store.faults.commit = .full
    #expect(accountRefusal { try rig.refresh(answer.refreshToken) } == .unavailable(.full))
    #expect(accountRefusal { try rig.signUp("ben@example.org") } == .unavailable(.full))
    #expect(
      accountRefusal { try rig.accounts.endSession(answer.session, of: answer.user, at: rig.now) }
        == .unavailable(.full))
    #expect(rig.accounts.refused.isEmpty && rig.ended().isEmpty)
    #expect(try rig.session(answer.accessToken).user == answer.user)
    rig.advance(by: .seconds(600))
    store.faults.commit = nil
    #expect(throws: Never.self) { try rig.refresh(answer.refreshToken) }
    #expect(throws: Never.self) { try rig.signUp("ben@example.org") }
  }
}
