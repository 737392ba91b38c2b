import Foundation
import PalbeBackendCore
import PalbeBackendKit
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeBackendServer

@Suite("Routes over real HTTP", .serialized)
struct RouteTests {
  private let rig: ServerRig

  init() throws { rig = try ServerRig() }

  @Test("4.2: a chat from enrolment to acknowledgement, every answer in the shape of its table")
  func life() throws {
    let (anna, ben) = (try rig.device(), try rig.device())
    let (group, mlsID) = try anna.found(with: [ben.user])
    #expect(try anna.get("GET", "/v1/groups/\(group)")["epoch"] as? Int == 1)
    let sent = try anna.get("POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 1))
    #expect(sent["seq"] as? Int == 2 && sent["is_repeated"] as? Bool == false)
    let rows = try ben.get("GET", "/v1/queue?after=0&limit=100")["rows"] as? [[String: Any]] ?? []
    #expect(rows.map { $0["kind"] as? String } == ["welcome", "message"])
    #expect(
      rows.last?["content"] as? String == "application"
        && rows.last?["sender"] as? String == anna.device?.text)
    let last = rows.last?["id"] as? Int ?? 0
    #expect(try ben.get("POST", "/v1/queue/ack", ["up_to": last])["count"] as? Int == 2)
    try ben.get("POST", "/v1/groups/\(group)/read", ["seq": 2])
    #expect(try ben.get("GET", "/v1/groups/\(group)/unread")["unread_count"] as? Int == 0)
    #expect(
      try ben.get("PUT", "/v1/groups/\(group)/notify-scope", ["scope": "none"])["scope"] as? String == "none")
    #expect(
      try anna.ask("PUT", "/v1/groups/\(group)/members/\(ben.user)/role", ["role": "admin"]).status == 204)
    let commit = try ben.get("POST", "/v1/groups/\(group)/commits", ben.bundle(mlsID, 1))
    #expect(commit["epoch"] as? Int == 2)
    let stale = try anna.ask("POST", "/v1/groups/\(group)/commits", anna.bundle(mlsID, 1))
    #expect(
      stale.code == "stale_epoch" && (stale.json["details"] as? [String: Any])?["head_epoch"] as? Int == 2)
    let commits =
      try anna.get("GET", "/v1/groups/\(group)/commits?from_epoch=0")["commits"] as? [[String: Any]]
    #expect(commits?.count == 2)
    #expect(try anna.get("GET", "/v1/key-packages/count")["count"] as? Int == 4)
    #expect(try ben.get("GET", "/v1/key-packages/count")["count"] as? Int == 3)
    #expect(
      try anna.get("PATCH", "/v1/me/comms-prefs", ["share_receipts": false])["share_receipts"] as? Bool
        == false)
    #expect((try anna.get("GET", "/v1/devices")["devices"] as? [Any])?.count == 1)
  }

  @Test(
    "4.2: a blob as octet-stream is the message that JSON would be, and its repetition is the first one's")
  func octetStream() throws {
    let anna = try rig.device()
    let (group, mlsID) = try anna.found(with: [])
    let message = anna.message(mlsID, 0)
    let blob = Base64.decode(message["blob"] as? String ?? "", alphabet: .url)!
    let path =
      "/v1/groups/\(group)/messages?epoch=0&wake=false&client_msg_id=\(message["client_msg_id"] as? String ?? "")"
    let headers = anna.authentication + [("content-type", "application/octet-stream")]
    let first = try anna.http.send("POST", path, headers: headers, body: blob)
    #expect(first.json["seq"] as? Int == 1 && first.status == 200)
    let again = try anna.get("POST", "/v1/groups/\(group)/messages", message)
    #expect(again["seq"] as? Int == 1 && again["is_repeated"] as? Bool == true)
    #expect(try anna.http.send("POST", path, headers: headers, body: []).code == "invalid_request")
    #expect(
      try anna.http.send(
        "POST", path, headers: headers, body: [UInt8](repeating: 0, count: 256 << 10 + 1)
      ).code == "message_too_large")
  }

  @Test("Bug: a message too long had another code and limit as JSON than as bytes (2.2 message_too_large)")
  func tooLong() throws {
    let anna = try rig.device()
    let (group, mlsID) = try anna.found(with: [])
    let path = "/v1/groups/\(group)/messages"
    func check(limit: Int, _ counts: [Int]) throws {
      for count in counts {
        let overhead = Wire.application(mlsID, 0, [UInt8](repeating: 0, count: 600)).count - 600
        let message = anna.message(mlsID, 0, count: count - overhead - (count > 17_000 ? 2 : 0))
        let blob = Base64.decode(message["blob"] as? String ?? "", alphabet: .url) ?? []
        let name = message["client_msg_id"] as? String ?? ""
        let answers = [
          try anna.ask("POST", path, message),
          try anna.http.send(
            "POST", "\(path)?epoch=0&client_msg_id=\(name)",
            headers: anna.authentication + [("content-type", "application/octet-stream")], body: blob),
        ]
        for answer in answers {
          guard blob.count > limit else {
            #expect(answer.status == 200, "\(blob.count)")
            continue
          }
          #expect(answer.status == 413 && answer.code == "message_too_large", "\(blob.count)")
          #expect((answer.json["details"] as? [String: Any])?["limit"] as? Int == limit, "\(blob.count)")
        }
      }
    }
    try check(limit: 262_144, [262_143, 262_144, 262_145, 262_160, 300_000, 390_000, 400_000, 530_000])
    var adjustments = BackendServer.Adjustments()
    adjustments.limits.messageByteCount = 1_024
    try rig.server.reload(adjustments)
    try check(limit: 1_024, [1_000, 1_023, 1_024, 1_025, 1_040, 2_000, 50_000, 70_000, 300_000, 530_000])
  }

  @Test(
    "4.2: an idempotency key answers the first response, refuses another request, and is asked for where it is needed"
  )
  func idempotency() throws {
    let (anna, ben) = (try rig.device(), try rig.device())
    let path = "/v1/users/\(ben.user)/key-packages/claim"
    let first = try anna.ask("POST", path, key: "once")
    let again = try anna.ask("POST", path, key: "once")
    #expect(first.status == 200 && first.body == again.body)
    #expect(try anna.ask("POST", path, key: "twice").body != first.body)
    let other = try anna.ask("POST", "/v1/users/\(anna.user)/key-packages/claim", key: "once")
    #expect(other.code == "idempotency_mismatch" && other.status == 422)
    for key in ["", " ", "a b", String(repeating: "x", count: 65), "é"] {
      let refused = try anna.http.send(
        "POST", path, headers: anna.authentication + (key.isEmpty ? [] : [("idempotency-key", key)]), body: []
      )
      #expect(refused.code == "invalid_request", "\(key)")
    }
    // Of a message, as JSON and as bytes, kept or only passed on.
    let (group, mlsID) = try anna.found(with: [ben.user])
    let messages = "/v1/groups/\(group)/messages"
    for isEphemeral in [false, true] {
      var message = anna.message(mlsID, 1)
      message["ephemeral"] = isEphemeral
      let key = anna.newKey()
      let (first, again) = (
        try anna.ask("POST", messages, message, key: key), try anna.ask("POST", messages, message, key: key)
      )
      #expect(first.status == 200 && first.body == again.body)
      var other = anna.message(mlsID, 1)
      other["ephemeral"] = isEphemeral
      #expect(try anna.ask("POST", messages, other, key: key).code == "idempotency_mismatch")
      let name = other["client_msg_id"] as? String ?? ""
      let headers =
        anna.authentication + [("content-type", "application/octet-stream"), ("idempotency-key", "o\(key)")]
      let target = "\(messages)?epoch=1&client_msg_id=\(name)&ephemeral=\(isEphemeral)"
      let blobs = (0..<2).map { Wire.application(mlsID, 1, [$0]) }
      let bytes = try [0, 0, 1].map { try anna.http.send("POST", target, headers: headers, body: blobs[$0]) }
      #expect(bytes[0].status == 200 && bytes[0].body == bytes[1].body)
      #expect(bytes[2].code == "idempotency_mismatch")
    }
    // An empty one is no key, also where none is needed.
    let empty = anna.authentication + [("idempotency-key", ""), ("content-type", "application/json")]
    let ack = try anna.http.send("POST", "/v1/queue/ack", headers: empty, body: Array("{\"up_to\":1}".utf8))
    #expect(ack.code == "invalid_request")
    // A member of another form is told by its name, with what it may be.
    for (body, field, words) in [
      ("{\"up_to\":\"1\"}", "up_to", "a whole number"), ("{\"ids\":[1,true]}", "ids", "a list of at most"),
    ] {
      let answer = try anna.http.send(
        "POST", "/v1/queue/ack", headers: anna.authentication + [("content-type", "application/json")],
        body: Array(body.utf8))
      #expect(answer.status == 400 && (answer.json["details"] as? [String: String]) == ["field": field])
      #expect((answer.json["message"] as? String)?.contains(words) == true)
    }
    let limit = try anna.ask("GET", "/v1/queue?limit=1000")
    #expect((limit.json["message"] as? String)?.contains("a whole number from 1 to 100") == true)
    let scope = try anna.ask("PATCH", "/v1/me/comms-prefs", ["share_presence": "yes"])
    #expect((scope.json["message"] as? String) == "'share_presence' is to be true or false")
    // The same enrolment again is the same device.
    let client = rig.client()
    let body = client.enrolment()
    let (one, two) = (
      try client.get("POST", "/v1/devices", body, key: "e"),
      try client.get("POST", "/v1/devices", body, key: "e")
    )
    #expect(one["device_id"] as? String == two["device_id"] as? String)
    #expect(one["device_token"] as? String == two["device_token"] as? String)
  }

  @Test(
    "2.2: what is no request of the table is refused with a typed error, before its body is read where that tells nothing"
  )
  func malformed() throws {
    let anna = try rig.device()
    let (group, mlsID) = try anna.found(with: [])
    let messages = "/v1/groups/\(group)/messages"
    func code(_ method: String, _ path: String, _ body: [UInt8]? = nil, type: String = "application/json")
      throws -> String?
    {
      let answer = try anna.http.send(
        method, path, headers: anna.authentication + [("content-type", type), ("idempotency-key", "k")],
        body: body)
      #expect(answer.headers["content-type"] == "application/json" && answer.headers["request-id"] != nil)
      #expect(answer.json["request_id"] as? String == answer.headers["request-id"])
      #expect(answer.json["status"] as? Int == answer.status)
      return answer.code
    }
    #expect(try code("GET", "/") == "not_found")
    #expect(try code("GET", "/v1/nothing") == "not_found")
    #expect(try code("GET", "/v1/groups/\(group)/") == "not_found")
    #expect(try code("PUT", "/v1/groups", Array("{}".utf8)) == "method_not_allowed")
    #expect(try code("GET", "/v1/groups/grp_1") == "invalid_request")
    #expect(try code("GET", "/v1/groups/\(anna.user)") == "invalid_request")
    for query in ["after=x", "limit=0", "limit=101", "after=grp_", "limit=1e1", "limit=99999999999999999999"]
    {
      #expect(try code("GET", "/v1/groups?" + query) == "invalid_request", "\(query)")
    }
    #expect(try code("GET", "/v1/groups/\(group)/commits") == "invalid_request")
    #expect(try code("POST", messages, [1], type: "text/plain") == "unsupported_media_type")
    let good = anna.message(mlsID, 0)
    for change: (inout [String: Any]) -> Void in [
      { $0["epoch"] = nil }, { $0["epoch"] = -1 }, { $0["epoch"] = 1.5 }, { $0["epoch"] = "0" },
      { $0["epoch"] = 1e300 }, { $0["blob"] = "====" }, { $0["blob"] = "AB" }, { $0["blob"] = NSNull() },
      { $0["blob"] = "" }, { $0["client_msg_id"] = "msg_" }, { $0["wake"] = 1 }, { $0["wake"] = NSNull() },
    ] {
      var body = good
      change(&body)
      #expect(
        try code("POST", messages, Array(JSONSerialization.data(withJSONObject: body))) == "invalid_request",
        "\(body)")
    }
    for text in [
      "", "[]", "{", "{}", "{\"epoch\":0,\"epoch\":0}", String(repeating: "[", count: 1_000), "\u{0}",
    ] {
      #expect(try code("POST", messages, Array(text.utf8)) == "invalid_request", "\(text)")
    }
    // A member that is not known is for later versions.
    var more = good
    more["later"] = ["a": [1, 2]]
    #expect(try anna.ask("POST", messages, more).status == 200)
    #expect(try code("POST", messages, [UInt8](repeating: 32, count: 513 << 10)) == "message_too_large")
    #expect(try anna.ask("POST", "/v1/queue/ack", ["up_to": 1, "ids": [1]]).code == "invalid_request")
    #expect(try anna.ask("POST", "/v1/queue/ack", [:]).code == "invalid_request")
    #expect(
      try anna.ask("POST", "/v1/groups", ["rfc_group_id": ServerClient.text(mlsID.bytes), "kind": "direct"])
        .code == "invalid_request")
  }

  @Test("a client's request id is kept when it is plain")
  func requestIDs() throws {
    let anna = try rig.device()
    func id(_ given: String) throws -> String? {
      try anna.http.send("GET", "/v1/devices", headers: anna.authentication + [("request-id", given)])
        .headers["request-id"]
    }
    #expect(try id("abc-1.2_Z") == "abc-1.2_Z")
    #expect(try id("a b") != "a b")
    #expect(try id("{}") != "{}")
  }

  @Test("4.2: a fetch waits for rows, for 25 s at most")
  func longPoll() async throws {
    let (anna, ben) = (try rig.device(), try rig.device())
    let (group, mlsID) = try anna.found(with: [])
    #expect(try ben.get("GET", "/v1/queue?wait=0")["has_more"] as? Bool == false)
    #expect(try ben.ask("GET", "/v1/queue?wait=26").code == "invalid_request")
    let leaves = try anna.claim(ben.user)
    // Whether the fetch or the commit comes first, the fetch is answered by it.
    let port = rig.server.port
    let headers = ben.authentication
    let waiting = Task.detached {
      try HTTPConnection(port: port).send("GET", "/v1/queue?wait=25", headers: headers).body
    }
    try anna.get(
      "POST", "/v1/groups/\(group)/commits", anna.bundle(mlsID, 0, adding: [ben.user], leaves: leaves))
    let text = String(decoding: try await waiting.value, as: UTF8.self)
    #expect(text.contains("\"kind\":\"welcome\""))
  }

  @Test("4.1: what was answered is there after a restart, and the device token still holds")
  func restart() throws {
    let folder = try TemporaryFolder()
    let sessions = FakeSessions()
    let configuration = BackendServer.Configuration(data: folder.path("data"))
    var server: BackendServer? = try BackendServer(configuration, verifier: sessions)
    let user = rig.newUser()
    let anna = ServerClient(
      port: server!.port, user: user, accessToken: sessions.signIn(user).0, seed: 1)
    try anna.enrol()
    let (group, mlsID) = try anna.found(with: [])
    let message = anna.message(mlsID, 0)
    try anna.get("POST", "/v1/groups/\(group)/messages", message)
    #expect(throws: DataFolder.Failure.self) { try BackendServer(configuration, verifier: sessions) }
    server?.stop()
    server = nil
    server = try BackendServer(configuration, verifier: sessions)
    let again = ServerClient(anna, port: server!.port)
    #expect(try again.get("POST", "/v1/groups/\(group)/messages", message)["is_repeated"] as? Bool == true)
    server?.stop()
  }

  @Test("the OpenAPI document of the server is the one in docs")
  func document() throws {
    let anna = try rig.device()
    let served = try anna.http.send("GET", "/v1/openapi.json")
    // A client's author reads it: no member without a word about it.
    let components = try #require(served.json["components"] as? [String: Any])
    for (name, schema) in try #require(components["schemas"] as? [String: [String: Any]]) {
      for (member, shape) in schema["properties"] as? [String: [String: Any]] ?? [:] {
        #expect(!(shape["description"] as? String ?? "").isEmpty, "\(name).\(member)")
      }
    }
    #expect(served.status == 200)
    let kept =
      try JSONSerialization.jsonObject(with: Vectors.golden("docs/openapi.json")) as? NSDictionary
    let now = try JSONSerialization.jsonObject(with: Data(served.body)) as? NSDictionary
    if kept != now {
      let pretty = try JSONSerialization.data(
        withJSONObject: now ?? [:], options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
      let place = FileManager.default.temporaryDirectory.appendingPathComponent("openapi.json")
      try (pretty + Data("\n".utf8)).write(to: place)
      Issue.record("docs/openapi.json is not what the server says; the new one is \(place.path)")
    }
  }
}
