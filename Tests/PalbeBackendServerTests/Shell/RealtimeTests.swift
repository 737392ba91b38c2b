import Foundation
import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendKit
import PalbeEventLoop
import PalbeServerClient
import PalbeUnits
import PalbeWebServer
import Testing

@testable import PalbeBackendServer

/// A socket of a client: frames as dictionaries, in order.
private final class Socket {
  let client: WebSocketClient
  private var messages: AsyncStream<WebSocketMessage>.Iterator
  private var count: Int64 = 0

  init(_ server: ServerRig, _ headers: [(String, String)], path: String = "/v1/realtime") async throws {
    var options = WebSocketClient.Options()
    options.headers = headers.map { HTTPRequest.Field($0.0, $0.1) }
    client = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(server.server.port)\(path)", options: options)
    messages = client.messages.makeAsyncIterator()
  }

  convenience init(_ server: ServerRig, _ client: ServerClient) async throws {
    try await self.init(server, client.authentication)
  }

  func send(_ frame: [String: Any]) throws {
    client.send(text: String(decoding: try JSONSerialization.data(withJSONObject: frame), as: UTF8.self))
  }

  /// The next frame; nil at the end.
  func next() async throws -> [String: Any]? {
    guard case .text(let text)? = await messages.next() else { return nil }
    return try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
  }

  /// The next frame that has these members; others are let go.
  @discardableResult
  func next(_ members: [String: String]) async throws -> [String: Any] {
    while let frame = try await next() {
      if members.allSatisfy({ frame[$0.key] as? String == $0.value }) { return frame }
    }
    throw ServerClient.Unexpected(description: "the socket ended before \(members)")
  }

  /// Asks, and waits for the reply or the error.
  func ask(_ frame: [String: Any]) async throws -> [String: Any] {
    count += 1
    var frame = frame
    frame["id"] = count
    try send(frame)
    while let answer = try await next() {
      if answer["id"] as? Int64 == count { return answer }
    }
    throw ServerClient.Unexpected(description: "the socket ended before the answer to \(frame)")
  }

  func code(_ frame: [String: Any]) async throws -> String? {
    (try await ask(frame)["error"] as? [String: Any])?["code"] as? String
  }

  /// How the server ends it.
  func end() async throws -> WebSocketClosure? {
    while try await next() != nil {}
    return client.closure
  }
}

@Suite("The realtime socket", .serialized)
struct RealtimeTests {
  private let rig: ServerRig

  init() throws { rig = try ServerRig() }

  private func topic(_ client: ServerClient) -> String { "messaging:device:\(client.device!)" }
  private func topic(_ id: MLSGroupID) -> String { "messaging:conv:\(ServerClient.text(id.bytes))" }

  /// Two users, a group of both, and their sockets that hear it.
  private func pair() async throws -> (
    anna: ServerClient, ben: ServerClient, group: GroupID, mlsID: MLSGroupID, annas: Socket, bens: Socket
  ) {
    let (anna, ben) = (try rig.device(), try rig.device())
    let (group, mlsID) = try anna.found(with: [ben.user])
    let (annas, bens) = (try await Socket(rig, anna), try await Socket(rig, ben))
    for socket in [annas, bens] {
      let reply = try await socket.ask(["type": "subscribe", "topic": topic(mlsID)])
      #expect(reply["type"] as? String == "reply" && reply["group_id"] as? String == group.text)
    }
    return (anna, ben, group, mlsID, annas, bens)
  }

  @Test(
    "4.3: a message nudges the device's topic, is fetched and acknowledged over the socket, and its sender hears of it"
  )
  func delivery() async throws {
    let (anna, ben, group, mlsID, annas, bens) = try await pair()
    let reply = try await bens.ask(["type": "subscribe", "topic": topic(ben)])
    #expect(reply["topic"] as? String == topic(ben))
    try anna.get("POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 1))
    try await bens.next(["event": "queue_changed", "topic": topic(ben)])
    let page = try await bens.ask(["type": "fetch", "after": 0, "limit": 10])
    let rows = page["rows"] as? [[String: Any]] ?? []
    #expect(rows.count == 2 && page["has_more"] as? Bool == false)
    #expect(try await bens.ask(["type": "ack", "ids": rows.map { $0["id"] ?? 0 }])["count"] as? Int == 2)
    let delivered = try await annas.next(["event": "delivered", "topic": topic(mlsID)])
    #expect(delivered["device_id"] as? String == ben.device?.text && delivered["seq"] as? Int == 2)
    try ben.get("POST", "/v1/groups/\(group)/read", ["seq": 2])
    #expect(try await annas.next(["event": "read"])["user_id"] as? String == ben.user.text)
    // The user's other device hears it on its own topic.
    let tablet = try rig.device(ben.user)
    let tablets = try await Socket(rig, tablet)
    _ = try await tablets.ask(["type": "subscribe", "topic": topic(tablet)])
    try anna.get("POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 1))
    try ben.get("POST", "/v1/groups/\(group)/read", ["seq": 3])
    #expect(try await tablets.next(["event": "own_read"])["group_id"] as? String == group.text)
  }

  @Test("4.3: presence, typing and ephemeral messages reach who listens, and nobody after unsubscribe")
  func live() async throws {
    let (anna, ben, group, mlsID, annas, bens) = try await pair()
    #expect(try await annas.next(["event": "presence", "user_id": ben.user.text])["online"] as? Bool == true)
    let again = try await annas.ask(["type": "subscribe", "topic": topic(mlsID)])
    #expect(Set(again["online"] as? [String] ?? []) == [anna.user.text, ben.user.text])
    _ = try await bens.ask(["type": "typing", "group": group.text, "on": true])
    let typing = try await annas.next(["event": "typing"])
    #expect(typing["device_id"] as? String == ben.device?.text && typing["on"] as? Bool == true)
    var message = anna.message(mlsID, 1)
    message["ephemeral"] = true
    #expect(try anna.get("POST", "/v1/groups/\(group)/messages", message)["seq"] as? Int == 0)
    #expect(try await bens.next(["event": "ephemeral"])["blob"] as? String == message["blob"] as? String)
    #expect(try await bens.ask(["type": "unsubscribe", "topic": topic(mlsID)])["type"] as? String == "reply")
    #expect(
      try await annas.next(["event": "presence", "user_id": ben.user.text])["online"] as? Bool == false)
    bens.client.close()
    annas.client.close()
  }

  @Test(
    "4.3: who does not belong to a group or a device does not hear it; membership's end ends the subscription"
  )
  func membership() async throws {
    let (anna, ben, group, mlsID, annas, bens) = try await pair()
    let outsider = try rig.device()
    let others = try await Socket(rig, outsider)
    #expect(try await others.code(["type": "subscribe", "topic": topic(mlsID)]) == "chat_not_found")
    #expect(try await others.code(["type": "subscribe", "topic": topic(anna)]) == "forbidden")
    #expect(try await others.code(["type": "typing", "group": group.text, "on": true]) == "chat_not_found")
    try anna.get(
      "POST", "/v1/groups/\(group)/commits",
      anna.bundle(mlsID, 1, removing: [ben.user], leavesOut: [ben.device!]))
    let end = try await bens.next(["type": "subscription_ended"])
    #expect(end["reason"] as? String == "not_a_member" && end["topic"] as? String == topic(mlsID))
    #expect(try await bens.code(["type": "subscribe", "topic": topic(mlsID)]) == "not_a_member")
    // Founding the group anew gives it another name.
    let id = MLSGroupID(anna.random.bytes(32))
    try anna.get(
      "POST", "/v1/groups/\(group)/reset",
      [
        "generation": 0, "rfc_group_id": ServerClient.text(id.bytes),
        "group_info": ServerClient.text(Wire.groupInfo(id, 0)),
      ])
    #expect(try await annas.next(["type": "subscription_ended"])["reason"] as? String == "group_reset")
  }

  @Test("4.2: the newest socket of a device consumes its queue; the older is told, and refused")
  func superseded() async throws {
    let anna = try rig.device()
    let (older, newer) = (try await Socket(rig, anna), try await Socket(rig, anna))
    _ = try await older.ask(["type": "subscribe", "topic": topic(anna)])
    _ = try await newer.ask(["type": "subscribe", "topic": topic(anna)])
    #expect(try await older.next(["type": "subscription_ended"])["reason"] as? String == "superseded")
    #expect(try await older.code(["type": "fetch", "after": 0]) == "superseded")
    #expect(try await older.code(["type": "ack", "up_to": 1]) == "superseded")
    #expect(try await newer.ask(["type": "fetch", "after": 0])["has_more"] as? Bool == false)
  }

  @Test("2.2: an upgrade without a good session or device is refused with the table's code")
  func refusals() async throws {
    let (anna, ben) = (try rig.device(), try rig.device())
    func code(_ headers: [(String, String)], _ path: String = "/v1/realtime") async -> String? {
      do {
        _ = try await Socket(rig, headers, path: path)
        return nil
      } catch WebSocketClientError.refused(_, let body) {
        return ((try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any])?["code"]
          as? String
      } catch { return "\(error)" }
    }
    let own = anna.authentication
    #expect(await code([]) == "not_signed_in")
    #expect(await code([("authorization", "Bearer x")]) == "not_signed_in")
    #expect(await code([own[0]]) == "device_not_enrolled")
    #expect(await code([own[0], ben.authentication[1]]) == "device_not_enrolled")
    #expect(await code(own, "/v1/other") == "not_found")
    #expect(await code(own) == nil)
    let query = "?access_token=\(anna.accessToken)&device_token=\(own[1].1)"
    #expect(await code([], "/v1/realtime" + query) == nil)
    rig.sessions.revoke(anna.accessToken)
    #expect(await code(own) == "session_expired")
  }

  @Test(
    "4.3: the end of a session, of a device, of the token and of the heartbeats closes the socket with its code"
  )
  func ends() async throws {
    let anna = try rig.device()
    let (token, session) = rig.sessions.signIn(anna.user)
    let second = [("authorization", "Bearer \(token)"), anna.authentication[1]]
    let (first, other) = (try await Socket(rig, anna), try await Socket(rig, second))
    // Both are known to the backend.
    for socket in [first, other] { #expect(try await socket.code(["type": "fetch"]) == "superseded") }
    rig.server.hub.end([session])
    #expect(try await other.end()?.code == 4_401)

    let now = ServerTime.now
    let later = ServerTime(wall: now.wall + .seconds(61), instant: now.instant + .seconds(61))
    rig.server.hub.sweep(at: later)
    #expect(try await first.end()?.code == 4_408)

    // Bug: without pongs the web server was as early, and ended the socket without a code.
    #expect(BackendServer.webLimits.silenceTimeout >= RealtimeHub.Settings().silence + .seconds(10))

    // A renewed token keeps a socket open; one of another session is refused.
    let (short, longSession) = rig.sessions.signIn(anna.user, for: 30)
    let renewed = try await Socket(rig, [("authorization", "Bearer \(short)"), anna.authentication[1]])
    #expect(try await renewed.code(["type": "renew", "access_token": anna.accessToken]) == "invalid_request")
    #expect(try await renewed.code(["type": "renew", "access_token": "x"]) == "not_signed_in")
    let (long, _) = rig.sessions.signIn(anna.user, session: longSession)
    #expect(try await renewed.ask(["type": "renew", "access_token": long])["type"] as? String == "reply")
    let soon = ServerTime(wall: now.wall + .seconds(40), instant: now.instant + .seconds(40))
    rig.server.hub.sweep(at: soon)
    try renewed.send(["type": "heartbeat"])
    try await renewed.next(["type": "heartbeat"])
    rig.server.hub.sweep(
      at: ServerTime(wall: now.wall + .seconds(700), instant: now.instant + .seconds(700)))
    #expect(try await renewed.end()?.code == 4_401)

    let tablet = try rig.device(anna.user)
    let last = try await Socket(rig, anna)
    #expect(try await last.code(["type": "fetch"]) == "superseded")
    try tablet.get("DELETE", "/v1/devices/\(anna.device!)")
    #expect(try await last.end()?.code == 4_403)
    let closed = try await Socket(rig, anna)
    #expect(try await closed.end()?.code == 4_403)
  }

  @Test("what is no frame is refused with a typed error, and the socket goes on")
  func malformed() async throws {
    let anna = try rig.device()
    let socket = try await Socket(rig, anna)
    for text in [
      "", "{}", "[]", "{\"type\":1}", "{\"type\":\"fetch\"}", "{\"type\":\"x\",\"id\":1}", "\u{0}",
    ] {
      socket.client.send(text: text)
      let error = try await socket.next(["type": "error"])["error"] as? [String: Any]
      #expect(error?["code"] as? String == "invalid_request", "\(text)")
    }
    socket.client.send(binary: [1, 2, 3])
    try await socket.next(["type": "error"])
    for frame: [String: Any] in [
      ["type": "subscribe"], ["type": "subscribe", "topic": "messaging:device:x"],
      ["type": "subscribe", "topic": "messaging:conv:AA"], ["type": "subscribe", "topic": "gateway:x"],
      ["type": "typing", "on": true], ["type": "ack"], ["type": "ack", "up_to": 1, "ids": [1]],
      ["type": "renew"], ["type": "fetch", "limit": 0],
    ] {
      #expect(try await socket.code(frame) == "invalid_request", "\(frame)")
    }
    try socket.send(["type": "heartbeat"])
    try await socket.next(["type": "heartbeat"])
    // Frames at once beyond the limit are refused one by one; each gets an answer.
    for id in 0..<500 { try socket.send(["type": "fetch", "id": id, "after": 0]) }
    var answers = 0
    while answers < 500, try await socket.next() != nil { answers += 1 }
    #expect(answers == 500)
    socket.client.send(text: String(repeating: "x", count: RealtimeFrame.byteLimit + 1))
    #expect(try await socket.end()?.code == 1_009)
  }

  @Test("4.3: a socket that does not read is ended with 1013 and disturbs nobody")
  func slowReader() async throws {
    let rig = try ServerRig { $0.realtime.slowByteCount = 64 << 10 }
    let (anna, ben) = (try rig.device(), try rig.device())
    let (group, mlsID) = try anna.found(with: [ben.user])
    // Ben asks for the socket, subscribes, and never reads.
    let raw = HTTPConnection(port: rig.server.port, receiveByteCount: 4_096)
    var head = "GET /v1/realtime HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    head += "sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nsec-websocket-version: 13\r\n"
    for (name, value) in ben.authentication { head += "\(name): \(value)\r\n" }
    try raw.write(Array((head + "\r\n").utf8))
    // RFC 6455 §4.1: no frame before the answer.
    while rig.server.hub.count < 1 { await Task.yield() }
    let before = rig.server.loop.statistics.requestCount
    try raw.write(Self.frame("{\"type\":\"subscribe\",\"id\":1,\"topic\":\"\(topic(mlsID))\"}"))
    while rig.server.loop.statistics.requestCount == before { await Task.yield() }
    let annas = try await Socket(rig, anna)
    _ = try await annas.ask(["type": "subscribe", "topic": topic(mlsID)])
    let deadline = MonotonicClock.now() + .seconds(60)
    while rig.server.hub.statistics.slowCount == 0, MonotonicClock.now() < deadline {
      var message = anna.message(mlsID, 1, count: 250_000)
      message["ephemeral"] = true
      try anna.get("POST", "/v1/groups/\(group)/messages", message)
      try await annas.next(["event": "ephemeral"])
    }
    #expect(rig.server.hub.statistics.slowCount > 0)
    while rig.server.hub.count > 1, MonotonicClock.now() < deadline { await Task.yield() }
    #expect(rig.server.hub.count == 1)
    annas.client.close()
  }

  /// A masked text frame with a mask of zeros.
  private static func frame(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    let head: [UInt8] =
      bytes.count < 126
      ? [0x81, 0x80 | UInt8(bytes.count)]
      : [0x81, 0xfe, UInt8(bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)]
    return head + [0, 0, 0, 0] + bytes
  }

  @Test("a server that drains refuses what is new, closes sockets with 1013, and answers what waits")
  func drain() async throws {
    let anna = try rig.device()
    let socket = try await Socket(rig, anna)
    #expect(try await socket.code(["type": "fetch"]) == "superseded")
    rig.server.drain()
    #expect(try await socket.end()?.code == 1_013)
    let refused = try anna.ask("GET", "/v1/devices")
    #expect(refused.code == "unavailable" && refused.headers["retry-after"] != nil)
  }
}
