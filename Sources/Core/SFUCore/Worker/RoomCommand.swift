public import PalbeLiveKit

/// A question or order of an operator's, as LiveKit's RoomService has them; the shell has checked who asks.
public enum RoomCommand: Sendable {
  /// Makes the room, or changes the settings of one that is there.
  case create(RoomSettings)
  /// The rooms with these names; all of them for an empty list.
  case list(names: [String])
  /// Ends the room: everyone in it must leave.
  case delete(room: String)
  /// Everyone in the room.
  case listParticipants(room: String)
  /// One of them.
  case participant(room: String, identity: String)
  /// Takes one out.
  case remove(room: String, identity: String)
  /// Mutes a track, or asks its publisher to unmute it.
  case mute(room: String, identity: String, track: String, isMuted: Bool)
  /// Changes what a participant is called, tells about itself and may do.
  case update(room: String, identity: String, ParticipantChange)
  /// Subscribes or unsubscribes for a participant.
  case subscribe(room: String, identity: String, tracks: [String], isSubscribed: Bool)
  /// A message to everyone in the room, or to some.
  case sendData(LiveKit.SendDataRequest)
  /// The room's metadata.
  case setMetadata(room: String, metadata: String)
  /// Tells a participant to go on in another room.
  case move(room: String, identity: String, destination: String)
  /// Calls a method of a participant's.
  case call(LiveKit.PerformRpcRequest)
}

/// How a room is made.
public struct RoomSettings: Sendable, Equatable {
  /// 1 to 256 bytes of UTF-8.
  public var name: String
  /// Seconds that an empty room waits for its first participant; nil is the worker's default.
  public var emptyTimeout: UInt32?
  /// Seconds that a room stays after its last participant left; nil is the worker's default.
  public var departureTimeout: UInt32?
  /// Participants at once; nil or 0 is the worker's bound.
  public var maxParticipants: UInt32?
  /// Told to everyone, at most 512 KiB.
  public var metadata: String?
  /// Tracks that are not encrypted end to end are refused.
  public var requiresE2EE: Bool?

  /// A room with the worker's defaults.
  public init(name: String) { self.name = name }
}

/// What changes about a participant; nil stays as it is.
public struct ParticipantChange: Sendable, Equatable {
  public var name: String?
  public var metadata: String?
  /// Merged into what is there; an empty value deletes its key.
  public var attributes: [String: String] = [:]
  public var permission: LiveKit.ParticipantPermission?

  /// Nothing changes yet.
  public init() {}
}

/// What came of a command.
public enum RoomAnswer: Sendable, Equatable {
  case done
  case room(LiveKit.Room)
  case rooms([LiveKit.Room])
  case participant(LiveKit.ParticipantInfo)
  case participants([LiveKit.ParticipantInfo])
  case track(LiveKit.TrackInfo)
  /// What a method returned.
  case payload(String)
  case refused(RoomRefusal)
}

/// Why a command was not carried out.
public enum RoomRefusal: Error, Sendable, Equatable, CustomStringConvertible {
  case noSuchRoom, noSuchParticipant, noSuchTrack, tooManyRooms
  /// The server is about to end.
  case draining
  /// A text is longer than is allowed.
  case tooLong(field: String)
  /// Unmuting for somebody else is not allowed here.
  case mayNotUnmute
  /// It has no signaling at the moment.
  case notReachable
  /// As many calls to participants wait as may.
  case tooManyCalls
  /// A participant did not answer a call in time.
  case noAnswer
  /// A method failed, in its participant's words.
  case callFailed(code: UInt32, message: String, data: String)

  /// One line for a person.
  public var description: String {
    switch self {
    case .noSuchRoom: "requested room does not exist"
    case .noSuchParticipant: "participant does not exist"
    case .noSuchTrack: "track does not exist"
    case .tooManyRooms: "the server has as many rooms as it may"
    case .draining: "the server is shutting down"
    case .tooLong(let field): "\(field) is too long"
    case .mayNotUnmute: "a track can only be unmuted by its publisher"
    case .notReachable: "participant has no signaling connection at the moment"
    case .tooManyCalls: "too many remote calls are waiting"
    case .noAnswer: "participant did not answer in time"
    case .callFailed(_, let message, _): message
    }
  }
}

/// Numbers a command, so that its answer finds back.
public struct CommandID: Hashable, Sendable {
  public var rawValue: UInt64
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// Something that happened, for those who are told by webhooks.
public struct RoomNotice: Sendable, Equatable {
  /// What happened, in LiveKit's words.
  public enum Event: String, Sendable {
    case roomStarted = "room_started", roomFinished = "room_finished"
    case participantJoined = "participant_joined", participantLeft = "participant_left"
    case participantConnectionAborted = "participant_connection_aborted"
    case trackPublished = "track_published", trackUnpublished = "track_unpublished"
  }
  public var event: Event
  public var room: LiveKit.Room
  public var participant: LiveKit.ParticipantInfo?
  public var track: LiveKit.TrackInfo?
  /// Why a room has finished.
  public var endReason = LiveKit.RoomEndReason.unknown
  /// Seconds since 1970.
  public var createdAt: Int64
}
