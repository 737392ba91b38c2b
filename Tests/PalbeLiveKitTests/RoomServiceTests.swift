import PalbeLiveKit
import PalbeProtobuf
import PalbeWire
import Testing

struct RoomServiceTests {
  typealias Method = LiveKit.RoomServiceMethod
  typealias Request = LiveKit.RoomServiceRequest
  typealias Failure = LiveKit.TwirpError

  @Test("livekit-protocol.md §2: fourteen calls, each at its path")
  func paths() {
    #expect(Method.allCases.count == 14)
    for method in Method.allCases { #expect(Method(path: method.path) == method) }
    #expect(Method(path: "/twirp/livekit.RoomService/CreateRoom") == .createRoom)
    for path in [
      "", "/", "/twirp/livekit.RoomService/", "/twirp/livekit.RoomService/createRoom",
      "/twirp/livekit.RoomService/CreateRoom/", "/twirp/livekit.Egress/CreateRoom",
      "twirp/livekit.RoomService/CreateRoom",
    ] {
      #expect(Method(path: path) == nil)
    }
  }

  @Test("livekit-protocol.md §2: what a token must grant")
  func grants() {
    #expect(Method.allCases.filter { $0.grant == .roomCreate } == [.createRoom, .deleteRoom])
    #expect(Method.allCases.filter { $0.grant == .roomList } == [.listRooms])
    #expect(
      Method.allCases.filter { $0.grant == .roomAdminAndDestination } == [
        .forwardParticipant, .moveParticipant,
      ])
  }

  @Test("every call reads protobuf and JSON to the same request", arguments: Method.allCases)
  func bothEncodings(_ method: Method) throws {
    let json = Array(
      """
      {"name":"blue","room":"blue","identity":"ada","track_sid":"TR_1","trackSids":["TR_1"],"destination_room":"red",
      "destination_identity":"ben","method":"hello","unknown":{}}
      """.utf8)
    let request = try Request(method, body: json, encoding: .json)
    #expect(request.room == (method == .listRooms ? nil : "blue"))
    #expect(request.destinationRoom == (method.grant == .roomAdminAndDestination ? "red" : nil))
    let bytes: [UInt8] =
      switch request {
      case .createRoom(let it): it.serialized()
      case .listRooms(let it): it.serialized()
      case .deleteRoom(let it): it.serialized()
      case .listParticipants(let it): it.serialized()
      case .getParticipant(let it), .removeParticipant(let it): it.serialized()
      case .mutePublishedTrack(let it): it.serialized()
      case .updateParticipant(let it): it.serialized()
      case .updateSubscriptions(let it): it.serialized()
      case .sendData(let it): it.serialized()
      case .updateRoomMetadata(let it): it.serialized()
      case .forwardParticipant(let it): it.serialized()
      case .moveParticipant(let it): it.serialized()
      case .performRpc(let it): it.serialized()
      }
    #expect(try Request(method, body: bytes, encoding: .protobuf) == request)
  }

  static let long = String(repeating: "x", count: 257)

  @Test(
    "livekit-protocol.md §2: limits are typed errors",
    arguments: [
      (.createRoom(.init()), .missing(.name)),
      (.createRoom(.with { $0.name = long }), .tooLong(.name, limit: 256)),
      (
        .createRoom(.with { ($0.name, $0.metadata) = ("a", String(repeating: "m", count: 524_289)) }),
        .tooLong(.metadata, limit: 524_288)
      ),
      (
        .createRoom(.with { ($0.name, $0.tags) = ("a", ["k": String(repeating: "t", count: 65_536)]) }),
        .tooLong(.tags, limit: 65_536)
      ),
      (.listRooms(.with { $0.names = ["a", long] }), .tooLong(.name, limit: 256)),
      (.deleteRoom(.init()), .missing(.room)), (.listParticipants(.init()), .missing(.room)),
      (.getParticipant(.with { $0.room = "a" }), .missing(.identity)),
      (.removeParticipant(.with { ($0.room, $0.identity) = ("a", long) }), .tooLong(.identity, limit: 256)),
      (.mutePublishedTrack(.with { ($0.room, $0.identity) = ("a", "b") }), .missing(.trackSid)),
      (
        .updateParticipant(.with { ($0.room, $0.identity, $0.name) = ("a", "b", long) }),
        .tooLong(.name, limit: 256)
      ),
      (
        .updateParticipant(
          .with {
            ($0.room, $0.identity) = ("a", "b")
            $0.attributes = ["": String(repeating: "v", count: 65_537)]
          }),
        .tooLong(.attributes, limit: 65_536)
      ),
      (.updateSubscriptions(.with { $0.identity = "b" }), .missing(.room)),
      (.sendData(.with { ($0.room, $0.nonce) = ("a", [1]) }), .nonceLength(1)),
      (
        .sendData(.with { ($0.room, $0.data) = ("a", [UInt8](repeating: 0, count: 64_001)) }),
        .tooLong(.data, limit: 64_000)
      ),
      (
        .sendData(.with { ($0.room, $0.destinationIdentities) = ("a", [long]) }),
        .tooLong(.destinationIdentities, limit: 256)
      ),
      (.updateRoomMetadata(.init()), .missing(.room)),
      (.forwardParticipant(.with { ($0.room, $0.identity) = ("a", "b") }), .missing(.destinationRoom)),
      (.moveParticipant(.with { ($0.room, $0.identity, $0.destinationRoom) = ("a", "b", "a") }), .sameRoom),
      (.performRpc(.with { $0.room = "a" }), .missing(.destinationIdentity)),
      (.performRpc(.with { ($0.room, $0.destinationIdentity) = ("a", "b") }), .missing(.method)),
    ] as [(Request, LiveKit.RoomServiceError)])
  func limits(_ request: Request, _ error: LiveKit.RoomServiceError) throws {
    #expect(throws: error) { try request.check() }
    #expect(Failure(error).code == .invalidArgument)
    #expect(Failure(error).meta["argument"] != nil)
  }

  @Test("requests at the limits pass")
  func atTheLimits() throws {
    let request = Request.createRoom(
      .with {
        $0.name = String(repeating: "é", count: 128)
        $0.metadata = String(repeating: "m", count: 524_288)
        $0.tags = ["k": String(repeating: "t", count: 65_535)]
      })
    try request.check()
    try Request.sendData(.with { ($0.room, $0.nonce) = ("a", [UInt8](repeating: 1, count: 16)) }).check()
  }

  @Test("a body that is too long, malformed or out of limits is a Twirp error")
  func bodies() {
    func code(_ body: [UInt8], _ encoding: LiveKit.TwirpEncoding) -> Failure.Code? {
      do throws(Failure) {
        _ = try Request(.deleteRoom, body: body, encoding: encoding)
        return nil
      } catch { return error.code }
    }
    #expect(code([UInt8](repeating: 0x20, count: 1 << 20 + 1), .json) == .resourceExhausted)
    #expect(code(Array("{".utf8), .json) == .malformed)
    #expect(code([0x0a, 5], .protobuf) == .malformed)
    #expect(code([], .protobuf) == .invalidArgument)
    #expect(code(Array(#"{"room":"a"}"#.utf8), .json) == nil)
    #expect(code([0x0a, 1, 0x61], .protobuf) == nil)
  }

  @Test("Twirp v7: every code has its status, and errors are JSON")
  func errors() throws {
    let statuses: [Failure.Code: Int] = [
      .canceled: 408, .unknown: 500, .invalidArgument: 400, .malformed: 400, .deadlineExceeded: 408,
      .notFound: 404,
      .badRoute: 404, .alreadyExists: 409, .permissionDenied: 403, .unauthenticated: 401,
      .resourceExhausted: 429,
      .failedPrecondition: 412, .aborted: 409, .outOfRange: 400, .unimplemented: 501, .internal: 500,
      .unavailable: 503, .dataloss: 500,
    ]
    for code in Failure.Code.allCases { #expect(statuses[code] == code.httpStatus) }
    #expect(Failure(.notFound, "no \"such\" room").json == #"{"code":"not_found","msg":"no \"such\" room"}"#)
    let error = Failure(.permissionDenied, "no", meta: ["b": "2", "a": "1"])
    #expect(error.json == #"{"code":"permission_denied","msg":"no","meta":{"a":"1","b":"2"}}"#)
    #expect(try Failure(json: error.json) == error)
    #expect(
      try Failure(json: #"{"code":"teapot","msg":"x","meta":null,"more":[]}"#) == Failure(.unknown, "x"))
    for length in 0..<error.json.utf8.count {
      #expect(throws: JSONError.self) { _ = try Failure(json: String(error.json.prefix(length))) }
    }
    #expect(throws: JSONError.missing) { _ = try Failure(json: "{}") }
  }

  @Test("Twirp v7: the content type decides")
  func contentTypes() {
    typealias Encoding = LiveKit.TwirpEncoding
    #expect(Encoding(contentType: "application/json") == .json)
    #expect(Encoding(contentType: " Application/JSON ; charset=utf-8") == .json)
    #expect(Encoding(contentType: "application/protobuf") == .protobuf)
    for type in ["", ";", "text/plain", "application/jsonx", "application/x-protobuf"] {
      #expect(Encoding(contentType: type) == nil)
    }
    let room = LiveKit.Room.with { $0.name = "a" }
    #expect(Encoding.protobuf.encode(room) == [0x12, 1, 0x61])
    #expect(String(decoding: Encoding.json.encode(LiveKit.DeleteRoomResponse()), as: UTF8.self) == "{}")
    #expect(
      String(decoding: Encoding.json.encode(room), as: UTF8.self).hasPrefix(
        #"{"sid":"","name":"a","empty_timeout":0"#))
  }

  @Test(
    "livekit-protocol.md §1.1: a token's roomConfig is JSON within JSON; what this server lacks is skipped")
  func roomConfiguration() throws {
    let claims =
      #"{"roomConfig":{"name":"r","emptyTimeout":5,"agents":[{"agentName":"x"}],"egress":{"room":{}},"tags":{"a":"b"}},"sub":"ada"}"#
    var reader = try JSONReader(claims, limit: 1_000)
    try reader.enterObject()
    #expect(try reader.nextKey() == "roomConfig")
    let configuration = try LiveKit.RoomConfiguration(json: &reader)
    #expect(try reader.nextKey() == "sub")
    #expect(
      configuration
        == .with {
          ($0.name, $0.emptyTimeout, $0.tags) = ("r", 5, ["a": "b"])
          ($0.agents, $0.egress) = ([.init()], .init())
        })
    // On the wire it comes back as it was.
    let bytes: [UInt8] = [0x2a, 2, 0x0a, 0, 0x52, 3, 0x0a, 1, 0x78]
    #expect(try LiveKit.RoomConfiguration(serialized: bytes).serialized() == bytes)
  }
}

struct WebhookTests {
  @Test("livekit-protocol.md §2 Webhooks: the body is JSON, and the token's claim is its hash")
  func webhook() throws {
    var event = LiveKit.WebhookEvent(.participantJoined, id: "EV_1", createdAt: 1_767_323_045)
    event.room = .with { ($0.sid, $0.name, $0.creationTime) = ("RM_1", "blue", 1_767_323_000) }
    event.participant = .with { ($0.sid, $0.identity, $0.state) = ("PA_1", "ada", .active) }
    let webhook = LiveKit.Webhook(event)
    #expect(
      String(decoding: webhook.body, as: UTF8.self) == """
        {"event":"participant_joined","room":{"sid":"RM_1","name":"blue","creationTime":"1767323000"},\
        "participant":{"sid":"PA_1","identity":"ada","state":"ACTIVE"},"id":"EV_1","createdAt":"1767323045"}
        """)
    // Python: base64.b64encode(hashlib.sha256(body).digest())
    #expect(webhook.bodyHash == "p6rKYyJRLZosbMEBq+AKYgsuvzW4x0CnlnqVuQfZKzA=")
    #expect(
      webhook.claims(issuer: "key", at: 1_000)
        == #"{"iss":"key","nbf":1000,"exp":1300,"sha256":"p6rKYyJRLZosbMEBq+AKYgsuvzW4x0CnlnqVuQfZKzA="}"#)
    #expect(LiveKit.Webhook.matches(body: webhook.body, claim: webhook.bodyHash))
    #expect(!LiveKit.Webhook.matches(body: webhook.body + [0x20], claim: webhook.bodyHash))
    #expect(try LiveKit.WebhookEvent(json: webhook.body) == event)
  }

  @Test("livekit-protocol.md §2 Webhooks: a room that ended says why")
  func roomEnd() {
    var event = LiveKit.WebhookEvent(.roomFinished, id: "EV_2", createdAt: 1)
    event.roomEndReason = .idleTimeout
    #expect(
      event.json()
        == #"{"event":"room_finished","id":"EV_2","createdAt":"1","roomEndReason":"ROOM_END_IDLE_TIMEOUT"}"#)
  }
}
