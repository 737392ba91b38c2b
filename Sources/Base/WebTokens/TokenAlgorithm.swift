/// How a token is signed: the algorithms of RFC 7518 §3.1 and RFC 8037 §3.1 that are known here. `none` is not one.
public enum TokenAlgorithm: String, Hashable, Sendable, CaseIterable {
  /// HMAC with SHA-256, under a secret that both sides have.
  case hs256 = "HS256"
  /// RSASSA-PKCS1-v1_5 with SHA-256.
  case rs256 = "RS256"
  /// RSASSA-PSS with SHA-256.
  case ps256 = "PS256"
  /// ECDSA on P-256 with SHA-256; the signature is r | s.
  case es256 = "ES256"
  /// Ed25519.
  case edDSA = "EdDSA"

  /// Those that are verified with a public key.
  public static let publicKey: Set<TokenAlgorithm> = [.rs256, .ps256, .es256, .edDSA]
}

/// Why a token is not believed.
public enum TokenError: Error, Equatable, Sendable {
  /// Not the compact form of a signed JSON web token, or too long, or a claim is of another type or stands twice.
  case malformed
  /// An algorithm that is not allowed here.
  case wrongAlgorithm
  /// No key of this name, or none for this algorithm.
  case unknownKey
  /// The signature is not the key's.
  case badSignature
  /// Its time is over.
  case expired
  /// Its time has not come.
  case notYetValid
  /// A claim that must be there is not.
  case missingClaim
  /// Somebody else issued it.
  case wrongIssuer
  /// It is for somebody else.
  case wrongAudience
}
