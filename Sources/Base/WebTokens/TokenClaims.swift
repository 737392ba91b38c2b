import PalbeWire

/// The claims of RFC 7519 §4.1, and two that go with them.
public struct TokenClaims: Sendable, Equatable {
  /// `iss`: who issued it.
  public var issuer: String?
  /// `sub`: whom it is about.
  public var subject: String?
  /// `aud`: for whom it is; a text or an array of texts.
  public var audience: [String] = []
  /// `azp`: for which client it was made (OpenID Connect Core §2).
  public var authorizedParty: String?
  /// `sid`: the session.
  public var sessionID: String?
  /// `exp`, `nbf` and `iat`, in seconds since 1970; a fraction is cut off.
  public var expiry: Int64?
  public var notBefore: Int64?
  public var issuedAt: Int64?
  /// `oxp`: when the token ends by a clock of its issuer's own, for the issuer alone.
  public var ownExpiry: Int64?

  /// No claim.
  public init() {}

  /// From a payload. Throws `malformed` for what is no JSON object, and for a claim that stands twice or has another type.
  public init(_ payload: [UInt8]) throws(TokenError) {
    do throws(JSONError) {
      var json = try JSONReader(payload, limit: 16_384, depth: 16)
      var seen: Set<String> = []
      try json.enterObject()
      while let key = try json.nextKey() {
        guard seen.insert(key).inserted else { throw .duplicate(at: json.offset) }
        switch key {
        case "iss": issuer = try json.string()
        case "sub": subject = try json.string()
        case "azp": authorizedParty = try json.string()
        case "sid": sessionID = try json.string()
        case "aud":
          if json.kind() == .string {
            audience = [try json.string()]
          } else {
            try json.enterArray()
            while try json.nextElement() { audience.append(try json.string()) }
          }
        case "exp": expiry = try Self.seconds(&json)
        case "nbf": notBefore = try Self.seconds(&json)
        case "iat": issuedAt = try Self.seconds(&json)
        case "oxp": ownExpiry = try Self.seconds(&json)
        default: try json.skipValue()
        }
      }
      try json.finish()
    } catch {
      throw .malformed
    }
  }

  /// A NumericDate (RFC 7519 §2), within what a Double holds exactly.
  private static func seconds(_ json: inout JSONReader) throws(JSONError) -> Int64 {
    let text = String(decoding: try json.number(), as: UTF8.self)
    guard let value = Double(text), abs(value) < 9_007_199_254_740_992 else {
      throw .outOfRange(at: json.offset)
    }
    return Int64(value.rounded(.down))
  }

  /// Refuses a token whose time is over or has not come. An expiry must be there.
  /// - Parameters:
  ///   - now: seconds since 1970.
  ///   - leeway: by how many seconds clocks may differ.
  public func checkTime(now: Int64, leeway: Int64) throws(TokenError) {
    guard let expiry else { throw .missingClaim }
    guard now - leeway < expiry else { throw .expired }
    for start in [notBefore, issuedAt] {
      if let start, start > now + leeway { throw .notYetValid }
    }
  }

  /// As a JSON object.
  public var json: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    for (name, value) in [("iss", issuer), ("sub", subject), ("azp", authorizedParty), ("sid", sessionID)] {
      guard let value else { continue }
      json.key(name)
      json.string(value)
    }
    if !audience.isEmpty {
      json.key("aud")
      json.beginArray()
      for name in audience { json.string(name) }
      json.endArray()
    }
    for (name, value) in [("iat", issuedAt), ("nbf", notBefore), ("exp", expiry), ("oxp", ownExpiry)] {
      guard let value else { continue }
      json.key(name)
      json.integer(value)
    }
    json.endObject()
    return json.bytes
  }
}
