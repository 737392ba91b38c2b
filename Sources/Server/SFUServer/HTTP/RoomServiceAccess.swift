import PalbeLiveKit

/// Whether a token's grant allows a call (livekit-protocol.md §2, "Methods and grant").
extension AccessToken.VideoGrant {
  /// What can be said before the body is read: all but which room it names.
  func allows(_ method: LiveKit.RoomServiceMethod) -> Bool {
    switch method.grant {
    case .roomCreate: roomCreate
    case .roomList: roomList
    case .roomAdmin: roomAdmin
    case .roomAdminAndDestination: roomAdmin && !destinationRoom.isEmpty
    }
  }

  /// Whether the rooms that the request names are those of the token.
  func allows(_ request: LiveKit.RoomServiceRequest, of method: LiveKit.RoomServiceMethod) -> Bool {
    guard allows(method) else { return false }
    switch method.grant {
    case .roomCreate, .roomList: return true
    case .roomAdmin: return request.room == room && !room.isEmpty
    case .roomAdminAndDestination:
      return request.room == room && !room.isEmpty && request.destinationRoom == destinationRoom
    }
  }
}
