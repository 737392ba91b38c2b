// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Joining and resuming

extension LiveKit {
  /// The `join_request` query item: base64url of this.
  public struct WrappedJoinRequest: ProtobufMessage {
    /// How `joinRequest` is packed.
    public struct Compression: ProtobufEnum {
      public static let none = Compression(rawValue: 0)
      public static let gzip = Compression(rawValue: 1)
      public static let names: KeyValuePairs<Self, String> = [.none: "NONE", .gzip: "GZIP"]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    public var compression: Compression = .none
    public var joinRequest: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "compression", &compression)
      try f.field(2, "join_request", &joinRequest)
    }
  }

  /// What a client says before the link is open; the first offer may ride along.
  public struct JoinRequest: ProtobufMessage {
    public var clientInfo: ClientInfo?
    public var connectionSettings: ConnectionSettings?
    public var metadata = ""
    public var participantAttributes: [String: String] = [:]
    public var addTrackRequests: [AddTrackRequest] = []
    /// The first offer, to be answered right after the join response.
    public var publisherOffer: SessionDescription?
    public var reconnect = false
    public var reconnectReason: ReconnectReason = .unknown
    public var participantSid = ""
    public var syncState: SyncState?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "client_info", &clientInfo)
      try f.field(2, "connection_settings", &connectionSettings)
      try f.field(3, "metadata", &metadata)
      try f.field(4, "participant_attributes", &participantAttributes)
      try f.field(5, "add_track_requests", &addTrackRequests)
      try f.field(6, "publisher_offer", &publisherOffer)
      try f.field(7, "reconnect", &reconnect)
      try f.field(8, "reconnect_reason", &reconnectReason)
      try f.field(9, "participant_sid", &participantSid)
      try f.field(10, "sync_state", &syncState)
    }
  }

  /// What a client wants of the server for this connection.
  public struct ConnectionSettings: ProtobufMessage {
    /// Explicit on this path: absent means false.
    public var autoSubscribe = false
    public var adaptiveStream = false
    public var subscriberAllowPause: Bool?
    public var disableIceLite = false
    public var autoSubscribeDataTrack: Bool?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "auto_subscribe", &autoSubscribe)
      try f.field(2, "adaptive_stream", &adaptiveStream)
      try f.field(3, "subscriber_allow_pause", &subscriberAllowPause)
      try f.field(4, "disable_ice_lite", &disableIceLite)
      try f.field(5, "auto_subscribe_data_track", &autoSubscribeDataTrack)
    }
  }

  /// Which program joins.
  public struct ClientInfo: ProtobufMessage {
    /// The library a client is built with.
    public struct SDK: ProtobufEnum {
      public static let unknown = SDK(rawValue: 0)
      public static let js = SDK(rawValue: 1)
      public static let swift = SDK(rawValue: 2)
      public static let android = SDK(rawValue: 3)
      public static let flutter = SDK(rawValue: 4)
      public static let go = SDK(rawValue: 5)
      public static let unity = SDK(rawValue: 6)
      public static let reactNative = SDK(rawValue: 7)
      public static let rust = SDK(rawValue: 8)
      public static let python = SDK(rawValue: 9)
      public static let cpp = SDK(rawValue: 10)
      public static let unityWeb = SDK(rawValue: 11)
      public static let node = SDK(rawValue: 12)
      public static let unreal = SDK(rawValue: 13)
      public static let esp32 = SDK(rawValue: 14)
      public static let dotnet = SDK(rawValue: 15)
      public static let names: KeyValuePairs<Self, String> = [
        .unknown: "UNKNOWN", .js: "JS", .swift: "SWIFT", .android: "ANDROID", .flutter: "FLUTTER", .go: "GO",
        .unity: "UNITY", .reactNative: "REACT_NATIVE", .rust: "RUST", .python: "PYTHON", .cpp: "CPP",
        .unityWeb: "UNITY_WEB", .node: "NODE", .unreal: "UNREAL", .esp32: "ESP32", .dotnet: "DOTNET",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// What a client understands beyond its protocol version.
    public struct Capability: ProtobufEnum {
      public static let unused = Capability(rawValue: 0)
      public static let packetTrailer = Capability(rawValue: 1)
      public static let compressionDeflateRaw = Capability(rawValue: 2)
      public static let names: KeyValuePairs<Self, String> = [
        .unused: "CAP_UNUSED", .packetTrailer: "CAP_PACKET_TRAILER",
        .compressionDeflateRaw: "CAP_COMPRESSION_DEFLATE_RAW",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    public var sdk: SDK = .unknown
    public var version = ""
    public var `protocol`: Int32 = 0
    public var os = ""
    public var osVersion = ""
    public var deviceModel = ""
    public var browser = ""
    public var browserVersion = ""
    public var address = ""
    public var network = ""
    public var otherSdks = ""
    public var clientProtocol: Int32 = 0
    public var capabilities: [Capability] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "sdk", &sdk)
      try f.field(2, "version", &version)
      try f.field(3, "protocol", &`protocol`)
      try f.field(4, "os", &os)
      try f.field(5, "os_version", &osVersion)
      try f.field(6, "device_model", &deviceModel)
      try f.field(7, "browser", &browser)
      try f.field(8, "browser_version", &browserVersion)
      try f.field(9, "address", &address)
      try f.field(10, "network", &network)
      try f.field(11, "other_sdks", &otherSdks)
      try f.field(12, "client_protocol", &clientProtocol)
      try f.field(13, "capabilities", &capabilities)
    }
  }

  /// The first frame a server sends.
  public struct JoinResponse: ProtobufMessage {
    public var room: Room?
    public var participant: ParticipantInfo?
    public var otherParticipants: [ParticipantInfo] = []
    public var serverVersion = ""
    public var iceServers: [ICEServer] = []
    public var subscriberPrimary = false
    public var alternativeUrl = ""
    public var clientConfiguration: ClientConfiguration?
    public var serverRegion = ""
    /// Seconds; zero kills the link at once.
    public var pingTimeout: Int32 = 0
    /// Seconds; zero stops some clients with an error.
    public var pingInterval: Int32 = 0
    public var serverInfo: ServerInfo?
    /// Left empty: a server that may inject plain frames cannot be trusted with encrypted ones.
    public var sifTrailer: [UInt8] = []
    public var enabledPublishCodecs: [Codec] = []
    public var fastPublish = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "participant", &participant)
      try f.field(3, "other_participants", &otherParticipants)
      try f.field(4, "server_version", &serverVersion)
      try f.field(5, "ice_servers", &iceServers)
      try f.field(6, "subscriber_primary", &subscriberPrimary)
      try f.field(7, "alternative_url", &alternativeUrl)
      try f.field(8, "client_configuration", &clientConfiguration)
      try f.field(9, "server_region", &serverRegion)
      try f.field(10, "ping_timeout", &pingTimeout)
      try f.field(11, "ping_interval", &pingInterval)
      try f.field(12, "server_info", &serverInfo)
      try f.field(13, "sif_trailer", &sifTrailer)
      try f.field(14, "enabled_publish_codecs", &enabledPublishCodecs)
      try f.field(15, "fast_publish", &fastPublish)
    }
  }

  /// The first frame a server sends when a session resumes.
  public struct ReconnectResponse: ProtobufMessage {
    public var iceServers: [ICEServer] = []
    public var clientConfiguration: ClientConfiguration?
    public var serverInfo: ServerInfo?
    public var lastMessageSeq: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "ice_servers", &iceServers)
      try f.field(2, "client_configuration", &clientConfiguration)
      try f.field(3, "server_info", &serverInfo)
      try f.field(4, "last_message_seq", &lastMessageSeq)
    }
  }

  /// Which program answers.
  public struct ServerInfo: ProtobufMessage {
    /// Self-hosted or not.
    public struct Edition: ProtobufEnum {
      public static let standard = Edition(rawValue: 0)
      public static let cloud = Edition(rawValue: 1)
      public static let names: KeyValuePairs<Self, String> = [.standard: "Standard", .cloud: "Cloud"]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    public var edition: Edition = .standard
    public var version = ""
    /// Below 18, clients open their data channels in band; see `LiveKit.serverProtocol(for:)`.
    public var `protocol`: Int32 = 0
    public var region = ""
    public var nodeId = ""
    public var debugInfo = ""
    public var agentProtocol: Int32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "edition", &edition)
      try f.field(2, "version", &version)
      try f.field(3, "protocol", &`protocol`)
      try f.field(4, "region", &region)
      try f.field(5, "node_id", &nodeId)
      try f.field(6, "debug_info", &debugInfo)
      try f.field(7, "agent_protocol", &agentProtocol)
    }
  }

  /// A STUN or TURN server and its credentials.
  public struct ICEServer: ProtobufMessage {
    /// `stun:` and `turn:` addresses.
    public var urls: [String] = []
    public var username = ""
    public var credential = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "urls", &urls)
      try f.field(2, "username", &username)
      try f.field(3, "credential", &credential)
    }
  }

  /// What a server asks of this kind of client.
  public struct ClientConfiguration: ProtobufMessage {
    public var video: VideoConfiguration?
    public var screen: VideoConfiguration?
    public var resumeConnection: ClientConfigSetting = .unset
    public var disabledCodecs: DisabledCodecs?
    public var forceRelay: ClientConfigSetting = .unset

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "video", &video)
      try f.field(2, "screen", &screen)
      try f.field(3, "resume_connection", &resumeConnection)
      try f.field(4, "disabled_codecs", &disabledCodecs)
      try f.field(5, "force_relay", &forceRelay)
    }
  }

  /// How a client should encode.
  public struct VideoConfiguration: ProtobufMessage {
    public var hardwareEncoder: ClientConfigSetting = .unset

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "hardware_encoder", &hardwareEncoder)
    }
  }

  /// Codecs that this kind of client must not use.
  public struct DisabledCodecs: ProtobufMessage {
    public var codecs: [Codec] = []
    public var publish: [Codec] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "codecs", &codecs)
      try f.field(2, "publish", &publish)
    }
  }
}
