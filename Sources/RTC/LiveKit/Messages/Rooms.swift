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
      try f.field(1, "sid", &sid)
      try f.field(2, "name", &name)
      try f.field(3, "empty_timeout", &emptyTimeout)
      try f.field(4, "max_participants", &maxParticipants)
      try f.field(5, "creation_time", &creationTime)
      try f.field(6, "turn_password", &turnPassword)
      try f.field(7, "enabled_codecs", &enabledCodecs)
      try f.field(8, "metadata", &metadata)
      try f.field(9, "num_participants", &numParticipants)
      try f.field(10, "active_recording", &activeRecording)
      try f.field(11, "num_publishers", &numPublishers)
      try f.field(13, "version", &version)
      try f.field(14, "departure_timeout", &departureTimeout)
      try f.field(15, "creation_time_ms", &creationTimeMs)
    }
  }

  /// The room changed.
  public struct RoomUpdate: ProtobufMessage {
    public var room: Room?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
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
      try f.field(1, "room", &room)
      try f.field(2, "token", &token)
      try f.field(3, "participant", &participant)
      try f.field(4, "other_participants", &otherParticipants)
    }
  }

  /// Orders changes made on several servers.
  public struct TimedVersion: ProtobufMessage {
    public var unixMicro: Int64 = 0
    public var ticks: Int32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "unix_micro", &unixMicro)
      try f.field(2, "ticks", &ticks)
    }
  }

  /// A codec by its media type.
  public struct Codec: ProtobufMessage {
    public var mime = ""
    public var fmtpLine = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "mime", &mime)
      try f.field(2, "fmtp_line", &fmtpLine)
    }
  }

  /// How long receivers should buffer, in milliseconds.
  public struct PlayoutDelay: ProtobufMessage {
    public var enabled = false
    public var min: UInt32 = 0
    public var max: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "enabled", &enabled)
      try f.field(2, "min", &min)
      try f.field(3, "max", &max)
    }
  }
}
