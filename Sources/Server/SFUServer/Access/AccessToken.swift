import Foundation
import PalbeSFUCore
import PalbeWebTokens

/// Why an access token was refused.
@_spi(Testing) public enum AccessTokenError: Error, Equatable, CustomStringConvertible {
  case malformed
  case wrongAlgorithm
  case unknownKey
  case badSignature
  case expired
  case notYetValid
  case missingExpiry

  /// What the client is told; never part of a secret.
  @_spi(Testing) public var description: String {
    switch self {
    case .malformed: "invalid token: not a signed JSON web token"
    case .wrongAlgorithm: "invalid token: the algorithm must be HS256"
    case .unknownKey: "invalid token: unknown API key"
    case .badSignature: "invalid token: the signature does not match"
    case .expired: "invalid token: expired"
    case .notYetValid: "invalid token: not valid yet"
    case .missingExpiry: "invalid token: no expiry"
    }
  }
}

/// LiveKit's access token: a JSON web token signed with HS256 (RFC 7519).
@_spi(Testing) public struct AccessToken: Equatable {
  /// The claims that the SFU reads.
  @_spi(Testing) public var identity: String
  var name: String
  var metadata: String
  var attributes: [String: String]
  var video: VideoGrant

  /// The `video` claim, with LiveKit's defaults for what is absent.
  struct VideoGrant: Equatable {
    var roomJoin = false
    var room = ""
    var canPublish = true
    var canSubscribe = true
    var canPublishData = true
    var canUpdateOwnMetadata = false
    var canSubscribeMetrics = false
    var canPublishSources: [String] = []
    var hidden = false
    /// What RoomService asks for.
    var roomCreate = false
    var roomList = false
    var roomAdmin = false
    var destinationRoom = ""
    /// Ours: what the holder publishes must be encrypted end to end.
    var requireE2EE = false
  }

  /// Clocks may differ by this much, in seconds.
  static let leeway: Int64 = 60

  private struct Claims: Decodable {
    struct Video: Decodable {
      var roomJoin: Bool?
      var room: String?
      var canPublish: Bool?
      var canSubscribe: Bool?
      var canPublishData: Bool?
      var canUpdateOwnMetadata: Bool?
      var canSubscribeMetrics: Bool?
      var canPublishSources: [String]?
      var hidden: Bool?
      var roomCreate: Bool?
      var roomList: Bool?
      var roomAdmin: Bool?
      var destinationRoom: String?
      var requireE2EE: Bool?
    }
    var iss: String?
    var sub: String?
    var jti: String?
    var exp: Double?
    var nbf: Double?
    var name: String?
    var metadata: String?
    var attributes: [String: String]?
    var video: Video?
  }

  /// Verifies signature and validity.
  ///
  /// - Parameters:
  ///   - token: the compact form, at most 16 KiB.
  ///   - keys: API key name to secret.
  ///   - now: seconds since 1970.
  @_spi(Testing) public init(
    verifying token: String, keys: [String: String], now: Int64
  ) throws(AccessTokenError) {
    let token = try Self.parse(token)
    guard let claims = try? JSONDecoder().decode(Claims.self, from: Data(token.payload)) else {
      throw .malformed
    }
    guard token.algorithm == .hs256 else { throw .wrongAlgorithm }
    guard let issuer = claims.iss, let secret = keys[issuer] else { throw .unknownKey }
    let key = [UInt8](secret.utf8)
    guard token.isSigned(with: key.span) else { throw .badSignature }
    guard let expiry = claims.exp else { throw .missingExpiry }
    guard Double(now - Self.leeway) < expiry else { throw .expired }
    if let start = claims.nbf, Double(now + Self.leeway) < start { throw .notYetValid }

    identity = claims.sub ?? claims.jti ?? ""
    name = claims.name ?? ""
    metadata = claims.metadata ?? ""
    attributes = claims.attributes ?? [:]
    let grant = claims.video
    let canPublish = grant?.canPublish ?? true
    video = VideoGrant(
      roomJoin: grant?.roomJoin ?? false, room: grant?.room ?? "", canPublish: canPublish,
      canSubscribe: grant?.canSubscribe ?? true, canPublishData: grant?.canPublishData ?? canPublish,
      canUpdateOwnMetadata: grant?.canUpdateOwnMetadata ?? false,
      canSubscribeMetrics: grant?.canSubscribeMetrics ?? false,
      canPublishSources: grant?.canPublishSources ?? [], hidden: grant?.hidden ?? false,
      roomCreate: grant?.roomCreate ?? false, roomList: grant?.roomList ?? false,
      roomAdmin: grant?.roomAdmin ?? false, destinationRoom: grant?.destinationRoom ?? "",
      requireE2EE: grant?.requireE2EE ?? false)
  }

  private static func parse(_ text: String) throws(AccessTokenError) -> SignedToken {
    do throws(TokenError) { return try SignedToken(text) } catch { throw .malformed }
  }

  /// What the core needs to know.
  var grant: AccessGrant {
    var grant = AccessGrant(room: video.room, identity: identity)
    grant.name = name
    grant.metadata = metadata
    grant.attributes = attributes
    grant.canPublish = video.canPublish
    grant.canSubscribe = video.canSubscribe
    grant.canPublishData = video.canPublishData
    grant.canUpdateOwnMetadata = video.canUpdateOwnMetadata
    grant.canSubscribeMetrics = video.canSubscribeMetrics
    grant.canPublishSources = video.canPublishSources
    grant.hidden = video.hidden
    grant.requiresE2EE = video.requireE2EE
    return grant
  }
}
