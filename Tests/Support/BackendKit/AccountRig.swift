public import PalbeAccountsCore
public import PalbeBackendCore
import PalbeCrypto
public import PalbeUnits

/// Accounts over one store in virtual time, their passwords cheap, and what a shell and a client do with them.
public final class AccountRig<Store: AccountStore> {
  public var accounts: Accounts<Store>
  public private(set) var now: ServerTime
  private var random: RandomSource
  /// Where clients ask from.
  public var address = SocketAddress(ipv4: 192, 0, 2, 1, port: 1)

  /// Rules under which a password costs next to nothing.
  public static var cheap: AccountRules {
    var rules = AccountRules()
    rules.passwordCost = Scrypt.Cost(n: 2, r: 1, p: 1)!
    return rules
  }

  private static var refreshKey: SymmetricKey { SymmetricKey(copying: [UInt8](repeating: 7, count: 32)) }

  public init(
    _ store: Store, seed: UInt64 = 1, rules: AccountRules? = nil, keys: SigningKeys? = nil,
    at start: ServerTime? = nil
  ) throws(AccountFailure) {
    now =
      start
      ?? ServerTime(
        wall: WallTime(microseconds: 1_800_000_000_000_000), instant: Instant(nanoseconds: 1_000_000_000))
    random = RandomSource(seed: seed)
    let keys = keys ?? SigningKeys(at: now.wall, using: &random)
    accounts = try Accounts(
      store: store, keys: keys, refreshKey: Self.refreshKey,
      random: RandomSource(seed: seed &+ 1), rules: rules ?? Self.cheap, at: now)
  }

  /// Begins again with what the store holds.
  public func restart(seed: UInt64) throws(AccountFailure) {
    let (rules, keys) = (accounts.rules, accounts.keys)
    accounts = try Accounts(
      store: accounts.finish(), keys: keys, refreshKey: Self.refreshKey,
      random: RandomSource(seed: seed &+ 1),
      rules: rules, at: now)
  }

  // MARK: Time

  /// Lets time go by, with every timer and rotation on its instant.
  public func advance(by delta: TimeDelta) {
    let end = now.instant + delta
    while accounts.nextDeadline <= end {
      move(to: max(now.instant, accounts.nextDeadline))
      accounts.handleTimeout(at: now)
      if let keys = accounts.rotatedKeys(at: now) { accounts.adopt(keys) }
    }
    move(to: end)
  }

  private func move(to instant: Instant) {
    now.wall = now.wall + (instant - now.instant)
    now.instant = instant
  }

  /// Sets the wall clock alone.
  public func jump(by delta: TimeDelta) { now.wall = now.wall + delta }

  // MARK: What clients do

  public func signUp(
    _ email: String, _ password: String = "correct horse"
  ) throws(AccountFailure) -> SignedIn {
    let password = Secret(password)
    let attempt = try accounts.beginSignUp(email: email, password: password, from: address, at: now)
    return try finish(attempt, password)
  }

  public func signIn(
    _ email: String, _ password: String = "correct horse", agent: String = ""
  ) throws(AccountFailure) -> SignedIn {
    let password = Secret(password)
    let attempt = try accounts.beginSignIn(email: email, password: password, from: address, at: now)
    return try finish(attempt, password, agent)
  }

  public func signIn(_ identity: ExternalIdentity) throws(AccountFailure) -> SignedIn {
    try accounts.open(accounts.accept(identity, at: now), userAgent: "", at: now)
  }

  private func finish(
    _ attempt: PasswordAttempt, _ password: Secret, _ agent: String = ""
  ) throws(AccountFailure) -> SignedIn {
    let accepted = try accounts.accept(attempt, derived: derive(attempt.work, password).key, at: now)
    let answer = try accounts.open(accepted, userAgent: agent, at: now)
    if let work = accepted.rehash { try accounts.setRehashed(accepted, derived: derive(work, password).key) }
    return answer
  }

  public func changePassword(
    of session: VerifiedSession, from current: String, to new: String
  ) throws(AccountFailure) {
    let (current, new) = (Secret(current), Secret(new))
    let change = try accounts.beginPasswordChange(
      of: session, current: current, new: new, from: address, at: now)
    try accounts.finish(
      change, current: derive(change.currentWork, current).key, new: derive(change.newWork, new).key, at: now)
  }

  private func derive(_ work: PasswordWork, _ password: Secret) -> Secret {
    do throws(CryptoError) { return try password.derived(by: work) } catch { fatalError("\(error)") }
  }

  public func refresh(_ token: String) throws(AccountFailure) -> SignedIn {
    try accounts.refresh(token, at: now)
  }

  // MARK: What the server sees

  /// Who has an access token.
  public func session(_ token: String) throws(BackendFailure) -> VerifiedSession {
    let verifier = AccessTokenVerifier(keys: accounts.keys.keySet, issuer: accounts.rules.issuer)
    let session = try verifier.session(of: token, at: accounts.time(now), now.instant)
    if let refusal = accounts.refused[session.session] { throw refusal.failure }
    return session
  }

  /// What has come out since the last time.
  public func ended() -> [SessionID] {
    var ended: [SessionID] = []
    while let event = accounts.pollEvent() {
      if case .sessionsEnded(let sessions) = event { ended += sessions }
    }
    return ended
  }
}

extension Secret {
  /// The bytes of a text.
  public convenience init(_ text: String) { self.init(SymmetricKey(copying: Array(text.utf8))) }
}

/// Why a call about accounts is refused; nil when it is not.
public func accountRefusal<Result>(_ body: () throws -> Result) -> AccountFailure? {
  do { _ = try body() } catch {
    guard let failure = error as? AccountFailure else { fatalError("\(error)") }
    return failure
  }
  return nil
}
