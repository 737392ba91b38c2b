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

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    public var canReconnect = false
    public var reason: DisconnectReason = .unknownReason
    public var action: Action = .disconnect
    public var regions: RegionSettings?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &canReconnect)
      try f.field(2, &reason)
      try f.field(3, &action)
      try f.field(4, &regions)
    }
  }

  /// Servers to try instead.
  public struct RegionSettings: ProtobufMessage {
    public var regions: [RegionInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &regions)
    }
  }

  /// A server near the client.
  public struct RegionInfo: ProtobufMessage {
    public var region = ""
    public var url = ""
    public var distance: Int64 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &region)
      try f.field(2, &url)
      try f.field(3, &distance)
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
      try f.field(1, &timestamp)
      try f.field(2, &rtt)
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
      try f.field(1, &lastPingTimestamp)
      try f.field(2, &timestamp)
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
    }

    public var scenario: Scenario?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      switch f.decoding {
      case 0:
        switch scenario {
        case .speakerUpdate(let value): f.put(1, value)
        case .nodeFailure(let value): f.put(2, value)
        case .migration(let value): f.put(3, value)
        case .serverLeave(let value): f.put(4, value)
        case .switchCandidateProtocol(let value): f.put(5, value)
        case .subscriberBandwidth(let value): f.put(6, value)
        case .disconnectSignalOnResume(let value): f.put(7, value)
        case .disconnectSignalOnResumeNoMessages(let value): f.put(8, value)
        case .leaveRequestFullReconnect(let value): f.put(9, value)
        case nil: break
        }
      case 1: scenario = .speakerUpdate(try f.take())
      case 2: scenario = .nodeFailure(try f.take())
      case 3: scenario = .migration(try f.take())
      case 4: scenario = .serverLeave(try f.take())
      case 5: scenario = .switchCandidateProtocol(try f.take())
      case 6: scenario = .subscriberBandwidth(try f.take())
      case 7: scenario = .disconnectSignalOnResume(try f.take())
      case 8: scenario = .disconnectSignalOnResumeNoMessages(try f.take())
      case 9: scenario = .leaveRequestFullReconnect(try f.take())
      default: break
      }
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
    }

    public var requestId: UInt32 = 0
    public var reason: Reason = .ok
    public var message = ""
    public var request: Request?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &requestId)
      try f.field(2, &reason)
      try f.field(3, &message)
      switch f.decoding {
      case 0:
        switch request {
        case .trickle(let value): f.put(4, value)
        case .addTrack(let value): f.put(5, value)
        case .mute(let value): f.put(6, value)
        case .updateMetadata(let value): f.put(7, value)
        case .updateAudioTrack(let value): f.put(8, value)
        case .updateVideoTrack(let value): f.put(9, value)
        case .publishDataTrack(let value): f.put(10, value)
        case .unpublishDataTrack(let value): f.put(11, value)
        case nil: break
        }
      case 4: request = .trickle(try f.take())
      case 5: request = .addTrack(try f.take())
      case 6: request = .mute(try f.take())
      case 7: request = .updateMetadata(try f.take())
      case 8: request = .updateAudioTrack(try f.take())
      case 9: request = .updateVideoTrack(try f.take())
      case 10: request = .publishDataTrack(try f.take())
      case 11: request = .unpublishDataTrack(try f.take())
      default: break
      }
    }
  }
}
