import PalbeCrypto
import PalbeWire

/// A JSON web signature in its compact form (RFC 7515 §3.1), taken apart and not believed yet.
///
///     let token = try SignedToken(text)
///     guard token.algorithm == .hs256, token.isSigned(with: secret.span) else { … }
public struct SignedToken: Sendable, Equatable {
  /// The `alg` of the header; nil for one that is not known here.
  public let algorithm: TokenAlgorithm?
  /// The `kid` of the header, at most 256 bytes.
  public let keyID: String?
  /// What is signed, as bytes.
  public let payload: [UInt8]
  /// The signature.
  public let signature: [UInt8]
  /// What the signature is over: header and payload as they are in the text.
  public let signed: [UInt8]

  /// Takes a token apart. Throws `malformed`, also for a header with extensions that must be understood (`crit`) and for
  /// more than `limit` bytes.
  public init(_ text: some StringProtocol, limit: Int = 16_384) throws(TokenError) {
    guard text.utf8.count <= limit else { throw .malformed }
    let parts = Array(text.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.decode(parts[0]), let payload = Self.decode(parts[1]),
      let signature = Self.decode(parts[2])
    else { throw .malformed }
    var algorithm: String?
    var keyID: String?
    do throws(JSONError) {
      var json = try JSONReader(header, limit: limit, depth: 4)
      var seen: Set<String> = []
      try json.enterObject()
      while let key = try json.nextKey() {
        guard seen.insert(key).inserted else { throw .duplicate(at: json.offset) }
        switch key {
        case "alg": algorithm = try json.string()
        case "kid": keyID = try json.string()
        // RFC 7515 §4.1.11: none of its extensions is understood.
        case "crit": throw .unexpected(at: json.offset)
        default: try json.skipValue()
        }
      }
      try json.finish()
    } catch {
      throw .malformed
    }
    guard let algorithm, keyID.map({ $0.utf8.count <= 256 }) ?? true else { throw .malformed }
    self.algorithm = TokenAlgorithm(rawValue: algorithm)
    self.keyID = keyID
    self.payload = payload
    self.signature = signature
    signed = Array(parts[0] + [UInt8(ascii: ".")] + parts[1])
  }

  /// Without padding, which RFC 7515 §2 leaves out.
  private static func decode(_ part: ArraySlice<UInt8>) -> [UInt8]? {
    guard part.last != UInt8(ascii: "=") else { return nil }
    return Base64.decode(String(decoding: part, as: UTF8.self), alphabet: .url)
  }

  /// True when it is signed with HS256 under this secret.
  public func isSigned(with secret: Span<UInt8>) -> Bool {
    algorithm == .hs256
      && HMAC<SHA256>.isValidAuthenticationCode(signature.span, for: signed.span, using: secret)
  }

  /// The compact form of signed claims.
  /// - Parameters:
  ///   - claims: a JSON object.
  ///   - sign: the signature of the bytes that it is given.
  public static func text<E: Error>(
    _ algorithm: TokenAlgorithm, keyID: String? = nil, claims: [UInt8],
    sign: (Span<UInt8>) throws(E) -> [UInt8]
  ) throws(E) -> String {
    var header = JSONWriter()
    header.beginObject()
    header.key("alg")
    header.string(algorithm.rawValue)
    header.key("typ")
    header.string("JWT")
    if let keyID {
      header.key("kid")
      header.string(keyID)
    }
    header.endObject()
    let signed = [header.bytes, claims].map { Base64.encode($0, alphabet: .url, padded: false) }
      .joined(separator: ".")
    let signature = try sign([UInt8](signed.utf8).span)
    return signed + "." + Base64.encode(signature, alphabet: .url, padded: false)
  }

  /// The compact form of claims, a JSON object, signed with HS256.
  public static func text(_ claims: [UInt8], secret: String) -> String {
    let key = [UInt8](secret.utf8)
    return text(.hs256, claims: claims) { HMAC<SHA256>.authenticationCode(for: $0, using: key.span) }
  }
}
