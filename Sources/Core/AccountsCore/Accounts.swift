public import PalbeBackendCore
public import PalbeCrypto
public import PalbeUnits
import PalbeWire

/// What the shell has to do after a call.
public enum AccountEvent: Equatable, Sendable {
  /// These sessions are over: their access tokens are refused, their sockets are to be closed.
  case sessionsEnded([SessionID])
  /// The store could not do what is done without anybody asking.
  case storeFault(StoreFault)
}

/// The wall clock as it was at the start, moved on by the steady one: setting the clock changes it at the next start only.
public struct AccountClock: Sendable {
  private let start: ServerTime

  /// Both clocks when the process began.
  public init(start: ServerTime) { self.start = start }

  /// The time.
  public func time(_ instant: Instant) -> WallTime { start.wall + (instant - start.instant) }
}

/// Accounts and sessions without sockets, threads and files.
///
/// A sign-in goes in steps, because a password takes long to check and because the delivery server must know a user before the
/// answer goes out:
///
///     let attempt = try accounts.beginSignIn(email: email, password: password, from: address, at: now)
///     let derived = try password.derived(by: attempt.work)               // on another thread
///     let accepted = try accounts.accept(attempt, derived: derived.key, at: now)
///     register(accepted.user)                                                   // with the delivery server
///     let answer = try accounts.open(accepted, userAgent: agent, at: now)
///
/// Each call is a transaction of the store: what was answered is durable, what was refused left nothing. What expires does so by
/// `AccountClock`, so that setting the clock ends nothing and brings nothing back; what others read is the wall clock's: `iat`
/// and `exp` of tokens, when a session began and was used.
public struct Accounts<Store: AccountStore> {
  /// What was decided about accounts.
  public let rules: AccountRules
  /// The keys that sign access tokens.
  public private(set) var keys: SigningKeys
  /// Sessions whose access tokens are refused, though their time is not over.
  public private(set) var refused: [SessionID: Refusal]

  var store: Store
  var random: RandomSource
  var accountThrottle: AttemptThrottle
  var addressThrottle: AttemptThrottle
  var signUpLimiter: AddressRateLimiter
  /// Marks what others must not be able to compute: places in tables, and salts of accounts that are not there.
  let mark: [UInt8]
  /// Marks refresh tokens.
  private let refreshKey: Secret
  /// The time by which everything here expires.
  public let clock: AccountClock
  /// Tokens that were refused once, and are forgotten, would be valid again: the clock was set back before this start.
  private var mustReplaceKeys = false
  private var ending: [SessionID: Refusal] = [:]
  private var events: [AccountEvent] = []
  private var nextSweep: Instant

  /// Begins to serve a store.
  /// - Parameters:
  ///   - keys: what signs access tokens, durable.
  ///   - refreshKey: 32 bytes, the same at each start.
  public init(
    store: Store, keys: SigningKeys, refreshKey: consuming SymmetricKey, random: RandomSource,
    rules: AccountRules = AccountRules(), at now: ServerTime
  ) throws(AccountFailure) {
    self.store = store
    self.keys = keys
    self.refreshKey = Secret(refreshKey)
    self.random = random
    self.rules = rules
    mark = self.random.bytes(32)
    accountThrottle = AttemptThrottle(free: 5, longest: .seconds(60), memory: .seconds(3_600))
    addressThrottle = AttemptThrottle(free: 20, longest: .seconds(60), memory: .seconds(3_600))
    signUpLimiter = AddressRateLimiter(perSecond: 1, burst: 20, seed: self.random.next())
    clock = AccountClock(start: now)
    nextSweep = now.instant
    refused = [:]
    let dropped: WallTime?
    (refused, dropped) = try transact { (accounts) throws(AccountFailure) in
      (try accounts.store.refused(), try accounts.store.lastDropped())
    }
    mustReplaceKeys = dropped.map { $0 > now.wall } ?? false
  }

  /// Gives the store back, as when the server ends.
  public consuming func finish() -> Store { store }

  // MARK: Time

  /// See `AccountClock`.
  public func time(_ now: ServerTime) -> WallTime { clock.time(now.instant) }

  /// When `handleTimeout` wants to be called next.
  public var nextDeadline: Instant { nextSweep }

  /// Ends a portion of the sessions whose time is over, and forgets which tokens were refused when they are over too.
  public mutating func handleTimeout(at now: ServerTime) {
    guard nextSweep <= now.instant else { return }
    let time = time(now)
    let limit = 256
    do throws(AccountFailure) {
      let count = try transact { (accounts) throws(AccountFailure) in
        let expired = try accounts.store.sessions(expiredAt: time, limit: limit)
        for id in expired { try accounts.end(id, at: now) }
        try accounts.store.dropRefused(before: time)
        return expired.count
      }
      refused = refused.filter { $0.value.until > time }
      nextSweep = now.instant + (count == limit ? .seconds(1) : .seconds(300))
    } catch {
      if case .unavailable(let fault) = error { events.append(.storeFault(fault)) }
      nextSweep = now.instant + .seconds(60)
    }
  }

  /// What has to be done; to be asked until nil after every call that takes a time.
  public mutating func pollEvent() -> AccountEvent? { events.isEmpty ? nil : events.removeFirst() }

  /// The store was opened again, after an error that left open whether a transaction is there. Who was refused a request asks
  /// again; a session that is over all the same is refused from now on.
  public mutating func storeReopened() throws(AccountFailure) {
    let known = try transact { (accounts) throws(AccountFailure) in try accounts.store.refused() }
    let news = known.keys.filter { refused[$0] == nil }
    refused.merge(known) { $1 }
    if !news.isEmpty { events.append(.sessionsEnded(news.sorted())) }
  }

  // MARK: Signing keys

  /// The keys that should be from now on; nil when they are. The shell makes them durable, then calls `adopt`.
  public mutating func rotatedKeys(at now: ServerTime) -> SigningKeys? {
    if mustReplaceKeys { return SigningKeys(at: time(now), using: &random) }
    return keys.rotated(at: time(now), rules: rules, using: &random)
  }

  /// Signs and verifies with these from now on.
  public mutating func adopt(_ keys: SigningKeys) {
    self.keys = keys
    mustReplaceKeys = false
  }

  // MARK: Transactions

  /// Carries out `body` as a whole or not at all. Sessions that it ended are refused when that is durable, not before.
  mutating func transact<Result>(
    _ body: (inout Self) throws(AccountFailure) -> Result
  ) throws(AccountFailure) -> Result {
    ending.removeAll()
    try store.begin()
    let result: Result
    do throws(AccountFailure) {
      result = try body(&self)
      try store.commit()
    } catch {
      store.rollBack()
      ending.removeAll()
      throw error
    }
    if !ending.isEmpty {
      refused.merge(ending) { $1 }
      events.append(.sessionsEnded(ending.keys.sorted()))
      ending.removeAll()
    }
    return result
  }

  /// Ends a session, in a transaction.
  mutating func end(
    _ session: SessionID, at now: ServerTime, isDeviceRevoked: Bool = false
  ) throws(AccountFailure) {
    // As long as a token can live that was made a moment before.
    let until = time(now) + rules.accessLifetime + .seconds(60)
    let refusal = Refusal(until: until, isDeviceRevoked: isDeviceRevoked)
    try store.removeSession(session)
    try store.refuse(session, refusal)
    ending[session] = refusal
  }

  // MARK: Tokens

  func token(
    _ session: SessionID, _ generation: Int64, _ secret: [UInt8]
  ) -> RefreshToken {
    RefreshToken(session: session, generation: generation, secret: secret, key: refreshKey.key)
  }

  func isMadeHere(_ token: RefreshToken) -> Bool { token.isMade(with: refreshKey.key) }

  /// The answer with a refresh token and a fresh access token.
  func answer(
    _ row: SessionRow, _ refresh: RefreshToken, isNew: Bool, at now: ServerTime
  ) throws(AccountFailure) -> SignedIn {
    let time = time(now)
    let access = try keys.token(user: row.user, session: row.id, at: time, wall: now.wall, rules: rules)
    return SignedIn(
      user: row.user, session: row.id, accessToken: access, accessLifetime: rules.accessLifetime,
      refreshToken: refresh.text, refreshLifetime: row.expiresAt - time, isNewUser: isNew)
  }

  /// A keyed hash.
  func key(_ label: String, _ bytes: [UInt8]) -> [UInt8] {
    HMAC<SHA256>.authenticationCode(for: Array(label.utf8) + bytes, using: mark)
  }
}
