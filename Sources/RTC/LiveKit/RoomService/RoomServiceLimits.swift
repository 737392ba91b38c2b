extension LiveKit {
  /// What a RoomService request may hold, all in bytes of UTF-8 (livekit-protocol.md §2).
  public struct RoomServiceLimits: Equatable, Sendable {
    /// A whole request.
    public var body = 1 << 20
    /// A room's or a participant's metadata.
    public var metadata = 512 << 10
    /// A participant's attributes or a room's tags: all keys and values together.
    public var attributes = 64 << 10
    /// The name of a room.
    public var roomName = 256
    /// An identity, and the name that is shown for it.
    public var identity = 256
    /// The payload of a data packet or of a remote call; the largest message of a data channel.
    public var data = 64_000

    /// LiveKit's limits.
    public init() {}
  }

  /// What is wrong with a RoomService request.
  public enum RoomServiceError: Error, Equatable, Sendable {
    /// The member of a request that is wrong, as the protocol names it.
    public enum Field: String, Sendable {
      case room, identity, name, metadata, attributes, tags, data, nonce, method, payload
      case trackSid = "track_sid"
      case destinationRoom = "destination_room"
      case destinationIdentity = "destination_identity"
      case destinationIdentities = "destination_identities"
    }

    /// The call makes no sense without it.
    case missing(Field)
    /// Longer than the limit, in bytes.
    case tooLong(Field, limit: Int)
    /// A nonce is absent or has sixteen bytes.
    case nonceLength(Int)
    /// The destination is the room the participant is in.
    case sameRoom
  }
}

extension LiveKit.TwirpError {
  /// `invalid_argument` with the member in `meta.argument`.
  public init(_ error: LiveKit.RoomServiceError) {
    switch error {
    case .missing(let field):
      self.init(.invalidArgument, "\(field.rawValue) is missing", meta: ["argument": field.rawValue])
    case .tooLong(let field, let limit):
      self.init(
        .invalidArgument, "\(field.rawValue) is longer than \(limit) bytes",
        meta: ["argument": field.rawValue])
    case .nonceLength(let count):
      self.init(.invalidArgument, "nonce has \(count) bytes instead of 16", meta: ["argument": "nonce"])
    case .sameRoom:
      self.init(
        .invalidArgument, "destination_room is the room the participant is in",
        meta: ["argument": "destination_room"])
    }
  }
}

extension LiveKit.RoomServiceRequest {
  /// Checks what the request holds against `limits`.
  public func check(_ limits: LiveKit.RoomServiceLimits = .init()) throws(LiveKit.RoomServiceError) {
    let checks = RoomServiceChecks(limits: limits)
    switch self {
    case .createRoom(let request):
      try checks.name(.name, request.name, limits.roomName)
      try checks.text(.metadata, request.metadata, limits.metadata)
      try checks.map(.tags, request.tags)
    case .listRooms(let request):
      for name in request.names { try checks.text(.name, name, limits.roomName) }
    case .deleteRoom(let request): try checks.room(request.room)
    case .listParticipants(let request): try checks.room(request.room)
    case .getParticipant(let request), .removeParticipant(let request):
      try checks.participant(request.room, request.identity)
    case .mutePublishedTrack(let request):
      try checks.participant(request.room, request.identity)
      try checks.name(.trackSid, request.trackSid, limits.identity)
    case .updateParticipant(let request):
      try checks.participant(request.room, request.identity)
      try checks.text(.name, request.name, limits.identity)
      try checks.text(.metadata, request.metadata, limits.metadata)
      try checks.map(.attributes, request.attributes)
    case .updateSubscriptions(let request): try checks.participant(request.room, request.identity)
    case .sendData(let request):
      try checks.room(request.room)
      guard request.data.count <= limits.data else { throw .tooLong(.data, limit: limits.data) }
      for identity in request.destinationIdentities {
        try checks.text(.destinationIdentities, identity, limits.identity)
      }
      guard [0, 16].contains(request.nonce.count) else { throw .nonceLength(request.nonce.count) }
    case .updateRoomMetadata(let request):
      try checks.room(request.room)
      try checks.text(.metadata, request.metadata, limits.metadata)
    case .forwardParticipant(let request):
      try checks.participant(request.room, request.identity, to: request.destinationRoom)
    case .moveParticipant(let request):
      try checks.participant(request.room, request.identity, to: request.destinationRoom)
    case .performRpc(let request):
      try checks.room(request.room)
      try checks.name(.destinationIdentity, request.destinationIdentity, limits.identity)
      try checks.name(.method, request.method, limits.identity)
      try checks.text(.payload, request.payload, limits.data)
    }
  }
}

private struct RoomServiceChecks {
  typealias Field = LiveKit.RoomServiceError.Field
  let limits: LiveKit.RoomServiceLimits

  func text(_ field: Field, _ text: String, _ limit: Int) throws(LiveKit.RoomServiceError) {
    guard text.utf8.count <= limit else { throw .tooLong(field, limit: limit) }
  }

  /// A text that must be there.
  func name(_ field: Field, _ name: String, _ limit: Int) throws(LiveKit.RoomServiceError) {
    guard !name.isEmpty else { throw .missing(field) }
    try text(field, name, limit)
  }

  func room(_ room: String) throws(LiveKit.RoomServiceError) { try name(.room, room, limits.roomName) }

  func participant(_ room: String, _ identity: String) throws(LiveKit.RoomServiceError) {
    try self.room(room)
    try name(.identity, identity, limits.identity)
  }

  func participant(
    _ room: String, _ identity: String, to destination: String
  ) throws(LiveKit.RoomServiceError) {
    try participant(room, identity)
    try name(.destinationRoom, destination, limits.roomName)
    guard destination != room else { throw .sameRoom }
  }

  func map(_ field: Field, _ map: [String: String]) throws(LiveKit.RoomServiceError) {
    let size = map.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    guard size <= limits.attributes else { throw .tooLong(field, limit: limits.attributes) }
  }
}
