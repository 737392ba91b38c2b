// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Participants

extension LiveKit {
  /// A participant as others see it.
  public struct ParticipantInfo: ProtobufMessage {
    /// How far a participant has come.
    public struct State: ProtobufEnum {
      public static let joining = State(rawValue: 0)
      public static let joined = State(rawValue: 1)
      public static let active = State(rawValue: 2)
      public static let disconnected = State(rawValue: 3)
      public static let names: KeyValuePairs<Self, String> = [
        .joining: "JOINING", .joined: "JOINED", .active: "ACTIVE", .disconnected: "DISCONNECTED",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// What a participant is.
    public struct Kind: ProtobufEnum {
      public static let standard = Kind(rawValue: 0)
      public static let ingress = Kind(rawValue: 1)
      public static let egress = Kind(rawValue: 2)
      public static let sip = Kind(rawValue: 3)
      public static let agent = Kind(rawValue: 4)
      public static let connector = Kind(rawValue: 7)
      public static let bridge = Kind(rawValue: 8)
      public static let names: KeyValuePairs<Self, String> = [
        .standard: "STANDARD", .ingress: "INGRESS", .egress: "EGRESS", .sip: "SIP", .agent: "AGENT",
        .connector: "CONNECTOR", .bridge: "BRIDGE",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// More on what a participant is.
    public struct KindDetail: ProtobufEnum {
      public static let cloudAgent = KindDetail(rawValue: 0)
      public static let forwarded = KindDetail(rawValue: 1)
      public static let connectorWhatsapp = KindDetail(rawValue: 2)
      public static let connectorTwilio = KindDetail(rawValue: 3)
      public static let bridgeRtsp = KindDetail(rawValue: 4)
      public static let simulation = KindDetail(rawValue: 5)
      public static let names: KeyValuePairs<Self, String> = [
        .cloudAgent: "CLOUD_AGENT", .forwarded: "FORWARDED", .connectorWhatsapp: "CONNECTOR_WHATSAPP",
        .connectorTwilio: "CONNECTOR_TWILIO", .bridgeRtsp: "BRIDGE_RTSP", .simulation: "SIMULATION",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    public var sid = ""
    public var identity = ""
    public var state: State = .joining
    public var tracks: [TrackInfo] = []
    public var metadata = ""
    public var joinedAt: Int64 = 0
    public var name = ""
    /// Rises with every change; a client drops what is older than it knows.
    public var version: UInt32 = 0
    public var permission: ParticipantPermission?
    public var region = ""
    public var isPublisher = false
    public var kind: Kind = .standard
    public var attributes: [String: String] = [:]
    public var disconnectReason: DisconnectReason = .unknownReason
    public var joinedAtMs: Int64 = 0
    public var kindDetails: [KindDetail] = []
    public var dataTracks: [DataTrackInfo] = []
    public var clientProtocol: Int32 = 0
    public var capabilities: [ClientInfo.Capability] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "sid", &sid)
      try f.field(2, "identity", &identity)
      try f.field(3, "state", &state)
      try f.field(4, "tracks", &tracks)
      try f.field(5, "metadata", &metadata)
      try f.field(6, "joined_at", &joinedAt)
      try f.field(9, "name", &name)
      try f.field(10, "version", &version)
      try f.field(11, "permission", &permission)
      try f.field(12, "region", &region)
      try f.field(13, "is_publisher", &isPublisher)
      try f.field(14, "kind", &kind)
      try f.field(15, "attributes", &attributes)
      try f.field(16, "disconnect_reason", &disconnectReason)
      try f.field(17, "joined_at_ms", &joinedAtMs)
      try f.field(18, "kind_details", &kindDetails)
      try f.field(19, "data_tracks", &dataTracks)
      try f.field(20, "client_protocol", &clientProtocol)
      try f.field(21, "capabilities", &capabilities)
    }
  }

  /// What a participant may do.
  public struct ParticipantPermission: ProtobufMessage {
    public var canSubscribe = false
    public var canPublish = false
    public var canPublishData = false
    public var hidden = false
    public var recorder = false
    public var canPublishSources: [TrackSource] = []
    public var canUpdateMetadata = false
    public var agent = false
    public var canSubscribeMetrics = false
    public var canManageAgentSession = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "can_subscribe", &canSubscribe)
      try f.field(2, "can_publish", &canPublish)
      try f.field(3, "can_publish_data", &canPublishData)
      try f.field(7, "hidden", &hidden)
      try f.field(8, "recorder", &recorder)
      try f.field(9, "can_publish_sources", &canPublishSources)
      try f.field(10, "can_update_metadata", &canUpdateMetadata)
      try f.field(11, "agent", &agent)
      try f.field(12, "can_subscribe_metrics", &canSubscribeMetrics)
      try f.field(13, "can_manage_agent_session", &canManageAgentSession)
    }
  }

  /// Participants that changed, each in full.
  public struct ParticipantUpdate: ProtobufMessage {
    public var participants: [ParticipantInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "participants", &participants)
    }
  }

  /// A participant describes itself anew; an empty attribute deletes its key.
  public struct UpdateParticipantMetadata: ProtobufMessage {
    public var metadata = ""
    public var name = ""
    public var attributes: [String: String] = [:]
    public var requestId: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "metadata", &metadata)
      try f.field(2, "name", &name)
      try f.field(3, "attributes", &attributes)
      try f.field(4, "request_id", &requestId)
    }
  }

  /// How loud a participant is.
  public struct SpeakerInfo: ProtobufMessage {
    public var sid = ""
    /// 0 to 1, linear.
    public var level: Float = 0
    public var active = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "sid", &sid)
      try f.field(2, "level", &level)
      try f.field(3, "active", &active)
    }
  }

  /// Speakers that changed, those who stopped included.
  public struct SpeakersChanged: ProtobufMessage {
    public var speakers: [SpeakerInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "speakers", &speakers)
    }
  }

  /// One participant's connection quality.
  public struct ConnectionQualityInfo: ProtobufMessage {
    public var participantSid = ""
    public var quality: ConnectionQuality = .poor
    /// Mean opinion score, 1 to 4.5.
    public var score: Float = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "participant_sid", &participantSid)
      try f.field(2, "quality", &quality)
      try f.field(3, "score", &score)
    }
  }

  /// Connection qualities that changed.
  public struct ConnectionQualityUpdate: ProtobufMessage {
    public var updates: [ConnectionQualityInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "updates", &updates)
    }
  }
}
