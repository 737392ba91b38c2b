import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

extension Participant {
  /// What others may know of this participant.
  var info: LiveKit.ParticipantInfo {
    .with {
      $0.sid = sid
      $0.identity = identity
      $0.state = state
      $0.tracks = uplink.tracks.filter(\.isAnnounced).map(\.info)
      $0.metadata = metadata
      $0.joinedAt = context.clock.unixMilliseconds(at: joinedAt) / 1_000
      $0.joinedAtMs = context.clock.unixMilliseconds(at: joinedAt)
      $0.name = name
      $0.version = version
      $0.permission = grantedPermission
      $0.isPublisher = isPublisher
      $0.kind = grant.kind
      $0.kindDetails = grant.kindDetails
      $0.attributes = attributes
      $0.dataTracks = dataTracks.published.map(\.info)
      $0.clientProtocol = client.clientProtocol
      $0.capabilities = client.capabilities
    }
  }

  /// It receives what is published to be recorded.
  var isRecorder: Bool { grant.isRecorder || grant.kind == .egress }

  /// It is there for others, and is no reason to keep their room.
  var isDependent: Bool { grant.isDependent }

  /// Others can receive something of it.
  var isPublisher: Bool { uplink.tracks.contains(where: \.isAnnounced) || !dataTracks.published.isEmpty }

  private var grantedPermission: LiveKit.ParticipantPermission {
    .with {
      $0.canSubscribe = grant.canSubscribe
      $0.canPublish = grant.canPublish
      $0.canPublishData = grant.canPublishData
      $0.hidden = grant.hidden
      $0.canPublishSources = grant.canPublishSources.compactMap(LiveKit.TrackSource.init(grantName:))
      $0.canUpdateMetadata = grant.canUpdateOwnMetadata
      $0.canSubscribeMetrics = grant.canSubscribeMetrics
      $0.recorder = grant.isRecorder
      $0.agent = grant.isAgent
      $0.canManageAgentSession = grant.canManageAgentSession
    }
  }

  /// Its grant with what it is called and tells about itself by now, as a token can carry it: who joins again with that is who
  /// it was. Longer texts stay those it joined with.
  var presentGrant: AccessGrant {
    var present = grant
    present.name = name
    guard metadata.utf8.count + TextLimits.byteCount(attributes) <= TextLimits.token else { return present }
    present.metadata = metadata
    present.attributes = attributes
    return present
  }

  /// Its token is not true any more: it gets another one by then.
  func wantToken(by time: Instant) {
    nextTokenAt = min(nextTokenAt, time)
    wake(at: nextTokenAt)
  }

  /// Its attributes with changes merged in; an empty value deletes its key.
  func attributes(changedBy changes: [String: String]) -> [String: String] {
    attributes.merging(changes) { $1 }.filter { !$0.value.isEmpty || changes[$0.key] == nil }
  }

  /// What it publishes must be encrypted end to end.
  var mustEncrypt: Bool { grant.requiresE2EE || room.requiresE2EE }

  func mayPublish(_ source: LiveKit.TrackSource) -> Bool {
    guard grant.canPublish else { return false }
    return grant.canPublishSources.isEmpty
      || grant.canPublishSources.contains { LiveKit.TrackSource(grantName: $0) == source }
  }
}

extension LiveKit.TrackSource {
  private static let grantNames: KeyValuePairs<Self, String> = [
    .camera: "camera", .microphone: "microphone", .screenShare: "screen_share",
    .screenShareAudio: "screen_share_audio",
  ]

  /// From the name in a token's `canPublishSources`.
  init?(grantName: String) {
    guard let source = Self.grantNames.first(where: { $0.value == grantName })?.key else { return nil }
    self = source
  }

  /// The name in a token's `canPublishSources`; nil for a source that has none.
  var grantName: String? { Self.grantNames.first { $0.key == self }?.value }
}

/// How much text a peer may have others store.
enum TextLimits {
  static let name = 256
  static let metadata = 512 * 1_024
  static let attributes = 64 * 1_024
  /// Of everybody in a room together: who joins is told all of it in one message, which its connection has to take.
  static let room = 8 << 20

  /// Of metadata and attributes in a token, which clients send in a request line.
  static let token = 4_096

  /// Of a name that an application gives to how its data is encoded.
  static let encoding = 32

  static func accepts(encoding: String) -> Bool { (1...Self.encoding).contains(encoding.utf8.count) }
  static func accepts(name: String) -> Bool { name.utf8.count <= Self.name }
  static func accepts(metadata: String) -> Bool { metadata.utf8.count <= Self.metadata }
  static func accepts(attributes: [String: String]) -> Bool {
    byteCount(attributes) <= Self.attributes
  }
  static func byteCount(_ attributes: [String: String]) -> Int {
    attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
  }
}

extension Participant {
  /// Whether these texts, instead of its own, fit beside those of the others in its room.
  func mayBeTold(metadata: String, attributes: [String: String]) -> Bool {
    let others = room.participants.lazy.filter { $0 !== self }.map { other in
      other.metadata.utf8.count + TextLimits.byteCount(other.attributes)
    }
    return others.reduce(metadata.utf8.count + TextLimits.byteCount(attributes), +) <= TextLimits.room
  }
}
