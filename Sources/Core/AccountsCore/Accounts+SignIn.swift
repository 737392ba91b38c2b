public import PalbeBackendCore
public import PalbeCrypto
public import PalbeUnits
import PalbeWire

/// A password that is being checked, or that will be an account's.
public struct PasswordAttempt: Sendable {
  enum Purpose: Sendable {
    /// Nil: there is no such account, which shows only at the end.
    case check(AccountRow?)
    case create(Email)
  }

  let purpose: Purpose
  /// What to derive from the password.
  public let work: PasswordWork
  let charges: Charges

  /// What the attempt counts against until it turns out good.
  struct Charges: Sendable {
    var account: UInt64?
    var address: UInt64?
  }
}

/// Somebody who has proved who they are, and whom the delivery server must know before a session begins.
public struct AcceptedUser: Sendable {
  /// Who it is.
  public let user: UserID
  /// Made with the session.
  let newAccount: AccountRow?
  let identity: ExternalIdentity?
  /// The password's hash was made at another cost than it should: to be derived, and given to `setRehashed`.
  public let rehash: PasswordWork?
  let record: PasswordRecord?
}

/// A change of a password.
public struct PasswordChange: Sendable {
  let attempt: PasswordAttempt
  let session: SessionID
  let user: UserID
  /// What to derive from the password until now.
  public var currentWork: PasswordWork { attempt.work }
  /// What to derive from the new one.
  public let newWork: PasswordWork
}

extension Accounts {
  // MARK: With a password

  /// Somebody wants an account.
  /// - Throws: `notAllowed`, `invalidRequest`, `weakPassword`, `accountExists`, `rateLimited`.
  public mutating func beginSignUp(
    email text: String, password: Secret, from address: SocketAddress, at now: ServerTime
  ) throws(AccountFailure) -> PasswordAttempt {
    guard rules.allowsSignUp else { throw .notAllowed }
    guard let email = Email(text) else { throw .invalidRequest("email") }
    try checkRules(password.key, email)
    return try beginCreation(email, from: address, at: now, charges: .init())
  }

  /// Somebody says who they are.
  ///
  /// Whether there is such an account shows neither in the answer nor in the time: one that is not there has a salt too.
  /// - Throws: `invalidRequest`, `invalidCredentials`, `rateLimited`.
  public mutating func beginSignIn(
    email text: String, password: Secret, from address: SocketAddress, at now: ServerTime
  ) throws(AccountFailure) -> PasswordAttempt {
    guard let email = Email(text) else { throw .invalidRequest("email") }
    guard password.key.byteCount <= PasswordRules.byteLimit else { throw .invalidCredentials }
    let charges = try charge(email, address, at: now)
    let account = try transact { (accounts) throws(AccountFailure) in try accounts.store.account(email: email)
    }
    if account == nil, rules.signInCreatesAccount {
      try checkRules(password.key, email)
      return try beginCreation(email, from: address, at: now, charges: charges)
    }
    return PasswordAttempt(purpose: .check(account), work: work(account, email), charges: charges)
  }

  /// The derivation is done.
  /// - Throws: `invalidCredentials`.
  public mutating func accept(
    _ attempt: PasswordAttempt, derived: borrowing SymmetricKey, at now: ServerTime
  ) throws(AccountFailure) -> AcceptedUser {
    let hash = [UInt8](derived.span)
    switch attempt.purpose {
    case .create(let email):
      forgive(attempt.charges)
      let row = AccountRow(
        user: UserID(at: now.wall, using: &random), email: email,
        password: PasswordRecord(salt: attempt.work.salt, hash: hash, cost: attempt.work.cost),
        createdAt: now.wall)
      return AcceptedUser(user: row.user, newAccount: row, identity: nil, rehash: nil, record: row.password)
    case .check(let account):
      guard let account, let record = account.password, ConstantTime.equal(record.hash.span, hash.span) else {
        throw .invalidCredentials
      }
      forgive(attempt.charges)
      return AcceptedUser(
        user: account.user, newAccount: nil, identity: nil,
        rehash: record.cost == rules.passwordCost ? nil : freshWork(), record: record)
    }
  }

  /// The same password at the cost that it should have.
  public mutating func setRehashed(
    _ accepted: AcceptedUser, derived: borrowing SymmetricKey
  ) throws(AccountFailure) {
    guard let work = accepted.rehash else { return }
    let record = PasswordRecord(salt: work.salt, hash: [UInt8](derived.span), cost: work.cost)
    try transact { (accounts) throws(AccountFailure) in
      // Unless it was changed meanwhile.
      guard try accounts.store.account(accepted.user)?.password == accepted.record else { return }
      try accounts.store.setPassword(record, of: accepted.user)
    }
  }

  // MARK: With an identity provider

  /// Who it is whom a provider has named, perhaps for the first time. Accounts are never joined by their e-mail: a provider that
  /// does not check addresses would give them away.
  public mutating func accept(
    _ identity: ExternalIdentity, at now: ServerTime
  ) throws(AccountFailure) -> AcceptedUser {
    let known = try transact { (accounts) throws(AccountFailure) in try accounts.store.account(of: identity) }
    if let known {
      return AcceptedUser(user: known.user, newAccount: nil, identity: identity, rehash: nil, record: nil)
    }
    let row = AccountRow(
      user: UserID(at: now.wall, using: &random), email: nil, password: nil, createdAt: now.wall)
    return AcceptedUser(user: row.user, newAccount: row, identity: identity, rehash: nil, record: nil)
  }

  // MARK: The session

  /// Begins a session, and the account if it is new. The delivery server knows the user.
  /// - Parameter userAgent: what the client calls itself; its first 200 bytes are kept.
  /// - Throws: `accountExists` when somebody else was faster.
  public mutating func open(
    _ accepted: AcceptedUser, userAgent: String, at now: ServerTime
  ) throws(AccountFailure) -> SignedIn {
    let time = time(now)
    let id = SessionID(at: now.wall, using: &random)
    let token = token(id, 1, random.bytes(32))
    let agent = Self.printable(userAgent)
    let (row, isNew) = try transact { (accounts) throws(AccountFailure) -> (SessionRow, Bool) in
      var user = accepted.user
      var isNew = false
      if let account = accepted.newAccount {
        if let email = account.email, try accounts.store.account(email: email) != nil {
          throw .accountExists
        }
        if let identity = accepted.identity, let known = try accounts.store.account(of: identity) {
          // Two first sign-ins at once: one account, which the other's registration has made known.
          user = known.user
        } else {
          try accounts.store.insert(account, of: accepted.identity)
          isNew = true
        }
      }
      let others = try accounts.store.sessions(of: user).sorted { $0.isOlder(than: $1) }
      for other in others.dropLast(accounts.rules.sessionLimit - 1) { try accounts.end(other.id, at: now) }
      let row = SessionRow(
        id: id, user: user, createdAt: now.wall, lastUsedAt: now.wall,
        expiresAt: time + accounts.rules.refreshLifetime,
        generation: 1, current: token.hash, userAgent: agent)
      try accounts.store.put(row)
      return (row, isNew)
    }
    return try answer(row, token, isNew: isNew, at: now)
  }

  // MARK: Another password

  /// - Throws: `invalidCredentials` for an account without a password, `weakPassword`, `rateLimited`.
  public mutating func beginPasswordChange(
    of session: VerifiedSession, current: Secret, new: Secret, from address: SocketAddress,
    at now: ServerTime
  ) throws(AccountFailure) -> PasswordChange {
    guard current.key.byteCount <= PasswordRules.byteLimit else { throw .invalidCredentials }
    let account = try transact { (accounts) throws(AccountFailure) in try accounts.store.account(session.user)
    }
    guard let account, let email = account.email else { throw .invalidCredentials }
    try checkRules(new.key, email)
    let attempt = PasswordAttempt(
      purpose: .check(account), work: work(account, email), charges: try charge(email, address, at: now))
    return PasswordChange(
      attempt: attempt, session: session.session, user: session.user, newWork: freshWork())
  }

  /// Both derivations are done: the other sessions of the user end.
  /// - Throws: `invalidCredentials`.
  public mutating func finish(
    _ change: PasswordChange, current: borrowing SymmetricKey, new: borrowing SymmetricKey, at now: ServerTime
  ) throws(AccountFailure) {
    let accepted = try accept(change.attempt, derived: current, at: now)
    let record = PasswordRecord(
      salt: change.newWork.salt, hash: [UInt8](new.span), cost: change.newWork.cost)
    try transact { (accounts) throws(AccountFailure) in
      // Another change was faster: this one's current password is not current.
      guard try accounts.store.account(change.user)?.password == accepted.record else {
        throw .invalidCredentials
      }
      try accounts.store.setPassword(record, of: change.user)
      for session in try accounts.store.sessions(of: change.user) where session.id != change.session {
        try accounts.end(session.id, at: now)
      }
    }
  }

  // MARK: Parts

  private mutating func beginCreation(
    _ email: Email, from address: SocketAddress, at now: ServerTime, charges: PasswordAttempt.Charges
  ) throws(AccountFailure) -> PasswordAttempt {
    if rules.limitsLoopback || !address.isLoopback, !signUpLimiter.take(from: address, at: now.instant) {
      throw .rateLimited(retryAfter: .seconds(1))
    }
    let known = try transact { (accounts) throws(AccountFailure) in try accounts.store.account(email: email) }
    guard known == nil else { throw .accountExists }
    return PasswordAttempt(purpose: .create(email), work: freshWork(), charges: charges)
  }

  private func checkRules(_ password: borrowing SymmetricKey, _ email: Email) throws(AccountFailure) {
    do throws(WeakPassword) { try PasswordRules.check(password.span, for: email) } catch {
      throw .weakPassword(error)
    }
  }

  private mutating func freshWork() -> PasswordWork {
    PasswordWork(salt: random.bytes(16), cost: rules.passwordCost)
  }

  private func work(_ account: AccountRow?, _ email: Email) -> PasswordWork {
    if let record = account?.password { return PasswordWork(salt: record.salt, cost: record.cost) }
    return PasswordWork(salt: Array(key("salt", Array(email.text.utf8)).prefix(16)), cost: rules.passwordCost)
  }

  private mutating func charge(
    _ email: Email, _ address: SocketAddress, at now: ServerTime
  ) throws(AccountFailure) -> PasswordAttempt.Charges {
    var charges = PasswordAttempt.Charges()
    if rules.limitsLoopback || !address.isLoopback {
      // As `AddressRateLimiter`: an IPv6 network of 64 bits is one address.
      let bytes = [address.family.rawValue] + address.addressBytes.prefix(8)
      let place = place("address", bytes)
      if let wait = addressThrottle.charge(place, at: now.instant) { throw .rateLimited(retryAfter: wait) }
      charges.address = place
    }
    let place = place("account", Array(email.text.utf8))
    if let wait = accountThrottle.charge(place, at: now.instant) { throw .rateLimited(retryAfter: wait) }
    charges.account = place
    return charges
  }

  /// The attempt was good, or was never made.
  private mutating func forgive(_ charges: PasswordAttempt.Charges) {
    if let place = charges.account { accountThrottle.forgive(place, wholly: true) }
    if let place = charges.address { addressThrottle.forgive(place, wholly: false) }
  }

  /// The attempt was not made: there was no thread for it.
  public mutating func withdraw(_ attempt: PasswordAttempt) {
    if let place = attempt.charges.account { accountThrottle.forgive(place, wholly: false) }
    if let place = attempt.charges.address { addressThrottle.forgive(place, wholly: false) }
  }

  /// The change was not made: there was no thread for it.
  public mutating func withdraw(_ change: PasswordChange) { withdraw(change.attempt) }

  private func place(_ label: String, _ bytes: [UInt8]) -> UInt64 {
    key(label, bytes).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Without what could break out of a line.
  private static func printable(_ text: String) -> String {
    String(decoding: text.utf8.prefix(200).filter { (0x20..<0x7f).contains($0) }, as: UTF8.self)
  }
}
