import Foundation
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeWebTokens
import PalbeWire

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
  var kind = LiveKit.ParticipantInfo.Kind.standard
  var kindDetails: [LiveKit.ParticipantInfo.KindDetail] = []
  /// How its room is made, if its holder makes it.
  var roomConfiguration: LiveKit.RoomConfiguration?

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
    var recorder = false
    var agent = false
    var canManageAgentSession = false
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
      var recorder: Bool?
      var agent: Bool?
      var canManageAgentSession: Bool?
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
    var kind: String?
    var kindDetails: [String]?
    var video: Video?
    var roomConfig: Present?
  }

  /// A claim that is there, whatever it is.
  private struct Present: Decodable { init(from decoder: any Decoder) {} }

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
      recorder: grant?.recorder ?? false, agent: grant?.agent ?? false,
      canManageAgentSession: grant?.canManageAgentSession ?? false, roomCreate: grant?.roomCreate ?? false,
      roomList: grant?.roomList ?? false,
      roomAdmin: grant?.roomAdmin ?? false, destinationRoom: grant?.destinationRoom ?? "",
      requireE2EE: grant?.requireE2EE ?? false)
    // What is not known is nothing special.
    kind = claims.kind.flatMap { LiveKit.ParticipantInfo.Kind(name: $0.uppercased()) } ?? .standard
    kindDetails = (claims.kindDetails ?? []).prefix(16).compactMap {
      LiveKit.ParticipantInfo.KindDetail(name: $0.uppercased())
    }
    roomConfiguration = claims.roomConfig == nil ? nil : try Self.roomConfiguration(in: token.payload)
  }

  /// The claim `roomConfig` is a message in JSON.
  private static func roomConfiguration(
    in payload: [UInt8]
  ) throws(AccessTokenError) -> LiveKit.RoomConfiguration? {
    let claims = try? JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any]
    guard let claim = claims?["roomConfig"], !(claim is NSNull) else { return nil }
    guard let object = claim as? [String: Any], let data = try? JSONSerialization.data(withJSONObject: object)
    else { throw .malformed }
    do throws(JSONError) {
      return try LiveKit.RoomConfiguration(json: String(decoding: data, as: UTF8.self))
    } catch { throw .malformed }
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
    grant.kind = kind
    grant.kindDetails = kindDetails
    grant.isRecorder = video.recorder
    grant.isAgent = video.agent
    grant.canManageAgentSession = video.canManageAgentSession
    grant.roomSettings = roomConfiguration.map { RoomSettings($0, name: video.room) }
    return grant
  }
}

extension RoomSettings {
  /// As LiveKit has it, zero and the empty text leave a setting as it is.
  fileprivate init(_ configuration: LiveKit.RoomConfiguration, name: String) {
    self.init(
      name: name, emptyTimeout: configuration.emptyTimeout, departureTimeout: configuration.departureTimeout,
      maxParticipants: configuration.maxParticipants, metadata: configuration.metadata,
      tags: configuration.tags)
  }

  /// LiveKit's messages have no word for it, but tags that mean what an operator wants: a room with this one takes only tracks
  /// that are encrypted end to end.
  static let encryptionTag = "require_e2ee"

  /// The same for what LiveKit's messages have in common.
  init(
    name: String, emptyTimeout: UInt32, departureTimeout: UInt32, maxParticipants: UInt32, metadata: String,
    tags: [String: String]
  ) {
    self.init(name: name)
    self.emptyTimeout = emptyTimeout == 0 ? nil : emptyTimeout
    self.departureTimeout = departureTimeout == 0 ? nil : departureTimeout
    self.maxParticipants = maxParticipants
    self.metadata = metadata.isEmpty ? nil : metadata
    // A word that is not known means that somebody wanted it.
    requiresE2EE = tags[Self.encryptionTag].map { !["", "0", "false"].contains($0.lowercased()) }
  }
}
