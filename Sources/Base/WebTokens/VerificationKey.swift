public import PalbeCrypto
import PalbeWire

/// A public key of a JSON web key set, and what it may verify.
///
/// The key decides, not the token: an RSA key never verifies an HMAC, and a key with an `alg` no other algorithm (RFC 8725 §3.1).
public struct VerificationKey: Hashable, Sendable {
  /// What it is made of.
  public enum Material: Hashable, Sendable {
    case rsa(RSA.Signing.PublicKey)
    case p256(P256.Signing.PublicKey)
    case ed25519(Curve25519.Signing.PublicKey)
  }

  /// The `kid`.
  public let id: String?
  /// The algorithms that it is for.
  public let algorithms: Set<TokenAlgorithm>
  /// The key.
  public let material: Material

  /// - Parameter algorithm: the only one that it is for; one that its kind does not have leaves none.
  public init(id: String?, material: Material, algorithm: TokenAlgorithm? = nil) {
    self.id = id
    self.material = material
    let fitting: Set<TokenAlgorithm> =
      switch material {
      case .rsa: [.rs256, .ps256]
      case .p256: [.es256]
      case .ed25519: [.edDSA]
      }
    algorithms = algorithm.map { fitting.intersection([$0]) } ?? fitting
  }

  /// True when the token's signature is this key's, under an algorithm that the key is for.
  public func isSigner(of token: SignedToken) -> Bool {
    guard let algorithm = token.algorithm, algorithms.contains(algorithm) else { return false }
    let (signature, message) = (token.signature, token.signed)
    switch (material, algorithm) {
    case (.rsa(let key), .rs256):
      return key.isValidSignature(signature.span, for: message.span, padding: .pkcs1v15)
    case (.rsa(let key), .ps256):
      return key.isValidSignature(signature.span, for: message.span, padding: .pss)
    case (.p256(let key), .es256): return key.isValidRawSignature(signature.span, for: message.span)
    case (.ed25519(let key), .edDSA):
      // Keeps keys that were used lately.
      let bytes = key.rawRepresentation
      return SignatureScheme.ed25519.isValidSignature(signature.span, for: message.span, by: bytes.span)
    default: return false
    }
  }

  // MARK: JSON web keys

  /// The next value as a JSON web key (RFC 7517 §4). Nil for a well-formed one that cannot be used here: another kind or curve,
  /// not for signatures, with a private part, or not a key at all.
  init?(_ json: inout JSONReader) throws(JSONError) {
    var texts: [String: String] = [:]
    var isForSignatures = true
    var hasSecret = false
    var seen: Set<String> = []
    try json.enterObject()
    while let name = try json.nextKey() {
      guard seen.insert(name).inserted else { throw .duplicate(at: json.offset) }
      switch name {
      case "kty", "kid", "alg", "crv", "n", "e", "x", "y":
        texts[name] = try json.string()
      case "use": if try json.string() != "sig" { isForSignatures = false }
      case "key_ops":
        var operations: [String] = []
        try json.enterArray()
        while try json.nextElement() { operations.append(try json.string()) }
        if !operations.contains("verify") { isForSignatures = false }
      case "d", "k":
        hasSecret = true
        try json.skipValue()
      default: try json.skipValue()
      }
    }
    let bytes = texts.filter { "nexy".contains($0.key) && $0.value.utf8.count <= 2_048 }
      .compactMapValues { Base64.decode($0, alphabet: .url) }
    guard isForSignatures, !hasSecret, texts["kid"].map({ $0.utf8.count <= 256 }) ?? true,
      let material = Self.material(texts, bytes)
    else { return nil }
    let algorithm = texts["alg"].map { TokenAlgorithm(rawValue: $0) }
    // An algorithm that is not known here.
    if case .some(.none) = algorithm { return nil }
    self.init(id: texts["kid"], material: material, algorithm: algorithm ?? nil)
    if algorithms.isEmpty { return nil }
  }

  private static func material(_ texts: [String: String], _ bytes: [String: [UInt8]]) -> Material? {
    switch (texts["kty"], texts["crv"]) {
    case ("RSA", nil):
      guard let modulus = bytes["n"], let exponent = bytes["e"] else { return nil }
      return (try? RSA.Signing.PublicKey(modulus: modulus, exponent: exponent)).map { .rsa($0) }
    case ("EC", "P-256"):
      guard let x = bytes["x"], let y = bytes["y"], x.count == 32, y.count == 32 else { return nil }
      let point = [4] + x + y
      return (try? P256.Signing.PublicKey(x963Representation: point.span)).map { .p256($0) }
    case ("OKP", "Ed25519"):
      guard let x = bytes["x"] else { return nil }
      return (try? Curve25519.Signing.PublicKey(rawRepresentation: x)).map { .ed25519($0) }
    default: return nil
    }
  }

  /// Writes it as a JSON web key.
  func write(to json: inout JSONWriter) {
    var members: [(String, String)] = []
    func text(_ bytes: some Sequence<UInt8>) -> String {
      Base64.encode(Array(bytes), alphabet: .url, padded: false)
    }
    switch material {
    case .rsa(let key): members = [("kty", "RSA"), ("n", text(key.modulus)), ("e", text(key.exponent))]
    case .p256(let key):
      let point = key.x963Representation
      members = [("kty", "EC"), ("crv", "P-256"), ("x", text(point[1..<33])), ("y", text(point[33...]))]
    case .ed25519(let key):
      members = [("kty", "OKP"), ("crv", "Ed25519"), ("x", text(key.rawRepresentation))]
    }
    if let id { members.append(("kid", id)) }
    members.append(("use", "sig"))
    if algorithms.count == 1, let algorithm = algorithms.first { members.append(("alg", algorithm.rawValue)) }
    json.beginObject()
    for (name, value) in members {
      json.key(name)
      json.string(value)
    }
    json.endObject()
  }
}
