public import PalbeBackendCore
public import PalbeCrypto
public import PalbeUnits
public import PalbeWebTokens
import PalbeWire

/// The keys that sign access tokens, oldest first.
///
/// A new key is published for `keyLead` before it signs; an old one is published until the last token that it signed is over.
///
///     created            + keyLead                 the next one's start + token lifetime
///        |-- published ------|-- signs ---- … ----|-- verifies ----|  gone
public struct SigningKeys: Sendable {
  /// One of them.
  final class Key: Sendable {
    let id: String
    let createdAt: WallTime
    let key: Curve25519.Signing.PrivateKey

    init(_ key: consuming Curve25519.Signing.PrivateKey, createdAt: WallTime) {
      id = Base64.encode(
        Array(SHA256.hash(key.publicKey.rawRepresentation).prefix(9)), alphabet: .url, padded: false)
      self.createdAt = createdAt
      self.key = key
    }
  }

  private(set) var keys: [Key]

  /// More than this are never there.
  private static let keyLimit = 16
  /// How much longer than its tokens an old key is kept.
  private static let margin = TimeDelta.seconds(120)

  /// A first key, which signs at once.
  public init(at time: WallTime, using random: inout RandomSource) {
    keys = [Key(Curve25519.Signing.PrivateKey(using: &random), createdAt: time)]
  }

  // MARK: Rotation

  /// When key `index` begins to sign; the first one always did.
  private func start(_ index: Int, _ rules: AccountRules) -> WallTime {
    index == 0 ? WallTime(microseconds: .min) : keys[index].createdAt + rules.keyLead
  }

  private func signer(at time: WallTime, _ rules: AccountRules) -> Key {
    let index = keys.indices.last { start($0, rules) <= time } ?? 0
    return keys[index]
  }

  /// What the keys should be from now on; nil when they are. It must be durable before it signs.
  public func rotated(at time: WallTime, rules: AccountRules, using random: inout RandomSource)
    -> SigningKeys?
  {
    var next = self
    let gone =
      keys.indices.dropFirst().last {
        start($0, rules) + rules.accessLifetime + Self.margin <= time
      } ?? 0
    next.keys.removeFirst(gone)
    if let newest = keys.last, newest.createdAt + rules.keyLifetime <= time, next.keys.count < Self.keyLimit {
      next.keys.append(Key(Curve25519.Signing.PrivateKey(using: &random), createdAt: time))
    }
    return gone > 0 || next.keys.count > keys.count ? next : nil
  }

  // MARK: Tokens

  /// What others verify with.
  public var keySet: KeySet {
    KeySet(
      keys.map { VerificationKey(id: $0.id, material: .ed25519($0.key.publicKey), algorithm: .edDSA) })
  }

  /// An access token.
  /// - Parameters:
  ///   - time: the time by which things expire here, which nobody can set.
  ///   - wall: the wall clock, by which others verify it.
  func token(
    user: UserID, session: SessionID, at time: WallTime, wall: WallTime, rules: AccountRules
  ) throws(AccountFailure) -> String {
    var claims = TokenClaims()
    claims.issuer = rules.issuer
    claims.subject = user.text
    claims.sessionID = session.text
    claims.issuedAt = wall.seconds
    claims.expiry = (wall + rules.accessLifetime).seconds
    claims.ownExpiry = (time + rules.accessLifetime).seconds
    let signer = signer(at: time, rules)
    do throws(CryptoError) {
      return try SignedToken.text(.edDSA, keyID: signer.id, claims: claims.json) { span throws(CryptoError) in
        try signer.key.signature(for: span)
      }
    } catch {
      throw .unavailable(.failed)
    }
  }

  // MARK: As bytes

  private static let magic = Array("PALBESK1".utf8)

  /// All keys, for a file: magic, then creation time and seed of each.
  public var serialized: SymmetricKey {
    SymmetricKey(byteCount: Self.magic.count + keys.count * 40) { output in
      for byte in Self.magic { output.append(byte) }
      for key in keys {
        for shift in stride(from: Int64(56), through: 0, by: -8) {
          output.append(UInt8(truncatingIfNeeded: key.createdAt.microseconds >> shift))
        }
        let seed = key.key.rawRepresentation
        for index in seed.span.indices { output.append(seed.span[index]) }
      }
    }
  }

  /// From such bytes; nil for any other.
  public init?(serialized bytes: Span<UInt8>) {
    let head = Self.magic.count
    guard bytes.count > head, (bytes.count - head).isMultiple(of: 40),
      (bytes.count - head) / 40 <= Self.keyLimit
    else { return nil }
    for index in 0..<head where bytes[index] != Self.magic[index] { return nil }
    keys = []
    for place in stride(from: head, to: bytes.count, by: 40) {
      var time: UInt64 = 0
      for index in place..<place + 8 { time = time << 8 | UInt64(bytes[index]) }
      guard
        let key = try? Curve25519.Signing.PrivateKey(
          rawRepresentation: bytes.extracting(place + 8..<place + 40))
      else { return nil }
      keys.append(Key(key, createdAt: WallTime(microseconds: Int64(bitPattern: time))))
    }
  }
}

/// Verifies access tokens: a value that any thread may have a copy of.
public struct AccessTokenVerifier: Sendable {
  private let keys: KeySet
  private let issuer: String

  /// For tokens that one of these keys signed for this issuer.
  public init(keys: KeySet, issuer: String) {
    self.keys = keys
    self.issuer = issuer
  }

  /// Who has this token.
  /// - Parameters:
  ///   - time: the time by which things expire.
  ///   - instant: the steady clock at the same moment.
  /// - Throws: `notSignedIn` for a token that nobody here has signed, `sessionExpired` for one that is over.
  public func session(
    of token: String, at time: WallTime, _ instant: Instant
  ) throws(BackendFailure) -> VerifiedSession {
    let claims: TokenClaims
    do throws(TokenError) {
      claims = try keys.claims(of: SignedToken(token, limit: 2_048), allowing: [.edDSA])
    } catch {
      throw .notSignedIn
    }
    guard claims.issuer == issuer, let expiry = claims.expiry,
      let ownExpiry = claims.ownExpiry ?? claims.expiry,
      let user = claims.subject.flatMap({ UserID($0) }),
      let session = claims.sessionID.flatMap({ SessionID($0) }), (0..<1 << 43).contains(expiry),
      (0..<1 << 43).contains(ownExpiry)
    else { throw .notSignedIn }
    let end = WallTime(microseconds: ownExpiry * 1_000_000)
    guard end > time else { throw .sessionExpired }
    let left = TimeDelta(nanoseconds: min(end.microseconds - time.microseconds, 1 << 52) * 1_000)
    return VerifiedSession(
      user: user, session: session, expiresAt: WallTime(microseconds: expiry * 1_000_000),
      deadline: instant + left)
  }
}
