import Foundation
import PalbeCrypto
import PalbeWire

/// Mints an access token for tests and demonstrations, as an app's backend would (RFC 7519, HS256).
public struct TestToken: Sendable {
  /// The room to join.
  public var room: String
  /// Who joins: `user#device`, or a bare user.
  public var identity: String
  /// A name to show; empty for none.
  public var name = ""
  /// Seconds until it expires; negative for a token that has expired.
  public var validSeconds: Int64 = 6 * 3_600
  /// What the holder may do.
  public var canPublish = true
  public var canSubscribe = true

  public init(room: String, identity: String) {
    self.room = room
    self.identity = identity
  }

  private struct Claims: Encodable {
    struct Video: Encodable {
      var roomJoin = true
      var room: String
      var canPublish: Bool
      var canSubscribe: Bool
    }
    var iss: String
    var sub: String
    var name: String
    var nbf: Int64
    var exp: Int64
    var video: Video
  }

  /// The token's compact form.
  ///
  /// - Parameters:
  ///   - key: the API key's name.
  ///   - secret: the API key's secret.
  ///   - now: seconds since 1970.
  public func signed(key: String, secret: String, now: Int64) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let claims = Claims(
      iss: key, sub: identity, name: name, nbf: now, exp: now + validSeconds,
      video: .init(room: room, canPublish: canPublish, canSubscribe: canSubscribe))
    let header = #"{"alg":"HS256","typ":"JWT"}"#
    let parts = [[UInt8](header.utf8), [UInt8](try encoder.encode(claims))]
    let signed = parts.map { Base64.encode($0, alphabet: .url, padded: false) }.joined(separator: ".")
    let mac = HMAC<SHA256>.authenticationCode(for: [UInt8](signed.utf8), using: [UInt8](secret.utf8))
    return signed + "." + Base64.encode(mac, alphabet: .url, padded: false)
  }
}
