import PalbeBackendCore
public import PalbeCrypto
public import PalbeUnits

/// Sessions.
public enum SessionKind: IdentifierKind {
  public static let prefix = "ses"
}
/// `ses_…`: what begins with a sign-in and lives on by its refresh tokens.
public typealias SessionID = Identifier<SessionKind>

/// What a server decides about its accounts.
public struct AccountRules: Sendable {
  /// `iss` of access tokens.
  public var issuer = "palbe"
  /// How long an access token is valid.
  public var accessLifetime = TimeDelta.seconds(600)
  /// How long a session lives without a refresh.
  public var refreshLifetime = TimeDelta.days(60)
  /// How long the token before the current one is answered with the current one, for who did not get the answer.
  public var lostAnswerTime = TimeDelta.seconds(30)
  /// Sessions of one user; a further one ends the one that was not used for longest.
  public var sessionLimit = 64
  /// What a password costs: 32 MiB.
  public var passwordCost = Scrypt.Cost(n: 1 << 15, r: 8, p: 1)!
  /// Whether anybody may sign up.
  public var allowsSignUp = true
  /// Whether a first sign-in makes the account, for development.
  public var signInCreatesAccount = false
  /// How often another key signs access tokens.
  public var keyLifetime = TimeDelta.days(30)
  /// How long a new key is published before it signs, for who keeps a copy of the key set.
  public var keyLead = TimeDelta.seconds(3_600)
  /// Whether limits by address hold for this machine too, behind whose proxy may be the whole world.
  public var limitsLoopback = false

  /// The rules above.
  public init() {}
}

/// What an account's password is compared with.
public struct PasswordRecord: Hashable, Sendable {
  /// 16 random bytes.
  public var salt: [UInt8]
  /// 32 bytes.
  public var hash: [UInt8]
  /// How the hash was made.
  public var cost: Scrypt.Cost

  /// A record.
  public init(salt: [UInt8], hash: [UInt8], cost: Scrypt.Cost) {
    self.salt = salt
    self.hash = hash
    self.cost = cost
  }
}

/// A derivation that the shell does on another thread: `Scrypt.derive` of the password with these, 32 bytes.
public struct PasswordWork: Hashable, Sendable {
  /// The salt.
  public let salt: [UInt8]
  /// What it costs.
  public let cost: Scrypt.Cost

  /// Bytes of the result.
  public static let byteCount = 32

  /// Does it.
  func derive(from password: borrowing SymmetricKey) throws(CryptoError) -> SymmetricKey {
    try Scrypt.derive(
      password: password.span, salt: salt.span, cost: cost, outputByteCount: Self.byteCount)
  }
}

/// Somebody as an identity provider knows them.
public struct ExternalIdentity: Hashable, Sendable {
  /// The provider.
  public var issuer: String
  /// The provider's name of the user, which never changes.
  public var subject: String

  /// An identity.
  public init(issuer: String, subject: String) {
    self.issuer = issuer
    self.subject = subject
  }
}

/// What a sign-in and a refresh are answered with.
public struct SignedIn: Hashable, Sendable {
  /// Who it is.
  public var user: UserID
  /// The session.
  public var session: SessionID
  /// The access token, a JSON web token.
  public var accessToken: String
  /// How long it is valid.
  public var accessLifetime: TimeDelta
  /// With which the next access token is had.
  public var refreshToken: String
  /// How long that is valid.
  public var refreshLifetime: TimeDelta
  /// Whether the account was made by this.
  public var isNewUser: Bool
}

/// A session as its user sees it.
public struct SessionView: Hashable, Sendable {
  /// Its name.
  public var id: SessionID
  /// When it began.
  public var createdAt: WallTime
  /// When it was last refreshed.
  public var lastUsedAt: WallTime
  /// The device that was enrolled with it.
  public var device: DeviceID?
  /// What the client called itself at sign-in; empty when it did not.
  public var userAgent: String
  /// Whether it is the one that asks.
  public var isCurrent: Bool
}

/// Who asks, proved by an access token.
public struct VerifiedSession: Hashable, Sendable {
  /// The user.
  public var user: UserID
  /// The session.
  public var session: SessionID
  /// When the access token ends, by the server's wall clock.
  public var expiresAt: WallTime
  /// The same by the steady clock.
  public var deadline: Instant

  /// For tests of who takes one.
  public init(user: UserID, session: SessionID, expiresAt: WallTime, deadline: Instant) {
    self.user = user
    self.session = session
    self.expiresAt = expiresAt
    self.deadline = deadline
  }
}
