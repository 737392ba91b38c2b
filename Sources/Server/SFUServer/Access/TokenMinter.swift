import Foundation
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeWebTokens

/// Renews participants' tokens, so that a client can resume after the one it joined with has expired.
struct TokenMinter: Sendable {
  /// Seconds that a renewed token is valid; the next one comes after half of it.
  static let lifetime: Int64 = 600

  private let keyName: String
  private let secret: String

  /// Signs with the first key by name; nil without keys.
  init?(keys: [String: String]) {
    guard let first = keys.min(by: { $0.key < $1.key }) else { return nil }
    keyName = first.key
    secret = first.value
  }

  private struct Claims: Encodable {
    struct Video: Encodable {
      var roomJoin = true
      var room: String
      var canPublish: Bool
      var canSubscribe: Bool
      var canPublishData: Bool
      var canUpdateOwnMetadata: Bool
      var canSubscribeMetrics: Bool
      var canPublishSources: [String]
      var hidden: Bool
      var recorder: Bool
      var agent: Bool
      var canManageAgentSession: Bool
      var requireE2EE: Bool
    }
    var iss: String
    var sub: String
    var nbf: Int64
    var exp: Int64
    var name: String
    var metadata: String
    var attributes: [String: String]
    var kind: String?
    var kindDetails: [String]
    var video: Video
  }

  /// - Parameter now: seconds since 1970.
  /// - Returns: a token in its compact form; nil when the grant cannot be written as JSON.
  func token(for grant: AccessGrant, now: Int64) -> String? {
    let claims = Claims(
      iss: keyName, sub: grant.identity, nbf: now, exp: now + Self.lifetime, name: grant.name,
      metadata: grant.metadata, attributes: grant.attributes, kind: grant.kind.name?.lowercased(),
      kindDetails: grant.kindDetails.compactMap { $0.name?.lowercased() },
      video: Claims.Video(
        room: grant.room, canPublish: grant.canPublish, canSubscribe: grant.canSubscribe,
        canPublishData: grant.canPublishData, canUpdateOwnMetadata: grant.canUpdateOwnMetadata,
        canSubscribeMetrics: grant.canSubscribeMetrics,
        canPublishSources: grant.canPublishSources, hidden: grant.hidden,
        recorder: grant.isRecorder, agent: grant.isAgent, canManageAgentSession: grant.canManageAgentSession,
        requireE2EE: grant.requiresE2EE))
    guard let body = try? JSONEncoder().encode(claims) else { return nil }
    return SignedToken.text([UInt8](body), secret: secret)
  }
}
