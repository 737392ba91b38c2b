// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Requests and responses of the RoomService

extension LiveKit {
  /// Makes a room, or returns the one that is there.
  public struct CreateRoomRequest: ProtobufMessage {
    public var name = ""
    /// Seconds without anyone, before the first came.
    public var emptyTimeout: UInt32 = 0
    public var maxParticipants: UInt32 = 0
    public var nodeId = ""
    public var metadata = ""
    /// Not read: this server records nothing.
    public var egress: OpaqueMessage?
    /// Milliseconds.
    public var minPlayoutDelay: UInt32 = 0
    /// Milliseconds.
    public var maxPlayoutDelay: UInt32 = 0
    public var syncStreams = false
    /// Seconds without anyone, after the last left.
    public var departureTimeout: UInt32 = 0
    public var roomPreset = ""
    public var replayEnabled = false
    /// Not read: this server starts no agents.
    public var agents: [OpaqueMessage] = []
    public var tags: [String: String] = [:]

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "name", &name)
      try f.field(2, "empty_timeout", &emptyTimeout)
      try f.field(3, "max_participants", &maxParticipants)
      try f.field(4, "node_id", &nodeId)
      try f.field(5, "metadata", &metadata)
      try f.field(6, "egress", &egress)
      try f.field(7, "min_playout_delay", &minPlayoutDelay)
      try f.field(8, "max_playout_delay", &maxPlayoutDelay)
      try f.field(9, "sync_streams", &syncStreams)
      try f.field(10, "departure_timeout", &departureTimeout)
      try f.field(12, "room_preset", &roomPreset)
      try f.field(13, "replay_enabled", &replayEnabled)
      try f.field(14, "agents", &agents)
      try f.field(15, "tags", &tags)
    }
  }

  /// Which rooms there are.
  public struct ListRoomsRequest: ProtobufMessage {
    /// All rooms when empty.
    public var names: [String] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "names", &names)
    }
  }

  /// The rooms.
  public struct ListRoomsResponse: ProtobufMessage {
    public var rooms: [Room] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "rooms", &rooms)
    }
  }

  /// Ends a room and disconnects everyone.
  public struct DeleteRoomRequest: ProtobufMessage {
    public var room = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
    }
  }

  /// The room has ended.
  public struct DeleteRoomResponse: ProtobufMessage {
    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {}
  }

  /// Who is in a room.
  public struct ListParticipantsRequest: ProtobufMessage {
    public var room = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
    }
  }

  /// The participants.
  public struct ListParticipantsResponse: ProtobufMessage {
    public var participants: [ParticipantInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "participants", &participants)
    }
  }

  /// Names a participant: to look at, or to remove.
  public struct RoomParticipantIdentity: ProtobufMessage {
    public var room = ""
    public var identity = ""
    /// Unix seconds; tokens issued before are void.
    public var revokeTokenTs: Int64 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "identity", &identity)
      try f.field(3, "revoke_token_ts", &revokeTokenTs)
    }
  }

  /// The participant is out.
  public struct RemoveParticipantResponse: ProtobufMessage {
    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {}
  }

  /// Mutes a published track, or unmutes it.
  public struct MuteRoomTrackRequest: ProtobufMessage {
    public var room = ""
    public var identity = ""
    public var trackSid = ""
    public var muted = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "identity", &identity)
      try f.field(3, "track_sid", &trackSid)
      try f.field(4, "muted", &muted)
    }
  }

  /// The track as it is now.
  public struct MuteRoomTrackResponse: ProtobufMessage {
    public var track: TrackInfo?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track", &track)
    }
  }

  /// Changes what a participant is called and may do; an empty attribute deletes its key.
  public struct UpdateParticipantRequest: ProtobufMessage {
    public var room = ""
    public var identity = ""
    public var metadata = ""
    public var permission: ParticipantPermission?
    public var name = ""
    public var attributes: [String: String] = [:]

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "identity", &identity)
      try f.field(3, "metadata", &metadata)
      try f.field(4, "permission", &permission)
      try f.field(5, "name", &name)
      try f.field(6, "attributes", &attributes)
    }
  }

  /// Subscribes a participant to tracks, or unsubscribes it.
  public struct UpdateSubscriptionsRequest: ProtobufMessage {
    public var room = ""
    public var identity = ""
    public var trackSids: [String] = []
    public var subscribe = false
    public var participantTracks: [ParticipantTracks] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "identity", &identity)
      try f.field(3, "track_sids", &trackSids)
      try f.field(4, "subscribe", &subscribe)
      try f.field(5, "participant_tracks", &participantTracks)
    }
  }

  /// The subscriptions have changed.
  public struct UpdateSubscriptionsResponse: ProtobufMessage {
    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {}
  }

  /// Sends a data packet into a room.
  public struct SendDataRequest: ProtobufMessage {
    public var room = ""
    public var data: [UInt8] = []
    public var kind: DataPacket.Kind = .reliable
    public var destinationSids: [String] = []
    public var topic: String?
    public var destinationIdentities: [String] = []
    /// Empty, or sixteen bytes that tell a repetition from a new packet.
    public var nonce: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "data", &data)
      try f.field(3, "kind", &kind)
      try f.field(4, "destination_sids", &destinationSids)
      try f.field(5, "topic", &topic)
      try f.field(6, "destination_identities", &destinationIdentities)
      try f.field(7, "nonce", &nonce)
    }
  }

  /// The packet is on its way.
  public struct SendDataResponse: ProtobufMessage {
    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {}
  }

  /// Replaces a room's metadata.
  public struct UpdateRoomMetadataRequest: ProtobufMessage {
    public var room = ""
    public var metadata = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "metadata", &metadata)
    }
  }

  /// Shows a participant in another room too.
  public struct ForwardParticipantRequest: ProtobufMessage {
    public var room = ""
    public var identity = ""
    public var destinationRoom = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "identity", &identity)
      try f.field(3, "destination_room", &destinationRoom)
    }
  }

  /// The participant is in both rooms.
  public struct ForwardParticipantResponse: ProtobufMessage {
    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {}
  }

  /// Moves a participant into another room.
  public struct MoveParticipantRequest: ProtobufMessage {
    public var room = ""
    public var identity = ""
    public var destinationRoom = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "identity", &identity)
      try f.field(3, "destination_room", &destinationRoom)
    }
  }

  /// The participant is in the other room.
  public struct MoveParticipantResponse: ProtobufMessage {
    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {}
  }

  /// Calls a method of a participant.
  public struct PerformRpcRequest: ProtobufMessage {
    public var room = ""
    public var destinationIdentity = ""
    public var method = ""
    public var payload = ""
    public var responseTimeoutMs: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "room", &room)
      try f.field(2, "destination_identity", &destinationIdentity)
      try f.field(3, "method", &method)
      try f.field(4, "payload", &payload)
      try f.field(5, "response_timeout_ms", &responseTimeoutMs)
    }
  }

  /// What the method returned.
  public struct PerformRpcResponse: ProtobufMessage {
    public var payload = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "payload", &payload)
    }
  }
}
