import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@_spi(Testing) @testable import PalbeSFUServer

@Suite("RoomService over real sockets (livekit-protocol.md 2, RoomService)")
struct RoomServiceTests {
  private let server: SFUServer
  private var port: UInt16 { server.signalingAddress.port }

  init() throws { server = try SFUServer.onLoopback(workers: 3) }

  private static let admin = #""roomAdmin":true,"room":"hall""#
  private static let all = #""roomCreate":true,"roomList":true,"roomAdmin":true,"room":"hall""#

  private func bearer(_ grants: String) -> String {
    let claims = #"{"iss":"\#(Tokens.key)","exp":\#(Tokens.now + 600),"video":{\#(grants)}}"#
    return "Authorization: Bearer \(Tokens.signed(claims: claims))\r\n"
  }

  private func call(
    _ method: String, _ body: String, grants: String = all, type: String = "application/json"
  ) -> HTTP.Answer {
    HTTP.ask(
      port, "/twirp/livekit.RoomService/" + method, method: "POST",
      headers: bearer(grants) + "Content-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n", body: body)
  }

  private func code(_ answer: HTTP.Answer) -> String {
    (try? LiveKit.TwirpError(json: answer.body).code.rawValue) ?? answer.body
  }

  @Test("A room from its making to its end, in JSON: snake_case names, zeros too, 64-bit numbers as text")
  func life() async throws {
    let made = call(
      "CreateRoom", #"{"name":"hall","emptyTimeout":60,"max_participants":7,"metadata":"m\u00fc"}"#)
    #expect(made.status == 200 && made.head.contains("content-type: application/json"))
    #expect(made.head.contains("access-control-allow-origin: *"))
    for part in [
      #""name":"hall""#, #""empty_timeout":60"#, #""departure_timeout":20"#, #""max_participants":7"#,
      #""metadata":"mü""#, #""num_participants":0"#, #""active_recording":false"#, #""creation_time":""#,
    ] { #expect(made.body.contains(part), "\(part) in \(made.body)") }
    // Made again it is the same room.
    #expect(
      try LiveKit.Room(json: made.body).sid
        == LiveKit.Room(json: call("CreateRoom", #"{"name":"hall"}"#).body).sid)
    _ = try await SignalClient.connect(to: server, room: "hall", identity: "anna")
    let listed = try LiveKit.ListParticipantsResponse(
      json: call("ListParticipants", #"{"room":"hall"}"#).body)
    #expect(listed.participants.map(\.identity) == ["anna"])
    let changed = call(
      "UpdateParticipant",
      #"{"room":"hall","identity":"anna","name":"Anna","attributes":{"a":"b"},"permission":{"can_subscribe":true}}"#
    )
    let anna = try LiveKit.ParticipantInfo(json: changed.body)
    #expect(anna.name == "Anna" && anna.attributes == ["a": "b"] && anna.permission?.canPublish == false)
    let one = try LiveKit.ParticipantInfo(
      json: call("GetParticipant", #"{"room":"hall","identity":"anna"}"#).body)
    #expect(one.name == "Anna")
    let renamed = try LiveKit.Room(
      json: call("UpdateRoomMetadata", #"{"room":"hall","metadata":"new"}"#).body)
    #expect(renamed.metadata == "new" && renamed.maxParticipants == 7)
    #expect(call("UpdateSubscriptions", #"{"room":"hall","identity":"anna","subscribe":true}"#).body == "{}")
    #expect(
      code(call("MutePublishedTrack", #"{"room":"hall","identity":"anna","track_sid":"TR_x"}"#))
        == "not_found")
    #expect(call("SendData", #"{"room":"hall","data":"aGk=","kind":"LOSSY"}"#).body == "{}")
    #expect(code(call("SendData", #"{"room":"attic","data":"aGk="}"#)) != "{}")
    #expect(call("RemoveParticipant", #"{"room":"hall","identity":"anna"}"#).body == "{}")
    #expect(code(call("GetParticipant", #"{"room":"hall","identity":"anna"}"#)) == "not_found")
    #expect(call("DeleteRoom", #"{"room":"hall"}"#).body == "{}")
    #expect(code(call("DeleteRoom", #"{"room":"hall"}"#)) == "not_found")
    #expect(call("ListRooms", "{}").body == #"{"rooms":[]}"#)
  }

  @Test("Rooms of all workers are listed, all or by name; protobuf in, protobuf out")
  func list() throws {
    let names = (0..<12).map { "room\($0)" }
    #expect(Set(names.map { RoomPlacement.worker(of: $0, among: 3) }).count == 3)
    for name in names { #expect(call("CreateRoom", #"{"name":"\#(name)"}"#).status == 200) }
    let all = try LiveKit.ListRoomsResponse(json: call("ListRooms", "{}").body)
    #expect(all.rooms.map(\.name) == names.sorted())
    let request = LiveKit.ListRoomsRequest.with { $0.names = ["room3", "room9", "nowhere"] }
    let answer = call(
      "ListRooms", String(decoding: request.serialized(), as: UTF8.self), type: "application/protobuf")
    #expect(answer.head.contains("content-type: application/protobuf"))
    #expect(
      try LiveKit.ListRoomsResponse(serialized: answer.bytes).rooms.map(\.name) == [
        "room3", "room9",
      ])
  }

  @Test("Grants: every call with the wrong one is 401 unauthenticated, with the right one not")
  func grants() {
    for method in LiveKit.RoomServiceMethod.allCases {
      let body = #"{"name":"hall","room":"hall","destination_room":"attic"}"#
      let wrong: [String]
      let right: String
      switch method.grant {
      case .roomCreate:
        (wrong, right) = (["", #""roomList":true,"roomAdmin":true,"room":"hall""#], #""roomCreate":true"#)
      case .roomList: (wrong, right) = (["", #""roomCreate":true"#, Self.admin], #""roomList":true"#)
      case .roomAdmin:
        wrong = [
          "", #""room":"hall""#, #""roomCreate":true,"roomList":true,"roomJoin":true,"room":"hall""#,
          #""roomAdmin":true"#, #""roomAdmin":true,"room":"attic""#,
        ]
        right = Self.admin
      case .roomAdminAndDestination:
        wrong = [Self.admin, Self.admin + #","destinationRoom":"cellar""#]
        right = Self.admin + #","destinationRoom":"attic""#
      }
      for grants in wrong {
        // The rest of a request that no check of the body stops.
        let answer = call(method.rawValue, full(method, body), grants: grants)
        #expect(answer.status == 401 && code(answer) == "unauthenticated", "\(method) \(grants)")
      }
      #expect(call(method.rawValue, full(method, body), grants: right).status != 401, "\(method)")
    }
  }

  private func full(_ method: LiveKit.RoomServiceMethod, _ body: String) -> String {
    let more =
      switch method {
      case .performRpc: #","destination_identity":"anna","method":"m"}"#
      case .mutePublishedTrack: #","identity":"anna","track_sid":"TR_1"}"#
      case .createRoom, .listRooms, .deleteRoom, .listParticipants, .sendData, .updateRoomMetadata: "}"
      default: #","identity":"anna"}"#
      }
    return String(body.dropLast()) + more
  }

  @Test("Errors are Twirp's: code and status, JSON whatever was asked")
  func errors() {
    let path = "/twirp/livekit.RoomService/"
    func ask(_ target: String, _ headers: String, method: String = "POST") -> (Int, String) {
      let answer = HTTP.ask(
        port, target, method: method, headers: headers + "Content-Length: 2\r\n", body: "{}")
      #expect(answer.head.contains("content-type: application/json"), "\(target)")
      return (answer.status, code(answer))
    }
    let json = "Content-Type: application/json; charset=utf-8\r\n"
    let token = bearer(Self.all)
    #expect(ask(path + "ListRooms", json) == (401, "unauthenticated"))
    #expect(ask(path + "ListRooms", json + "Authorization: Basic YTpi\r\n") == (401, "unauthenticated"))
    #expect(ask(path + "ListRooms", json + "Authorization: Bearer a.b.c\r\n") == (401, "unauthenticated"))
    #expect(ask(path + "Nothing", json + token) == (404, "bad_route"))
    #expect(ask("/twirp/livekit.Egress/ListEgress", json + token) == (404, "bad_route"))
    #expect(ask(path + "ListRooms", "Content-Type: text/plain\r\n" + token) == (404, "bad_route"))
    #expect(ask(path + "ListRooms", json + token, method: "PUT") == (404, "bad_route"))
    #expect(ask(path + "CreateRoom", json + token) == (400, "invalid_argument"))
    #expect(ask("/" + path + "ListRooms", json + token) == (200, #"{"rooms":[]}"#))
    #expect(code(call("CreateRoom", "{")) == "malformed")
    #expect(code(call("CreateRoom", "\u{1}", type: "application/protobuf")) == "malformed")
    let long = String(repeating: "x", count: 257)
    #expect(code(call("CreateRoom", #"{"name":"\#(long)"}"#)) == "invalid_argument")
    #expect(code(call("PerformRpc", full(.performRpc, #"{"room":"hall"}"#))) == "not_found")
    let both = Self.admin + #","destinationRoom":"attic""#
    func relocate(_ method: String, to room: String = "attic", grants: String = both) -> HTTP.Answer {
      call(method, #"{"room":"hall","identity":"anna","destination_room":"\#(room)"}"#, grants: grants)
    }
    #expect(code(relocate("ForwardParticipant")) == "unimplemented")
    #expect(relocate("ForwardParticipant").status == 501)
    #expect(code(relocate("MoveParticipant")) == "not_found")
    let same = Self.admin + #","destinationRoom":"hall""#
    #expect(code(relocate("MoveParticipant", to: "hall", grants: same)) == "invalid_argument")
    // Only the web server looks at what is longer than every request may be.
    let answer = HTTP.ask(
      port, path + "ListRooms", method: "POST", headers: json + token + "Content-Length: 2000000\r\n")
    #expect(answer.status == 413)
    // A GET carries no call; what looks for regions finds none.
    #expect(HTTP.ask(port, "/settings/regions").status == 404)
  }

  @Test("Draining: no new room, and /ready says so; those that are there go on")
  func draining() async throws {
    #expect(call("CreateRoom", #"{"name":"hall"}"#).status == 200)
    #expect(HTTP.ask(port, "/ready").status == 200)
    server.drain()
    #expect(HTTP.ask(port, "/ready").status == 406 && HTTP.ask(port, "/").status == 200)
    #expect(call("CreateRoom", #"{"name":"attic"}"#).status == 503)
    func validate(_ room: String) -> Int {
      let query = "join_request=\(JoinRequests.item())&access_token=\(Tokens.join(room: room, identity: "i"))"
      return HTTP.ask(port, "/rtc/v1/validate?" + query).status
    }
    #expect(validate("hall") == 200 && validate("attic") == 503)
    _ = try await SignalClient.connect(to: server, room: "hall", identity: "anna")
    #expect(call("ListRooms", "{}").status == 200)
  }

  @Test(
    "Without automatic rooms a join of none is 404 with LiveKit's words, from validate and upgrade (field 18)"
  )
  func noAutomaticRooms() throws {
    let server = try SFUServer.onLoopback { $0.worker.createsRooms = false }
    let query = "join_request=\(JoinRequests.item())&access_token=\(Tokens.join(room: "hall", identity: "i"))"
    for upgrades in [false, true] {
      let answer = HTTP.ask(
        server.signalingAddress.port, "/rtc/v1" + (upgrades ? "?" : "/validate?") + query, upgrades: upgrades)
      #expect(answer.status == 404 && answer.body == "requested room does not exist")
    }
  }
}

@Suite("RoomService without a worker that answers")
struct UnansweredCallTests {
  private func request() -> HTTPRequest {
    let claims = #"{"iss":"\#(Tokens.key)","exp":\#(Tokens.now + 600),"video":{"roomList":true}}"#
    return HTTPRequest(
      method: "POST", path: "/twirp/livekit.RoomService/ListRooms",
      headers: [
        .init("authorization", "Bearer " + Tokens.signed(claims: claims)),
        .init("content-type", "application/json"),
      ], body: Array("{}".utf8))
  }

  @Test("Calls that wait are bounded; a worker that ends answers them with deadline_exceeded")
  func bounded() throws {
    let inbox = try WorkerInbox()
    let service = RoomService(
      access: LiveAccess(keys: [Tokens.key: Tokens.secret], rooms: SFUConfiguration(candidates: [])),
      inboxes: [inbox, inbox], rooms: LiveRooms(workerCount: 2))
    let answers = Mutex<[Int: Int]>([:])
    func ask() {
      let responder = HTTPResponder.forTests { response in
        answers.withLock { $0[response.status, default: 0] += 1 }
      }
      service.respond(to: request(), with: responder, acceptsRooms: true)
    }
    for _ in 0..<RoomService.waitingLimit { ask() }
    #expect(answers.withLock { $0.isEmpty })
    ask()
    #expect(answers.withLock { $0 } == [503: 1])
    var signals: [WorkerInbox.Signal] = []
    var controls: [WorkerInbox.Control] = []
    inbox.take(signals: &signals, controls: &controls)
    #expect(controls.count == 2 * RoomService.waitingLimit)
    // Half are answered, the others go down with the worker.
    for case .command(_, let reply) in controls.prefix(RoomService.waitingLimit) { reply(.rooms([])) }
    controls = []
    #expect(
      answers.withLock { $0 } == [
        503: 1, 200: RoomService.waitingLimit / 2, 408: RoomService.waitingLimit / 2,
      ])
    ask()
    #expect(answers.withLock { $0[503] } == 1)
  }
}
