import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendKit
import PalbeCrypto
import PalbeUnits
import PalbeWebTokens
import PalbeWire

extension FuzzTarget {
  /// A token as it comes, and as the claims that a known key has signed. No input is signed by a key that did not sign it.
  static let webToken = FuzzTarget(name: "web-token") { bytes in
    let world = TokenWorld.shared
    if let token = try? SignedToken(String(decoding: bytes, as: UTF8.self)) {
      demand((try? world.keys.claims(of: token, allowing: TokenAlgorithm.publicKey)) == nil, "a forged token")
    }
    let signed = try? SignedToken.text(.edDSA, keyID: "k", claims: bytes) { span throws(CryptoError) in
      try world.key.signature(for: span)
    }
    guard let signed, let token = try? SignedToken(signed, limit: 1 << 20) else { return }
    guard let claims = try? world.keys.claims(of: token, allowing: [.edDSA]) else { return }
    _ = try? claims.checkTime(now: 1_800_000_000, leeway: 60)
    demand((try? TokenClaims(claims.json)) == claims, "claims do not come back")
  }

  /// A key set; what is taken comes back, and none of its keys takes a token that it has not signed.
  static let keySet = FuzzTarget(name: "key-set") { bytes in
    guard let set = try? KeySet(json: bytes) else { return }
    demand(
      set.keys.count <= KeySet.keyLimit && (try? KeySet(json: set.json)) == set,
      "a key set does not come back")
    for algorithm in ["RS256", "PS256", "ES256", "EdDSA"] {
      let header = Base64.encode(Array(#"{"alg":"\#(algorithm)"}"#.utf8), alphabet: .url, padded: false)
      let signature = Base64.encode([UInt8](repeating: 1, count: 64), alphabet: .url, padded: false)
      guard let token = try? SignedToken("\(header).e30.\(signature)") else { continue }
      demand((try? set.claims(of: token, allowing: TokenAlgorithm.publicKey)) == nil, "a forged token")
    }
  }

  /// What clients of accounts type and send: an e-mail, a password, a refresh token, a device token, a session's name.
  static let accountValues = FuzzTarget(name: "account-values") { bytes in
    let world = TokenWorld.shared
    let text = String(decoding: bytes, as: UTF8.self)
    if let email = Email(text) {
      demand(Email(email.text) == email && email.text.utf8.count <= 254, "an e-mail has two forms")
    }
    let isGood = (try? PasswordRules.check(bytes.span, for: Email("anna@example.org"))) != nil
    demand(!isGood || (8...1_024).contains(bytes.count), "a password outside the limits")
    demand(accountRefusal { try world.rig().refresh(text) } == .sessionExpired, "a forged refresh token")
    demand(world.devices.device(text, of: world.user) == nil, "a forged device token")
    if let session = SessionID(text) { demand(session.text == text, "a session has two names") }
  }
}

/// A key that signs tokens, and accounts with one session.
private final class TokenWorld: Sendable {
  let key: Curve25519.Signing.PrivateKey
  let keys: KeySet
  let devices: DeviceTokens
  let user: UserID

  static let shared = TokenWorld()
  nonisolated(unsafe) private static let accounts: AccountRig<MemoryAccountStore> = {
    do {
      let rig = try AccountRig(MemoryAccountStore())
      _ = try rig.signUp("anna@example.org")
      return rig
    } catch { fatalError("\(error)") }
  }()

  private init() {
    var random = RandomSource(seed: 1)
    key = Curve25519.Signing.PrivateKey(using: &random)
    keys = KeySet([VerificationKey(id: "k", material: .ed25519(key.publicKey))])
    devices = DeviceTokens(key: SymmetricKey(byteCount: 32, using: &random))
    user = UserID(at: WallTime(microseconds: 1), using: &random)
  }

  func rig() -> AccountRig<MemoryAccountStore> { Self.accounts }
}
