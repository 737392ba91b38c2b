// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Rooms

extension LiveKit {
  /// A room as its participants see it.
  public struct Room: ProtobufMessage {
    public var sid = ""
    public var name = ""
    /// Seconds.
    public var emptyTimeout: UInt32 = 0
    public var maxParticipants: UInt32 = 0
    public var creationTime: Int64 = 0
    public var turnPassword = ""
    public var enabledCodecs: [Codec] = []
    public var metadata = ""
    public var numParticipants: UInt32 = 0
    public var activeRecording = false
    public var numPublishers: UInt32 = 0
    public var version: TimedVersion?
    /// Seconds.
    public var departureTimeout: UInt32 = 0
    public var creationTimeMs: Int64 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &sid)
      try f.field(2, &name)
      try f.field(3, &emptyTimeout)
      try f.field(4, &maxParticipants)
      try f.field(5, &creationTime)
      try f.field(6, &turnPassword)
      try f.field(7, &enabledCodecs)
      try f.field(8, &metadata)
      try f.field(9, &numParticipants)
      try f.field(10, &activeRecording)
      try f.field(11, &numPublishers)
      try f.field(13, &version)
      try f.field(14, &departureTimeout)
      try f.field(15, &creationTimeMs)
    }
  }

  /// The room changed.
  public struct RoomUpdate: ProtobufMessage {
    public var room: Room?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &room)
    }
  }

  /// The participant is in another room now.
  public struct RoomMovedResponse: ProtobufMessage {
    public var room: Room?
    public var token = ""
    public var participant: ParticipantInfo?
    public var otherParticipants: [ParticipantInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &room)
      try f.field(2, &token)
      try f.field(3, &participant)
      try f.field(4, &otherParticipants)
    }
  }

  /// Orders changes made on several servers.
  public struct TimedVersion: ProtobufMessage {
    public var unixMicro: Int64 = 0
    public var ticks: Int32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &unixMicro)
      try f.field(2, &ticks)
    }
  }

  /// A codec by its media type.
  public struct Codec: ProtobufMessage {
    public var mime = ""
    public var fmtpLine = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &mime)
      try f.field(2, &fmtpLine)
    }
  }

  /// How long receivers should buffer, in milliseconds.
  public struct PlayoutDelay: ProtobufMessage {
    public var enabled = false
    public var min: UInt32 = 0
    public var max: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &enabled)
      try f.field(2, &min)
      try f.field(3, &max)
    }
  }
}
