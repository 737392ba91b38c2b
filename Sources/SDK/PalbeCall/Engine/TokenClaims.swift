import Foundation
import PalbeWire

/// What a client reads from its own access token. It cannot verify it, and need not: the server does.
@_spi(Testing) public struct TokenClaims: Decodable {
  private struct Video: Decodable { var room: String }
  private var sub: String
  private var video: Video

  /// This participant, `user#device` or a bare user.
  @_spi(Testing) public var identity: String { sub }
  /// The room that the token grants.
  @_spi(Testing) public var room: String { video.room }

  /// Reads the payload of a JWT in compact form (RFC 7519 §7.2); nil when it is none or names no room or identity.
  @_spi(Testing) public init?(token: String) {
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, token.utf8.allSatisfy({ $0 > 32 && $0 < 127 }),
      let payload = Base64.decode(parts[1], alphabet: .url),
      let claims = try? JSONDecoder().decode(Self.self, from: Data(payload)), !claims.identity.isEmpty,
      !claims.room.isEmpty
    else { return nil }
    self = claims
  }
}
