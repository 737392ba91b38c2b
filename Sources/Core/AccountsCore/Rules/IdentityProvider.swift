public import PalbeWebTokens

/// Whose word about who somebody is counts here.
public struct IdentityProvider: Hashable, Sendable {
  /// What `iss` must be, exactly.
  public let issuer: String
  /// One of which `aud` must name.
  public let audiences: Set<String>
  /// How its tokens may be signed.
  public let algorithms: Set<TokenAlgorithm>

  /// By how many seconds its clock may differ.
  public static let leeway: Int64 = 60

  /// Nil without an issuer or an audience, and for an algorithm that needs no public key.
  public init?(
    issuer: String, audiences: Set<String>, algorithms: Set<TokenAlgorithm> = TokenAlgorithm.publicKey
  ) {
    guard !issuer.isEmpty, !audiences.isEmpty, !audiences.contains(""), !algorithms.isEmpty,
      algorithms.isSubset(of: TokenAlgorithm.publicKey)
    else { return nil }
    self.issuer = issuer
    self.audiences = audiences
    self.algorithms = algorithms
  }

  /// Who it is that a token is about (OpenID Connect Core §3.1.3.7).
  /// - Parameters:
  ///   - token: as it came.
  ///   - keys: the provider's.
  ///   - now: seconds since 1970.
  public func identity(
    of token: SignedToken, keys: KeySet, now: Int64
  ) throws(TokenError) -> ExternalIdentity {
    let claims = try keys.claims(of: token, allowing: algorithms)
    guard claims.issuer == issuer else { throw .wrongIssuer }
    guard claims.audience.contains(where: audiences.contains) else { throw .wrongAudience }
    // One for several must say whom it was made for. With one audience `azp` may be an app of the same owner's.
    if claims.audience.count > 1 {
      guard let party = claims.authorizedParty, audiences.contains(party) else { throw .wrongAudience }
    }
    try claims.checkTime(now: now, leeway: Self.leeway)
    guard let subject = claims.subject, (1...255).contains(subject.utf8.count) else { throw .missingClaim }
    return ExternalIdentity(issuer: issuer, subject: subject)
  }
}
