import PalbeProtobuf

extension LiveKit {
  /// A RoomService call with its request, read and within the limits.
  public enum RoomServiceRequest: Equatable, Sendable {
    case createRoom(CreateRoomRequest)
    case listRooms(ListRoomsRequest)
    case deleteRoom(DeleteRoomRequest)
    case listParticipants(ListParticipantsRequest)
    case getParticipant(RoomParticipantIdentity)
    case removeParticipant(RoomParticipantIdentity)
    case mutePublishedTrack(MuteRoomTrackRequest)
    case updateParticipant(UpdateParticipantRequest)
    case updateSubscriptions(UpdateSubscriptionsRequest)
    case sendData(SendDataRequest)
    case updateRoomMetadata(UpdateRoomMetadataRequest)
    case forwardParticipant(ForwardParticipantRequest)
    case moveParticipant(MoveParticipantRequest)
    case performRpc(PerformRpcRequest)

    /// Reads the body of a call. Whether the caller may make it is checked before, but for the room, which the
    /// body names: compare `room` with the token's.
    ///
    /// - Throws: `resource_exhausted` for a body above the limit, `malformed`, or `invalid_argument`.
    public init(
      _ method: RoomServiceMethod, body: [UInt8], encoding: TwirpEncoding,
      limits: RoomServiceLimits = RoomServiceLimits()
    ) throws(TwirpError) {
      guard body.count <= limits.body else {
        throw TwirpError(.resourceExhausted, "the request is longer than \(limits.body) bytes")
      }
      switch method {
      case .createRoom: self = .createRoom(try encoding.decode(from: body))
      case .listRooms: self = .listRooms(try encoding.decode(from: body))
      case .deleteRoom: self = .deleteRoom(try encoding.decode(from: body))
      case .listParticipants: self = .listParticipants(try encoding.decode(from: body))
      case .getParticipant: self = .getParticipant(try encoding.decode(from: body))
      case .removeParticipant: self = .removeParticipant(try encoding.decode(from: body))
      case .mutePublishedTrack: self = .mutePublishedTrack(try encoding.decode(from: body))
      case .updateParticipant: self = .updateParticipant(try encoding.decode(from: body))
      case .updateSubscriptions: self = .updateSubscriptions(try encoding.decode(from: body))
      case .sendData: self = .sendData(try encoding.decode(from: body))
      case .updateRoomMetadata: self = .updateRoomMetadata(try encoding.decode(from: body))
      case .forwardParticipant: self = .forwardParticipant(try encoding.decode(from: body))
      case .moveParticipant: self = .moveParticipant(try encoding.decode(from: body))
      case .performRpc: self = .performRpc(try encoding.decode(from: body))
      }
      do throws(RoomServiceError) { try check(limits) } catch { throw TwirpError(error) }
    }

    /// The room that the call is about; nil for `ListRooms`.
    public var room: String? {
      switch self {
      case .createRoom(let request): request.name
      case .listRooms: nil
      case .deleteRoom(let request): request.room
      case .listParticipants(let request): request.room
      case .getParticipant(let request), .removeParticipant(let request): request.room
      case .mutePublishedTrack(let request): request.room
      case .updateParticipant(let request): request.room
      case .updateSubscriptions(let request): request.room
      case .sendData(let request): request.room
      case .updateRoomMetadata(let request): request.room
      case .forwardParticipant(let request): request.room
      case .moveParticipant(let request): request.room
      case .performRpc(let request): request.room
      }
    }

    /// The room that a participant shall go to; nil for all but two calls.
    public var destinationRoom: String? {
      switch self {
      case .forwardParticipant(let request): request.destinationRoom
      case .moveParticipant(let request): request.destinationRoom
      default: nil
      }
    }
  }
}
