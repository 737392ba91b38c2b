// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: The life of the signal link

extension LiveKit {
  /// The end of a session, and what to do next.
  public struct LeaveRequest: ProtobufMessage {
    /// What the client does next.
    public struct Action: ProtobufEnum {
      public static let disconnect = Action(rawValue: 0)
      public static let resume = Action(rawValue: 1)
      public static let reconnect = Action(rawValue: 2)
      public static let names: KeyValuePairs<Self, String> = [
        .disconnect: "DISCONNECT", .resume: "RESUME", .reconnect: "RECONNECT",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    public var canReconnect = false
    public var reason: DisconnectReason = .unknownReason
    public var action: Action = .disconnect
    public var regions: RegionSettings?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "can_reconnect", &canReconnect)
      try f.field(2, "reason", &reason)
      try f.field(3, "action", &action)
      try f.field(4, "regions", &regions)
    }
  }

  /// Servers to try instead.
  public struct RegionSettings: ProtobufMessage {
    public var regions: [RegionInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "regions", &regions)
    }
  }

  /// A server near the client.
  public struct RegionInfo: ProtobufMessage {
    public var region = ""
    public var url = ""
    public var distance: Int64 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "region", &region)
      try f.field(2, "url", &url)
      try f.field(3, "distance", &distance)
    }
  }

  /// A heart-beat; its answer is `Pong`.
  public struct Ping: ProtobufMessage {
    /// Unix milliseconds on the sender's clock.
    public var timestamp: Int64 = 0
    /// Milliseconds.
    public var rtt: Int64 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "timestamp", &timestamp)
      try f.field(2, "rtt", &rtt)
    }
  }

  /// The answer to `Ping`.
  public struct Pong: ProtobufMessage {
    /// Copied from the ping.
    public var lastPingTimestamp: Int64 = 0
    /// Unix milliseconds.
    public var timestamp: Int64 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "last_ping_timestamp", &lastPingTimestamp)
      try f.field(2, "timestamp", &timestamp)
    }
  }

  /// A fault the client asks for, in tests.
  public struct SimulateScenario: ProtobufMessage {
    /// What it carries.
    public enum Scenario: Equatable, Sendable {
      case speakerUpdate(Int32)
      case nodeFailure(Bool)
      case migration(Bool)
      case serverLeave(Bool)
      case switchCandidateProtocol(CandidateProtocol)
      case subscriberBandwidth(Int64)
      case disconnectSignalOnResume(Bool)
      case disconnectSignalOnResumeNoMessages(Bool)
      case leaveRequestFullReconnect(Bool)

      public var speakerUpdate: Int32? { if case .speakerUpdate(let it) = self { it } else { nil } }
      public var nodeFailure: Bool? { if case .nodeFailure(let it) = self { it } else { nil } }
      public var migration: Bool? { if case .migration(let it) = self { it } else { nil } }
      public var serverLeave: Bool? { if case .serverLeave(let it) = self { it } else { nil } }
      public var switchCandidateProtocol: CandidateProtocol? {
        if case .switchCandidateProtocol(let it) = self { it } else { nil }
      }
      public var subscriberBandwidth: Int64? {
        if case .subscriberBandwidth(let it) = self { it } else { nil }
      }
      public var disconnectSignalOnResume: Bool? {
        if case .disconnectSignalOnResume(let it) = self { it } else { nil }
      }
      public var disconnectSignalOnResumeNoMessages: Bool? {
        if case .disconnectSignalOnResumeNoMessages(let it) = self { it } else { nil }
      }
      public var leaveRequestFullReconnect: Bool? {
        if case .leaveRequestFullReconnect(let it) = self { it } else { nil }
      }
    }

    public var scenario: Scenario?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.oneof(1, "speaker_update", &scenario, Scenario.speakerUpdate) { $0?.speakerUpdate }
      try f.oneof(2, "node_failure", &scenario, Scenario.nodeFailure) { $0?.nodeFailure }
      try f.oneof(3, "migration", &scenario, Scenario.migration) { $0?.migration }
      try f.oneof(4, "server_leave", &scenario, Scenario.serverLeave) { $0?.serverLeave }
      try f.oneof(
        5, "switch_candidate_protocol", &scenario, Scenario.switchCandidateProtocol
      ) { $0?.switchCandidateProtocol }
      try f.oneof(6, "subscriber_bandwidth", &scenario, Scenario.subscriberBandwidth) {
        $0?.subscriberBandwidth
      }
      try f.oneof(
        7, "disconnect_signal_on_resume", &scenario, Scenario.disconnectSignalOnResume
      ) { $0?.disconnectSignalOnResume }
      try f.oneof(
        8, "disconnect_signal_on_resume_no_messages", &scenario, Scenario.disconnectSignalOnResumeNoMessages
      ) { $0?.disconnectSignalOnResumeNoMessages }
      try f.oneof(
        9, "leave_request_full_reconnect", &scenario, Scenario.leaveRequestFullReconnect
      ) { $0?.leaveRequestFullReconnect }
    }
  }

  /// Whether a request was carried out.
  public struct RequestResponse: ProtobufMessage {
    /// What came of a request.
    public struct Reason: ProtobufEnum {
      public static let ok = Reason(rawValue: 0)
      public static let notFound = Reason(rawValue: 1)
      public static let notAllowed = Reason(rawValue: 2)
      public static let limitExceeded = Reason(rawValue: 3)
      public static let queued = Reason(rawValue: 4)
      public static let unsupportedType = Reason(rawValue: 5)
      public static let unclassifiedError = Reason(rawValue: 6)
      public static let invalidHandle = Reason(rawValue: 7)
      public static let invalidName = Reason(rawValue: 8)
      public static let duplicateHandle = Reason(rawValue: 9)
      public static let duplicateName = Reason(rawValue: 10)
      public static let invalidRequest = Reason(rawValue: 11)
      public static let names: KeyValuePairs<Self, String> = [
        .ok: "OK", .notFound: "NOT_FOUND", .notAllowed: "NOT_ALLOWED", .limitExceeded: "LIMIT_EXCEEDED",
        .queued: "QUEUED", .unsupportedType: "UNSUPPORTED_TYPE", .unclassifiedError: "UNCLASSIFIED_ERROR",
        .invalidHandle: "INVALID_HANDLE", .invalidName: "INVALID_NAME", .duplicateHandle: "DUPLICATE_HANDLE",
        .duplicateName: "DUPLICATE_NAME", .invalidRequest: "INVALID_REQUEST",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// What it carries.
    public enum Request: Equatable, Sendable {
      case trickle(TrickleRequest)
      case addTrack(AddTrackRequest)
      case mute(MuteTrackRequest)
      case updateMetadata(UpdateParticipantMetadata)
      case updateAudioTrack(UpdateLocalAudioTrack)
      case updateVideoTrack(UpdateLocalVideoTrack)
      case publishDataTrack(PublishDataTrackRequest)
      case unpublishDataTrack(UnpublishDataTrackRequest)

      public var trickle: TrickleRequest? { if case .trickle(let it) = self { it } else { nil } }
      public var addTrack: AddTrackRequest? { if case .addTrack(let it) = self { it } else { nil } }
      public var mute: MuteTrackRequest? { if case .mute(let it) = self { it } else { nil } }
      public var updateMetadata: UpdateParticipantMetadata? {
        if case .updateMetadata(let it) = self { it } else { nil }
      }
      public var updateAudioTrack: UpdateLocalAudioTrack? {
        if case .updateAudioTrack(let it) = self { it } else { nil }
      }
      public var updateVideoTrack: UpdateLocalVideoTrack? {
        if case .updateVideoTrack(let it) = self { it } else { nil }
      }
      public var publishDataTrack: PublishDataTrackRequest? {
        if case .publishDataTrack(let it) = self { it } else { nil }
      }
      public var unpublishDataTrack: UnpublishDataTrackRequest? {
        if case .unpublishDataTrack(let it) = self { it } else { nil }
      }
    }

    public var requestId: UInt32 = 0
    public var reason: Reason = .ok
    public var message = ""
    public var request: Request?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "request_id", &requestId)
      try f.field(2, "reason", &reason)
      try f.field(3, "message", &message)
      try f.oneof(4, "trickle", &request, Request.trickle) { $0?.trickle }
      try f.oneof(5, "add_track", &request, Request.addTrack) { $0?.addTrack }
      try f.oneof(6, "mute", &request, Request.mute) { $0?.mute }
      try f.oneof(7, "update_metadata", &request, Request.updateMetadata) { $0?.updateMetadata }
      try f.oneof(8, "update_audio_track", &request, Request.updateAudioTrack) { $0?.updateAudioTrack }
      try f.oneof(9, "update_video_track", &request, Request.updateVideoTrack) { $0?.updateVideoTrack }
      try f.oneof(10, "publish_data_track", &request, Request.publishDataTrack) { $0?.publishDataTrack }
      try f.oneof(11, "unpublish_data_track", &request, Request.unpublishDataTrack) { $0?.unpublishDataTrack }
    }
  }
}
