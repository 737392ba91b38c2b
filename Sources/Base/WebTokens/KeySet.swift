public import PalbeWire

/// A JSON web key set (RFC 7517 §5): who may have signed a token.
///
///     let keys = try KeySet(json: bytes)
///     let claims = try keys.claims(of: SignedToken(text), allowing: TokenAlgorithm.publicKey)
public struct KeySet: Hashable, Sendable {
  /// The keys that can be used here.
  public let keys: [VerificationKey]

  /// The most keys of one set.
  public static let keyLimit = 64
  /// The longest set, in bytes.
  public static let byteLimit = 256 << 10
  /// How many keys are tried for one token.
  private static let trialLimit = 8

  /// Of keys that are there.
  public init(_ keys: [VerificationKey] = []) { self.keys = keys }

  /// From JSON. Keys that cannot be used here are passed over, as RFC 7517 §5 wants. Throws for what is no key set, for more than
  /// 256 KiB and for more than 64 keys.
  public init(json bytes: [UInt8]) throws(JSONError) {
    var json = try JSONReader(bytes, limit: Self.byteLimit, depth: 8)
    var found: [VerificationKey]?
    var count = 0
    try json.enterObject()
    while let name = try json.nextKey() {
      guard name == "keys" else {
        try json.skipValue()
        continue
      }
      guard found == nil else { throw .duplicate(at: json.offset) }
      var keys: [VerificationKey] = []
      try json.enterArray()
      while try json.nextElement() {
        count += 1
        guard count <= Self.keyLimit else { throw .tooMany(limit: Self.keyLimit) }
        if let key = try VerificationKey(&json) { keys.append(key) }
      }
      found = keys
    }
    try json.finish()
    guard let found else { throw .missing }
    keys = found
  }

  /// As JSON.
  public var json: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    json.key("keys")
    json.beginArray()
    for key in keys { key.write(to: &json) }
    json.endArray()
    json.endObject()
    return json.bytes
  }

  /// The claims of a token that one of these keys has signed; their times and names are not looked at.
  ///
  /// Throws `wrongAlgorithm`, `unknownKey` when no key has the token's `kid` and fits its algorithm, `badSignature`, `malformed`.
  public func claims(
    of token: SignedToken, allowing allowed: Set<TokenAlgorithm>
  ) throws(TokenError) -> TokenClaims {
    guard let algorithm = token.algorithm, allowed.contains(algorithm) else { throw .wrongAlgorithm }
    let candidates = keys.filter {
      $0.algorithms.contains(algorithm) && (token.keyID == nil || $0.id == token.keyID)
    }
    guard !candidates.isEmpty else { throw .unknownKey }
    guard candidates.prefix(Self.trialLimit).contains(where: { $0.isSigner(of: token) }) else {
      throw .badSignature
    }
    return try TokenClaims(token.payload)
  }
}
