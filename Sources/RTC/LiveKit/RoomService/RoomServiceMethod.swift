extension LiveKit {
  /// A call of the RoomService, by its name in the path `/twirp/livekit.RoomService/<name>`.
  public enum RoomServiceMethod: String, CaseIterable, Sendable {
    case createRoom = "CreateRoom"
    case listRooms = "ListRooms"
    case deleteRoom = "DeleteRoom"
    case listParticipants = "ListParticipants"
    case getParticipant = "GetParticipant"
    case removeParticipant = "RemoveParticipant"
    case mutePublishedTrack = "MutePublishedTrack"
    case updateParticipant = "UpdateParticipant"
    case updateSubscriptions = "UpdateSubscriptions"
    case sendData = "SendData"
    case updateRoomMetadata = "UpdateRoomMetadata"
    case forwardParticipant = "ForwardParticipant"
    case moveParticipant = "MoveParticipant"
    case performRpc = "PerformRpc"

    /// What a path begins with.
    public static let pathPrefix = "/twirp/livekit.RoomService/"

    /// The call of a path without its query; nil for another path, which is answered with `bad_route`.
    public init?(path: String) {
      guard path.hasPrefix(Self.pathPrefix) else { return nil }
      self.init(rawValue: String(path.dropFirst(Self.pathPrefix.count)))
    }

    /// The call's path.
    public var path: String { Self.pathPrefix + rawValue }

    /// What an access token's `video` claim must grant.
    public enum Grant: Hashable, Sendable {
      /// `roomCreate`.
      case roomCreate
      /// `roomList`.
      case roomList
      /// `roomAdmin` for the room that the request names.
      case roomAdmin
      /// `roomAdmin`, and `destinationRoom` is the room the participant goes to.
      case roomAdminAndDestination
    }

    /// What the caller's token must grant.
    public var grant: Grant {
      switch self {
      case .createRoom, .deleteRoom: .roomCreate
      case .listRooms: .roomList
      case .listParticipants, .getParticipant, .removeParticipant, .mutePublishedTrack, .updateParticipant,
        .updateSubscriptions, .sendData, .updateRoomMetadata, .performRpc:
        .roomAdmin
      case .forwardParticipant, .moveParticipant: .roomAdminAndDestination
      }
    }
  }
}
