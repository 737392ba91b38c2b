public import PalbeBackendCore
public import PalbeUnits

/// An account.
public struct AccountRow: Hashable, Sendable {
  /// Whose it is.
  public var user: UserID
  /// Nil for one of an identity provider.
  public var email: Email?
  /// Nil for one of an identity provider.
  public var password: PasswordRecord?
  /// When it was made.
  public var createdAt: WallTime

  /// A row.
  public init(user: UserID, email: Email?, password: PasswordRecord?, createdAt: WallTime) {
    self.user = user
    self.email = email
    self.password = password
    self.createdAt = createdAt
  }
}

/// A session.
public struct SessionRow: Hashable, Sendable {
  /// A refresh token that another one has replaced.
  public struct Superseded: Hashable, Sendable {
    /// SHA-256 of it.
    public var hash: [UInt8]
    /// When it was replaced.
    public var at: WallTime
    /// Its successor's secret, which only who has the token can uncover.
    public var cover: [UInt8]

    /// A token's remains.
    public init(hash: [UInt8], at: WallTime, cover: [UInt8]) {
      self.hash = hash
      self.at = at
      self.cover = cover
    }
  }

  /// Its name.
  public var id: SessionID
  /// Whose it is.
  public var user: UserID
  /// When it began.
  public var createdAt: WallTime
  /// When it was last refreshed.
  public var lastUsedAt: WallTime
  /// When it ends without a refresh, by `AccountClock`.
  public var expiresAt: WallTime
  /// Counts refresh tokens.
  public var generation: Int64
  /// SHA-256 of the refresh token that is valid.
  public var current: [UInt8]
  /// The one before.
  public var previous: Superseded?
  /// What the client called itself.
  public var userAgent: String
  /// The device that was enrolled with it.
  public var device: DeviceID?

  /// A row.
  public init(
    id: SessionID, user: UserID, createdAt: WallTime, lastUsedAt: WallTime, expiresAt: WallTime,
    generation: Int64,
    current: [UInt8], previous: Superseded? = nil, userAgent: String, device: DeviceID? = nil
  ) {
    self.id = id
    self.user = user
    self.createdAt = createdAt
    self.lastUsedAt = lastUsedAt
    self.expiresAt = expiresAt
    self.generation = generation
    self.current = current
    self.previous = previous
    self.userAgent = userAgent
    self.device = device
  }

  /// Whether it was not used for longer than another: by its end, which no set clock has moved.
  func isOlder(than other: SessionRow) -> Bool { (expiresAt, id) < (other.expiresAt, other.id) }
}

/// How a session that is over is refused.
public struct Refusal: Hashable, Sendable {
  /// When its last access token is over anyway.
  public var until: WallTime
  /// Its device was removed by its user, which the device is told.
  public var isDeviceRevoked: Bool

  /// A refusal.
  public init(until: WallTime, isDeviceRevoked: Bool = false) {
    self.until = until
    self.isDeviceRevoked = isDeviceRevoked
  }

  /// What a request with such a token is refused with.
  public var failure: BackendFailure { isDeviceRevoked ? .deviceRevoked : .sessionExpired }
}

/// Where accounts and sessions are.
///
/// The core calls `begin`, then operations, then `commit` or `rollBack`. When `commit` returns, its changes survive a loss of
/// power; when it throws, or the process ends before it, there are none of them. Operations throw nothing but
/// `AccountFailure.unavailable`.
public protocol AccountStore {
  mutating func begin() throws(AccountFailure)
  mutating func commit() throws(AccountFailure)
  /// Never fails: a store that cannot roll back refuses everything from then on.
  mutating func rollBack()

  mutating func account(_ user: UserID) throws(AccountFailure) -> AccountRow?
  mutating func account(email: Email) throws(AccountFailure) -> AccountRow?
  mutating func account(of identity: ExternalIdentity) throws(AccountFailure) -> AccountRow?
  mutating func insert(_ account: AccountRow, of identity: ExternalIdentity?) throws(AccountFailure)
  mutating func setPassword(_ password: PasswordRecord, of user: UserID) throws(AccountFailure)

  mutating func session(_ id: SessionID) throws(AccountFailure) -> SessionRow?
  /// By id, so the oldest first.
  mutating func sessions(of user: UserID) throws(AccountFailure) -> [SessionRow]
  /// By id.
  mutating func sessions(of device: DeviceID) throws(AccountFailure) -> [SessionRow]
  /// Inserts or replaces.
  mutating func put(_ session: SessionRow) throws(AccountFailure)
  mutating func removeSession(_ id: SessionID) throws(AccountFailure)
  /// Some that end at or before a time, those that end first.
  mutating func sessions(expiredAt time: WallTime, limit: Int) throws(AccountFailure) -> [SessionID]

  /// Notes that a session's access tokens are refused.
  mutating func refuse(_ session: SessionID, _ refusal: Refusal) throws(AccountFailure)
  mutating func refusal(of session: SessionID) throws(AccountFailure) -> Refusal?
  mutating func refused() throws(AccountFailure) -> [SessionID: Refusal]
  /// Forgets those whose time was at or before this.
  mutating func dropRefused(before time: WallTime) throws(AccountFailure)
  /// The latest time of those that were ever forgotten.
  mutating func lastDropped() throws(AccountFailure) -> WallTime?
}
