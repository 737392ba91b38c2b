// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: What a webhook tells

extension LiveKit {
  /// Something happened in a room.
  public struct WebhookEvent: ProtobufMessage {
    /// The raw value of a `Webhook.Event`.
    public var event = ""
    public var room: Room?
    public var participant: ParticipantInfo?
    /// One event, however often it is delivered.
    public var id = ""
    /// Unix seconds.
    public var createdAt: Int64 = 0
    public var track: TrackInfo?
    public var egressInfo: OpaqueMessage?
    public var ingressInfo: OpaqueMessage?
    /// Deprecated: events lost before this one.
    public var numDropped: Int32 = 0
    public var job: OpaqueMessage?
    public var roomEndReason: RoomEndReason = .unknown

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "event", &event)
      try f.field(2, "room", &room)
      try f.field(3, "participant", &participant)
      try f.field(6, "id", &id)
      try f.field(7, "created_at", &createdAt)
      try f.field(8, "track", &track)
      try f.field(9, "egress_info", &egressInfo)
      try f.field(10, "ingress_info", &ingressInfo)
      try f.field(11, "num_dropped", &numDropped)
      try f.field(12, "job", &job)
      try f.field(13, "room_end_reason", &roomEndReason)
    }
  }

  /// Why a room ended.
  public struct RoomEndReason: ProtobufEnum {
    public static let unknown = RoomEndReason(rawValue: 0)
    public static let apiDelete = RoomEndReason(rawValue: 1)
    public static let idleTimeout = RoomEndReason(rawValue: 2)
    public static let serverShutdown = RoomEndReason(rawValue: 3)
    public static let superseded = RoomEndReason(rawValue: 4)
    public static let openFailed = RoomEndReason(rawValue: 5)
    public static let names: KeyValuePairs<Self, String> = [
      .unknown: "ROOM_END_UNKNOWN", .apiDelete: "ROOM_END_API_DELETE", .idleTimeout: "ROOM_END_IDLE_TIMEOUT",
      .serverShutdown: "ROOM_END_SERVER_SHUTDOWN", .superseded: "ROOM_END_SUPERSEDED",
      .openFailed: "ROOM_END_OPEN_FAILED",
    ]

    public var rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }
  }
}
