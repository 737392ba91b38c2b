// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Enumerations that several messages use

extension LiveKit {
  /// Whether a track is heard, seen or read.
  public struct TrackType: ProtobufEnum {
    public static let audio = TrackType(rawValue: 0)
    public static let video = TrackType(rawValue: 1)
    public static let data = TrackType(rawValue: 2)
    public static let names: KeyValuePairs<Self, String> = [.audio: "AUDIO", .video: "VIDEO", .data: "DATA"]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// Where a track is captured.
  public struct TrackSource: ProtobufEnum {
    public static let unknown = TrackSource(rawValue: 0)
    public static let camera = TrackSource(rawValue: 1)
    public static let microphone = TrackSource(rawValue: 2)
    public static let screenShare = TrackSource(rawValue: 3)
    public static let screenShareAudio = TrackSource(rawValue: 4)
    public static let names: KeyValuePairs<Self, String> = [
      .unknown: "UNKNOWN", .camera: "CAMERA", .microphone: "MICROPHONE", .screenShare: "SCREEN_SHARE",
      .screenShareAudio: "SCREEN_SHARE_AUDIO",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// A simulcast layer by its size.
  public struct VideoQuality: ProtobufEnum {
    public static let low = VideoQuality(rawValue: 0)
    public static let medium = VideoQuality(rawValue: 1)
    public static let high = VideoQuality(rawValue: 2)
    public static let off = VideoQuality(rawValue: 3)
    public static let names: KeyValuePairs<Self, String> = [
      .low: "LOW", .medium: "MEDIUM", .high: "HIGH", .off: "OFF",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// How good a participant's connection is.
  public struct ConnectionQuality: ProtobufEnum {
    public static let poor = ConnectionQuality(rawValue: 0)
    public static let good = ConnectionQuality(rawValue: 1)
    public static let excellent = ConnectionQuality(rawValue: 2)
    public static let lost = ConnectionQuality(rawValue: 3)
    public static let names: KeyValuePairs<Self, String> = [
      .poor: "POOR", .good: "GOOD", .excellent: "EXCELLENT", .lost: "LOST",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// How frames are encrypted end to end; ours is `custom`.
  public struct EncryptionType: ProtobufEnum {
    public static let none = EncryptionType(rawValue: 0)
    public static let gcm = EncryptionType(rawValue: 1)
    public static let custom = EncryptionType(rawValue: 2)
    public static let names: KeyValuePairs<Self, String> = [.none: "NONE", .gcm: "GCM", .custom: "CUSTOM"]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// What the capture of an audio track does.
  public struct AudioTrackFeature: ProtobufEnum {
    public static let stereo = AudioTrackFeature(rawValue: 0)
    public static let noDtx = AudioTrackFeature(rawValue: 1)
    public static let autoGainControl = AudioTrackFeature(rawValue: 2)
    public static let echoCancellation = AudioTrackFeature(rawValue: 3)
    public static let noiseSuppression = AudioTrackFeature(rawValue: 4)
    public static let enhancedNoiseCancellation = AudioTrackFeature(rawValue: 5)
    public static let preconnectBuffer = AudioTrackFeature(rawValue: 6)
    public static let names: KeyValuePairs<Self, String> = [
      .stereo: "TF_STEREO", .noDtx: "TF_NO_DTX", .autoGainControl: "TF_AUTO_GAIN_CONTROL",
      .echoCancellation: "TF_ECHO_CANCELLATION", .noiseSuppression: "TF_NOISE_SUPPRESSION",
      .enhancedNoiseCancellation: "TF_ENHANCED_NOISE_CANCELLATION",
      .preconnectBuffer: "TF_PRECONNECT_BUFFER",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// What a sender appends to its frames, unencrypted.
  public struct PacketTrailerFeature: ProtobufEnum {
    public static let userTimestamp = PacketTrailerFeature(rawValue: 0)
    public static let frameId = PacketTrailerFeature(rawValue: 1)
    public static let userData = PacketTrailerFeature(rawValue: 2)
    public static let names: KeyValuePairs<Self, String> = [
      .userTimestamp: "PTF_USER_TIMESTAMP", .frameId: "PTF_FRAME_ID", .userData: "PTF_USER_DATA",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// What happens when a subscriber cannot decode the first codec.
  public struct BackupCodecPolicy: ProtobufEnum {
    public static let preferRegression = BackupCodecPolicy(rawValue: 0)
    public static let simulcast = BackupCodecPolicy(rawValue: 1)
    public static let regression = BackupCodecPolicy(rawValue: 2)
    public static let names: KeyValuePairs<Self, String> = [
      .preferRegression: "PREFER_REGRESSION", .simulcast: "SIMULCAST", .regression: "REGRESSION",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// Whether the server forwards a track or has paused it for bandwidth.
  public struct StreamState: ProtobufEnum {
    public static let active = StreamState(rawValue: 0)
    public static let paused = StreamState(rawValue: 1)
    public static let names: KeyValuePairs<Self, String> = [.active: "ACTIVE", .paused: "PAUSED"]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// Which of the two peer connections of the older path; the newer path has the first alone.
  public struct SignalTarget: ProtobufEnum {
    public static let publisher = SignalTarget(rawValue: 0)
    public static let subscriber = SignalTarget(rawValue: 1)
    public static let names: KeyValuePairs<Self, String> = [
      .publisher: "PUBLISHER", .subscriber: "SUBSCRIBER",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// A transport to switch to, in tests.
  public struct CandidateProtocol: ProtobufEnum {
    public static let udp = CandidateProtocol(rawValue: 0)
    public static let tcp = CandidateProtocol(rawValue: 1)
    public static let tls = CandidateProtocol(rawValue: 2)
    public static let names: KeyValuePairs<Self, String> = [.udp: "UDP", .tcp: "TCP", .tls: "TLS"]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// Why a participant left.
  public struct DisconnectReason: ProtobufEnum {
    public static let unknownReason = DisconnectReason(rawValue: 0)
    public static let clientInitiated = DisconnectReason(rawValue: 1)
    public static let duplicateIdentity = DisconnectReason(rawValue: 2)
    public static let serverShutdown = DisconnectReason(rawValue: 3)
    public static let participantRemoved = DisconnectReason(rawValue: 4)
    public static let roomDeleted = DisconnectReason(rawValue: 5)
    public static let stateMismatch = DisconnectReason(rawValue: 6)
    public static let joinFailure = DisconnectReason(rawValue: 7)
    public static let migration = DisconnectReason(rawValue: 8)
    public static let signalClose = DisconnectReason(rawValue: 9)
    public static let roomClosed = DisconnectReason(rawValue: 10)
    public static let userUnavailable = DisconnectReason(rawValue: 11)
    public static let userRejected = DisconnectReason(rawValue: 12)
    public static let sipTrunkFailure = DisconnectReason(rawValue: 13)
    public static let connectionTimeout = DisconnectReason(rawValue: 14)
    public static let mediaFailure = DisconnectReason(rawValue: 15)
    public static let agentError = DisconnectReason(rawValue: 16)
    public static let names: KeyValuePairs<Self, String> = [
      .unknownReason: "UNKNOWN_REASON", .clientInitiated: "CLIENT_INITIATED",
      .duplicateIdentity: "DUPLICATE_IDENTITY", .serverShutdown: "SERVER_SHUTDOWN",
      .participantRemoved: "PARTICIPANT_REMOVED", .roomDeleted: "ROOM_DELETED",
      .stateMismatch: "STATE_MISMATCH", .joinFailure: "JOIN_FAILURE", .migration: "MIGRATION",
      .signalClose: "SIGNAL_CLOSE", .roomClosed: "ROOM_CLOSED", .userUnavailable: "USER_UNAVAILABLE",
      .userRejected: "USER_REJECTED", .sipTrunkFailure: "SIP_TRUNK_FAILURE",
      .connectionTimeout: "CONNECTION_TIMEOUT", .mediaFailure: "MEDIA_FAILURE", .agentError: "AGENT_ERROR",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// Why a client comes back.
  public struct ReconnectReason: ProtobufEnum {
    public static let unknown = ReconnectReason(rawValue: 0)
    public static let signalDisconnected = ReconnectReason(rawValue: 1)
    public static let publisherFailed = ReconnectReason(rawValue: 2)
    public static let subscriberFailed = ReconnectReason(rawValue: 3)
    public static let switchCandidate = ReconnectReason(rawValue: 4)
    public static let names: KeyValuePairs<Self, String> = [
      .unknown: "RR_UNKNOWN", .signalDisconnected: "RR_SIGNAL_DISCONNECTED",
      .publisherFailed: "RR_PUBLISHER_FAILED", .subscriberFailed: "RR_SUBSCRIBER_FAILED",
      .switchCandidate: "RR_SWITCH_CANDIDATE",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// Why a subscription failed.
  public struct SubscriptionError: ProtobufEnum {
    public static let unknown = SubscriptionError(rawValue: 0)
    public static let codecUnsupported = SubscriptionError(rawValue: 1)
    public static let trackNotfound = SubscriptionError(rawValue: 2)
    public static let names: KeyValuePairs<Self, String> = [
      .unknown: "SE_UNKNOWN", .codecUnsupported: "SE_CODEC_UNSUPPORTED", .trackNotfound: "SE_TRACK_NOTFOUND",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// A setting that may be left to the client.
  public struct ClientConfigSetting: ProtobufEnum {
    public static let unset = ClientConfigSetting(rawValue: 0)
    public static let disabled = ClientConfigSetting(rawValue: 1)
    public static let enabled = ClientConfigSetting(rawValue: 2)
    public static let names: KeyValuePairs<Self, String> = [
      .unset: "UNSET", .disabled: "DISABLED", .enabled: "ENABLED",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// The ids of a data track packet's extensions.
  public struct DataTrackExtensionID: ProtobufEnum {
    public static let invalid = DataTrackExtensionID(rawValue: 0)
    public static let e2ee = DataTrackExtensionID(rawValue: 1)
    public static let userTimestamp = DataTrackExtensionID(rawValue: 2)
    public static let participantSid = DataTrackExtensionID(rawValue: 255)
    public static let names: KeyValuePairs<Self, String> = [
      .invalid: "DTEI_INVALID", .e2ee: "DTEI_E2EE", .userTimestamp: "DTEI_USER_TIMESTAMP",
      .participantSid: "DTEI_PARTICIPANT_SID",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }

  /// The stream ids of data channels that both sides open without a handshake (protocol 18).
  public struct NegotiatedDataChannelID: ProtobufEnum {
    public static let invalid = NegotiatedDataChannelID(rawValue: 0)
    public static let reliable = NegotiatedDataChannelID(rawValue: 100)
    public static let lossy = NegotiatedDataChannelID(rawValue: 101)
    public static let dataTrack = NegotiatedDataChannelID(rawValue: 102)
    public static let names: KeyValuePairs<Self, String> = [
      .invalid: "NDCI_INVALID", .reliable: "NDCI_RELIABLE", .lossy: "NDCI_LOSSY",
      .dataTrack: "NDCI_DATA_TRACK",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }
}
