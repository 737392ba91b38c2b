// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: How a room is set up

extension LiveKit {
  /// What a room starts with; also the `roomConfig` claim of an access token.
  public struct RoomConfiguration: ProtobufMessage {
    public var name = ""
    /// Seconds without anyone, before the first came.
    public var emptyTimeout: UInt32 = 0
    /// Seconds without anyone, after the last left.
    public var departureTimeout: UInt32 = 0
    public var maxParticipants: UInt32 = 0
    /// Not read: this server records nothing.
    public var egress: OpaqueMessage?
    /// Milliseconds.
    public var minPlayoutDelay: UInt32 = 0
    /// Milliseconds.
    public var maxPlayoutDelay: UInt32 = 0
    public var syncStreams = false
    /// Not read: this server starts no agents.
    public var agents: [OpaqueMessage] = []
    public var metadata = ""
    public var tags: [String: String] = [:]

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "name", &name)
      try f.field(2, "empty_timeout", &emptyTimeout)
      try f.field(3, "departure_timeout", &departureTimeout)
      try f.field(4, "max_participants", &maxParticipants)
      try f.field(5, "egress", &egress)
      try f.field(7, "min_playout_delay", &minPlayoutDelay)
      try f.field(8, "max_playout_delay", &maxPlayoutDelay)
      try f.field(9, "sync_streams", &syncStreams)
      try f.field(10, "agents", &agents)
      try f.field(11, "metadata", &metadata)
      try f.field(12, "tags", &tags)
    }
  }

  /// A message of a part of LiveKit that this server does not have: recording, streaming in, telephony, agents.
  /// It passes as bytes on the wire; in JSON its members are skipped.
  public struct OpaqueMessage: ProtobufMessage {
    public var bytes: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.unknown(&bytes)
    }
  }
}
