import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendKit
import PalbeCrypto
import PalbeUnits
import Testing

@Suite("Accounts: sign-up and sign-in")
struct SignInTests {
  private let rig: AccountRig<MemoryAccountStore>

  init() throws { rig = try AccountRig(MemoryAccountStore()) }

  @Test(
    "Issue 5, 2: signing up gives a session; signing in another one of the same user, however the e-mail is written"
  )
  func signUp() throws {
    let first = try rig.signUp("Anna@Example.org")
    #expect(first.isNewUser && first.accessLifetime == .seconds(600))
    #expect(first.refreshLifetime == .seconds(60 * 86_400))
    let second = try rig.signIn("anna@example.ORG", agent: "Palbe/1\u{7} iOS")
    #expect(second.user == first.user && second.session != first.session && !second.isNewUser)
    #expect(try rig.session(first.accessToken).user == first.user)
    #expect(try rig.session(second.accessToken).session == second.session)
    #expect(accountRefusal { try rig.signUp("anna@example.org") } == .accountExists)
    #expect(accountRefusal { try rig.signUp("anna") } == .invalidRequest("email"))
    #expect(accountRefusal { try rig.signUp("ben@example.org", "12345678") } == .weakPassword(.guessable))
    let sessions = try rig.accounts.sessions(of: try rig.session(first.accessToken), at: rig.now)
    #expect(Set(sessions.map(\.id)) == [first.session, second.session])
    #expect(sessions.filter(\.isCurrent).map(\.id) == [first.session])
    #expect(sessions.first { $0.id == second.session }?.userAgent == "Palbe/1 iOS")
  }

  @Test("An e-mail that is not there and a wrong password: the same answer, and the same work before it")
  func unknown() throws {
    _ = try rig.signUp("anna@example.org")
    let password = Secret("wrong horse")
    var works: [PasswordWork] = []
    for email in ["anna@example.org", "ben@example.org", "ben@example.org"] {
      let attempt = try rig.accounts.beginSignIn(
        email: email, password: password, from: rig.address, at: rig.now)
      works.append(attempt.work)
      let derived = try password.derived(by: attempt.work)
      var refusal: AccountFailure?
      do throws(AccountFailure) {
        _ = try rig.accounts.accept(attempt, derived: derived.key, at: rig.now)
      } catch {
        refusal = error
      }
      #expect(refusal == .invalidCredentials)
    }
    #expect(works.allSatisfy { $0.cost == works[0].cost && $0.salt.count == 16 })
    // Who asks twice finds the same salt, as for an account.
    #expect(works[1] == works[2] && works[0] != works[1])
  }

  @Test("An account of an identity provider has no password: signing in with one is refused like any other")
  func external() throws {
    let identity = ExternalIdentity(issuer: "https://id.example", subject: "anna")
    let first = try rig.signIn(identity)
    let again = try rig.signIn(identity)
    #expect(first.isNewUser && !again.isNewUser && first.user == again.user)
    let other = try rig.signIn(ExternalIdentity(issuer: "https://other.example", subject: "anna"))
    #expect(other.user != first.user)
    let session = try rig.session(first.accessToken)
    #expect(
      accountRefusal { try rig.changePassword(of: session, from: "a", to: "correct horse") }
        == .invalidCredentials)
  }

  @Test("Two first sign-ins of one person at once make one account")
  func race() throws {
    let identity = ExternalIdentity(issuer: "i", subject: "s")
    let one = try rig.accounts.accept(identity, at: rig.now)
    let two = try rig.accounts.accept(identity, at: rig.now)
    let first = try rig.accounts.open(one, userAgent: "", at: rig.now)
    let second = try rig.accounts.open(two, userAgent: "", at: rig.now)
    #expect(first.user == second.user && first.isNewUser && !second.isNewUser)
    let password = Secret("correct horse")
    let attempts = try (0..<2).map { _ in
      try rig.accounts.beginSignUp(email: "a@b", password: password, from: rig.address, at: rig.now)
    }
    let accepted = try attempts.map { attempt in
      try rig.accounts.accept(attempt, derived: password.derived(by: attempt.work).key, at: rig.now)
    }
    _ = try rig.accounts.open(accepted[0], userAgent: "", at: rig.now)
    #expect(
      accountRefusal { try rig.accounts.open(accepted[1], userAgent: "", at: rig.now) } == .accountExists)
  }

  @Test(
    "--dev: the first sign-in makes the account, later ones need its password; a server may let nobody sign up"
  )
  func development() throws {
    var rules = AccountRig<MemoryAccountStore>.cheap
    rules.signInCreatesAccount = true
    rules.allowsSignUp = false
    let rig = try AccountRig(MemoryAccountStore(), rules: rules)
    #expect(accountRefusal { try rig.signUp("anna@example.org") } == .notAllowed)
    #expect(try rig.signIn("anna@example.org").isNewUser)
    #expect(try !rig.signIn("anna@example.org").isNewUser)
    #expect(accountRefusal { try rig.signIn("anna@example.org", "wrong horse") } == .invalidCredentials)
    #expect(accountRefusal { try rig.signIn("ben@example.org", "short") } == .weakPassword(.tooShort))
  }

  @Test("A password is hashed anew at sign-in when it should cost something else")
  func rehash() throws {
    let first = try AccountRig(MemoryAccountStore())
    let user = try first.signUp("anna@example.org").user
    var rules = AccountRig<MemoryAccountStore>.cheap
    rules.passwordCost = Scrypt.Cost(n: 4, r: 1, p: 1)!
    let rig = try AccountRig(first.accounts.finish(), rules: rules)
    #expect(try rig.signIn("anna@example.org").user == user)
    let password = Secret("correct horse")
    let attempt = try rig.accounts.beginSignIn(
      email: "anna@example.org", password: password, from: rig.address, at: rig.now)
    #expect(attempt.work.cost == rules.passwordCost)
    #expect(try rig.signIn("anna@example.org").user == user)
    #expect(accountRefusal { try rig.signIn("anna@example.org", "wrong horse") } == .invalidCredentials)
  }

  @Test("Issue 5, 2: a change of the password needs the current one and ends the other sessions")
  func changePassword() throws {
    let first = try rig.signUp("anna@example.org")
    let second = try rig.signIn("anna@example.org")
    let session = try rig.session(first.accessToken)
    _ = rig.ended()
    #expect(
      accountRefusal { try rig.changePassword(of: session, from: "wrong horse", to: "battery staple") }
        == .invalidCredentials)
    #expect(
      accountRefusal { try rig.changePassword(of: session, from: "correct horse", to: "anna@example.org") }
        == .weakPassword(.isEmail))
    try rig.changePassword(of: session, from: "correct horse", to: "battery staple")
    #expect(rig.ended() == [second.session])
    #expect(throws: BackendFailure.sessionExpired) { try rig.session(second.accessToken) }
    #expect(accountRefusal { try rig.refresh(second.refreshToken) } == .sessionExpired)
    #expect(try rig.session(first.accessToken) == session)
    _ = try rig.refresh(first.refreshToken)
    #expect(accountRefusal { try rig.signIn("anna@example.org") } == .invalidCredentials)
    #expect(try rig.signIn("anna@example.org", "battery staple").user == first.user)
  }

  // MARK: Rates

  @Test(
    "Failed sign-ins to one account: five are free, then each doubles the wait, up to a minute; a good one forgives"
  )
  func accountRate() throws {
    _ = try rig.signUp("anna@example.org")
    var host: UInt8 = 1
    func attempt(_ password: String) -> AccountFailure? {
      // From everywhere.
      rig.address = SocketAddress(ipv4: 198, 51, 100, host, port: 1)
      host = host &+ 1
      return accountRefusal { try rig.signIn("anna@example.org", password) }
    }
    for _ in 0..<4 { #expect(attempt("wrong horse") == .invalidCredentials) }
    #expect(attempt("correct horse") == nil)
    for _ in 0..<6 { #expect(attempt("wrong horse") == .invalidCredentials) }
    var wait = 1
    for _ in 0..<9 {
      // Not even with the right password.
      #expect(attempt("correct horse") == .rateLimited(retryAfter: .seconds(wait)))
      rig.advance(by: .seconds(wait))
      #expect(attempt("wrong horse") == .invalidCredentials)
      wait = min(wait * 2, 60)
    }
    rig.advance(by: .seconds(60))
    #expect(attempt("correct horse") == nil && attempt("correct horse") == nil)
    // One that does not exist is no different.
    for index in 0..<7 {
      let refusal = accountRefusal { try rig.signIn("nobody@example.org", "wrong horse") }
      #expect(refusal == (index < 6 ? .invalidCredentials : .rateLimited(retryAfter: .seconds(1))))
    }
  }

  @Test("Failed sign-ins from one address or IPv6 network are limited, and good ones do not count")
  func addressRate() throws {
    _ = try rig.signUp("anna@example.org")
    func spray(_ count: Int, _ address: (Int) -> SocketAddress) -> [AccountFailure?] {
      (0..<count).map { index in
        rig.address = address(index)
        return accountRefusal { try rig.signIn("user\(index)@example.org", "wrong horse") }
      }
    }
    let network: (Int) -> SocketAddress = {
      SocketAddress(ipv6High: 0x2001_0db8_0000_0001, low: UInt64($0), port: 1)
    }
    for _ in 0..<50 {
      rig.address = network(0)
      #expect(throws: Never.self) { try rig.signIn("anna@example.org") }
    }
    let refusals = spray(22, network)
    #expect(refusals[..<21].allSatisfy { $0 == .invalidCredentials })
    #expect(refusals[21] == .rateLimited(retryAfter: .seconds(1)))
    rig.address = SocketAddress(ipv6High: 0x2001_0db8_0000_0002, low: 0, port: 1)
    #expect(throws: Never.self) { try rig.signIn("anna@example.org") }
    let local = spray(100) { _ in SocketAddress(ipv4: 127, 0, 0, 1, port: 1) }
    #expect(local.allSatisfy { $0 == .invalidCredentials })
  }

  @Test(
    "A thousand attempts at once are not a thousand free ones; those for which there was no thread do not count"
  )
  func burst() throws {
    _ = try rig.signUp("anna@example.org")
    let password = Secret("wrong horse")
    var attempts: [PasswordAttempt] = []
    for _ in 0..<1_000 {
      if let attempt = try? rig.accounts.beginSignIn(
        email: "anna@example.org", password: password, from: rig.address, at: rig.now)
      {
        attempts.append(attempt)
      }
    }
    #expect(attempts.count == 6)
    for attempt in attempts { rig.accounts.withdraw(attempt) }
    #expect(throws: Never.self) { try rig.signIn("anna@example.org") }
  }

  @Test("The table of failures never grows, and who waits stays waiting whoever else comes")
  func table() throws {
    _ = try rig.signUp("anna@example.org")
    for _ in 0..<9 {
      rig.advance(by: .seconds(10))
      _ = accountRefusal { try rig.signIn("anna@example.org", "wrong horse") }
    }
    for index in 0..<60_000 {
      rig.address = SocketAddress(
        ipv4: 10, UInt8(truncatingIfNeeded: index >> 12), UInt8(truncatingIfNeeded: index >> 4), 1, port: 1)
      let password = Secret("wrong horse")
      _ = try? rig.accounts.beginSignIn(
        email: "u\(index)@example.org", password: password, from: rig.address, at: rig.now)
    }
    rig.address = SocketAddress(ipv4: 203, 0, 113, 1, port: 1)
    let refusal = accountRefusal { try rig.signIn("anna@example.org") }
    guard case .rateLimited = refusal else {
      Issue.record("\(String(describing: refusal))")
      return
    }
  }
}
