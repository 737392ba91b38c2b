import Foundation
import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeServerClient
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import PalbeWebTokens
import PalbeWire
import Synchronization
import Testing

@testable import PalbeBackendServer

@Suite("Accounts: the routes below /v1/auth", .serialized)
struct AccountServiceTests {
  private let folder: TemporaryFolder
  private let desk: AccountDesk

  init() throws {
    folder = try TemporaryFolder()
    desk = try AccountDesk(folder.url.path)
  }

  /// A device of who has an access token.
  private func enrol(_ answer: HTTPConnection.Answer, seed: UInt64 = 3) throws -> ServerClient {
    let user = try #require(UserID(answer.text("user_id")))
    let client = ServerClient(
      port: desk.server.port, user: user, accessToken: answer.text("access_token"), seed: seed)
    try client.enrol()
    return client
  }

  @Test("API: a life of an account, from sign-up to sign-out")
  func life() throws {
    let first = try desk.signUp("Anna@example.org")
    #expect(first.status == 200 && first.isTrue("is_new_user"))
    #expect(first.headers["request-id"] == "r1" && first.headers["cache-control"] == "no-store")
    #expect(first.number("access_expires_in") == 600 && first.number("refresh_expires_in") == 5_184_000)
    let user = try #require(UserID(first.text("user_id")))
    let session = try desk.service.session(token: first.text("access_token"))
    #expect(session.user == user && session.session.text == first.text("session_id"))
    // The delivery server knows the user.
    let client = try enrol(first)
    #expect(try client.ask("GET", "/v1/devices").status == 200)

    let second = try desk.signIn("anna@example.org")
    #expect(second.status == 200 && !second.isTrue("is_new_user"))
    let token = second.text("access_token")
    let sessions = try desk.ask("GET", "/v1/auth/sessions", token: token)
    #expect(sessions.list("sessions").count == 2)
    let own = try #require(sessions.list("sessions").first { $0["is_current"] as? Bool == true })
    #expect(own["id"] as? String == second.text("session_id") && own["user_agent"] as? String == "Test/1")
    let created = try #require(own["created_at_ms"] as? Double)
    #expect(created > 1_700_000_000_000 && own["last_used_at_ms"] as? Double == created)

    let ended = try desk.ask("DELETE", "/v1/auth/sessions/" + first.text("session_id"), token: token)
    #expect(ended.status == 204 && ended.body.isEmpty)
    #expect(throws: BackendFailure.sessionExpired) {
      try desk.service.session(token: first.text("access_token"))
    }
    #expect(try client.ask("GET", "/v1/devices").code == "session_expired")
    let dead = try desk.refresh(first.text("refresh_token"))
    #expect(dead.status == 401 && dead.code == "session_expired")

    let changed = try desk.post(
      "password", ["current": "correct horse", "new": "battery staple"], token: token)
    #expect(changed.status == 204)
    #expect(try desk.signIn("anna@example.org").code == "invalid_credentials")
    let third = try desk.signIn("anna@example.org", "battery staple")
    #expect(third.status == 200)

    #expect(try desk.post("sign-out", token: third.text("access_token")).status == 204)
    #expect(try desk.post("sign-out", token: third.text("access_token")).code == "session_expired")
    #expect(try desk.refresh(second.text("refresh_token")).status == 200)
  }

  @Test("API: refusals, with the table's codes, each in the OpenAPI document")
  func refusals() throws {
    _ = try desk.signUp("anna@example.org")
    let token = try desk.signIn("anna@example.org").text("access_token")
    let routes = RouteTable.accountRoutes(nil)
    func check(_ answer: HTTPConnection.Answer, _ name: String, _ code: String, _ comment: Comment? = nil) {
      #expect(answer.code == code && answer.status == OpenAPIDocument.status(of: code), comment)
      #expect(answer.number("status") == Double(answer.status) && answer.text("request_id") == "r1")
      let documented = routes.first { $0.name == name }.map { OpenAPIDocument.codes(of: $0).values.joined() }
      #expect(documented?.contains(code) == true, "\(name): \(code)")
    }
    check(try desk.signUp("anna@example.org"), "signUp", "account_exists")
    let weak = try desk.signUp("ben@example.org", "12345678")
    check(weak, "signUp", "weak_password")
    #expect((weak.json["details"] as? [String: String]) == ["reason": "guessable"])
    check(try desk.signUp("anna"), "signUp", "invalid_request")
    for body in ["", "[]", "{", "{}", #"{"email":1,"password":"correct horse"}"#, #"{"email":"a@b"}"#] {
      let answer = try desk.ask("POST", "/v1/auth/sign-in", raw: [UInt8](body.utf8))
      check(answer, "signIn", "invalid_request", "\(body)")
    }
    let large = [UInt8](repeating: 0x20, count: 100_000)
    check(try desk.ask("POST", "/v1/auth/sign-in", raw: large), "signIn", "message_too_large")
    let wrong = try desk.signIn("anna@example.org", "wrong horse")
    let unknown = try desk.signIn("nobody@example.org", "wrong horse")
    check(wrong, "signIn", "invalid_credentials")
    #expect(wrong.body == unknown.body && wrong.headers["www-authenticate"] == "Bearer")
    let id = try desk.service.session(token: token).session
    for forged in [nil, "", "x", token + "A", String(token.dropLast(4))] {
      for (method, path, name) in [
        ("GET", "sessions", "sessions"), ("POST", "sign-out", "signOut"),
        ("DELETE", "sessions/\(id)", "endSession"), ("POST", "password", "changePassword"),
      ] {
        let body = name == "changePassword" ? ["current": "correct horse", "new": "battery staple"] : nil
        let answer = try desk.ask(method, "/v1/auth/" + path, body, token: forged)
        check(answer, name, "not_signed_in", "\(name) \(forged ?? "-")")
      }
    }
    check(try desk.ask("DELETE", "/v1/auth/sessions/ses_x", token: token), "endSession", "invalid_request")
    let other = try desk.signUp("ben@example.org").text("access_token")
    check(try desk.ask("DELETE", "/v1/auth/sessions/\(id)", token: other), "endSession", "not_found")
    check(try desk.post("token", ["id_token": "a.b.c"]), "signInWithToken", "forbidden")
    #expect(try desk.ask("GET", "/v1/auth/nothing").code == "not_found")
    let method = try desk.ask("GET", "/v1/auth/sign-in")
    #expect(method.status == 405 && method.headers["allow"] == "POST")
    // Nothing of it ended the session.
    #expect(try desk.service.session(token: token).session == id)
  }

  @Test("API: the published keys verify access tokens")
  func keys() throws {
    let token = try desk.signUp("anna@example.org").text("access_token")
    let answer = try desk.ask("GET", "/v1/auth/keys")
    let set = try KeySet(json: answer.body)
    let claims = try set.claims(of: SignedToken(token), allowing: [.edDSA])
    #expect(claims.issuer == "palbe" && UserID(claims.subject ?? "") != nil)
    #expect(claims.sessionID.flatMap { SessionID($0) } != nil)
    #expect(claims.expiry == claims.issuedAt.map { $0 + 600 })
    #expect(Set(answer.list("keys")[0].keys) == ["kty", "crv", "x", "kid", "use", "alg"])
  }

  @Test("API: a token that is known is refused when its session ends, and one like it never was known")
  func knownTokens() throws {
    let token = try desk.signUp("anna@example.org").text("access_token")
    let session = try desk.service.session(token: token)
    for _ in 0..<3 { #expect(try desk.service.session(token: token) == session) }
    for index in token.indices.dropFirst(40).filter({ token[$0] != "." && token[$0] != "A" }) {
      var forged = token
      forged.replaceSubrange(index...index, with: "A")
      #expect(throws: BackendFailure.notSignedIn) { try desk.service.session(token: forged) }
    }
    #expect(try desk.service.session(token: token) == session)
    #expect(try desk.post("sign-out", token: token).status == 204)
    for _ in 0..<3 {
      #expect(throws: BackendFailure.sessionExpired) { try desk.service.session(token: token) }
    }
  }

  @Test("Access: an access token that is over is refused on every route that wants one")
  func expired() throws {
    var settings = AccountDesk.cheap
    settings.rules.accessLifetime = .zero
    let folder = try TemporaryFolder()
    let desk = try AccountDesk(folder.url.path, settings)
    let answer = try desk.signUp("anna@example.org")
    for route in RouteTable.accountRoutes(nil) where route.access == .session {
      let path = route.pattern.replacing("{session}", with: answer.text("session_id"))
      let body = route.name == "changePassword" ? ["current": "correct horse", "new": "battery staple"] : nil
      let refused = try desk.ask(route.method, path, body, token: answer.text("access_token"))
      #expect(refused.status == 401 && refused.code == "session_expired", "\(route.name)")
    }
    #expect(try desk.refresh(answer.text("refresh_token")).status == 200)
  }

  @Test("API: signing keys rotate over restarts; a token is valid as long as its key is published")
  func rotation() throws {
    var settings = AccountDesk.cheap
    settings.rules.keyLifetime = .zero
    settings.rules.keyLead = .zero
    let folder = try TemporaryFolder()
    var tokens: [String] = []
    var names: [Set<String>] = []
    for round in 0..<18 {
      let desk = try AccountDesk(folder.url.path, settings)
      let answer = try round == 0 ? desk.signUp("anna@example.org") : desk.signIn("anna@example.org")
      tokens.append(answer.text("access_token"))
      let keys = try desk.ask("GET", "/v1/auth/keys").list("keys").compactMap { $0["kid"] as? String }
      names.append(Set(keys))
      #expect((min(round + 2, 16)...16).contains(keys.count))
      for token in tokens { #expect(throws: Never.self) { try desk.service.session(token: token) } }
    }
    for (older, newer) in zip(names, names.dropFirst()) { #expect(older.isSubset(of: newer)) }
  }

  @Test("A user who cannot be made known to the delivery server gets no session")
  func registration() async throws {
    let other = try TemporaryFolder()
    let lone = try LoneDesk(other.url.path)
    let credentials = ["email": "anna@example.org", "password": "correct horse"]
    lone.told.failure.withLock { $0 = .unavailable(.full) }
    guard case .failure(let error) = await lone.ask("signUp", credentials) else {
      Issue.record("a session of nobody")
      return
    }
    #expect(error.status == 503 && error.code == "unavailable" && error.retryAfter == .seconds(1))
    lone.told.failure.withLock { $0 = nil }
    // Nothing was there: the same sign-up works.
    let answer = try await lone.ask("signUp", credentials).get()
    let user = try #require(UserID(answer.text("user_id")))
    #expect(lone.told.users.withLock { $0.last } == user)
    lone.told.failure.withLock { $0 = .unavailable(.busy) }
    await #expect(throws: APIError.self) { try await lone.ask("signIn", credentials).get() }
    lone.told.failure.withLock { $0 = nil }
    let again = try await lone.ask("signIn", credentials).get()
    #expect(lone.told.users.withLock { $0.suffix(2) } == [user, user] && again.text("user_id") == user.text)
  }

  @Test(
    "Many that refresh with one token at once get one successor; a theft ends the session and its tokens at once"
  )
  func together() throws {
    let first = try desk.signUp("anna@example.org")
    let client = try enrol(first)
    let token = first.text("refresh_token")
    let answers = AccountDesk.together(20) { [desk] _ in try desk.refresh(token) }
    let successors = Set(answers.map { $0.text("refresh_token") })
    #expect(answers.count == 20 && successors.count == 1 && successors.first != "")
    let next = try desk.refresh(try #require(successors.first))
    #expect(next.status == 200)
    let theft = try desk.refresh(token)
    #expect(theft.status == 401 && theft.code == "refresh_token_reused")
    #expect(throws: BackendFailure.sessionExpired) {
      try desk.service.session(token: next.text("access_token"))
    }
    #expect(try client.ask("GET", "/v1/queue").code == "session_expired")
    let statistics = desk.service.statistics
    #expect(statistics.theftCount == 1 && statistics.refusedCount == 1)
    #expect(statistics.requestCount == 0 && statistics.passwordCount == 0)
    var metrics = Exposition()
    metrics.add(statistics)
    for line in ["refresh_thefts_total 1", "sessions_refused 1", "account_requests_open 0", "passwords 0"] {
      #expect(metrics.text.contains("palbe_server_\(line)\n"))
    }
  }

  @Test("API: a socket ends with its session; a renewed one stays")
  func sockets() async throws {
    let first = try desk.signUp("anna@example.org")
    let client = try enrol(first)
    var options = WebSocketClient.Options()
    options.headers = client.authentication.map { HTTPRequest.Field($0.0, $0.1) }
    let socket = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(desk.server.port)/v1/realtime", options: options)
    var messages = socket.messages.makeAsyncIterator()
    let token = try desk.refresh(first.text("refresh_token")).text("access_token")
    socket.send(text: #"{"type":"renew","id":1,"access_token":"\#(token)"}"#)
    guard case .text(let reply)? = await messages.next() else {
      Issue.record("no reply")
      return
    }
    #expect(reply.contains(#""type":"reply""#))
    #expect(try desk.post("sign-out", token: token).status == 204)
    while await messages.next() != nil {}
    #expect(socket.closure?.code == 4_401 && socket.closure?.reason == "session_ended")
    // And no other begins.
    await #expect(throws: (any Error).self) {
      try await WebSocketClient.connect(
        to: "ws://127.0.0.1:\(desk.server.port)/v1/realtime", options: options)
    }
  }

  @Test("When passwords queue up, further sign-ins are answered with 503 and do not count as failed")
  func overload() throws {
    var settings = AccountDesk.cheap
    // Some 100 ms each.
    settings.rules.passwordCost = try #require(Scrypt.Cost(n: 1 << 14, r: 8, p: 2))
    settings.passwordThreads = 1
    settings.waitingPasswords = 2
    let folder = try TemporaryFolder()
    let desk = try AccountDesk(folder.url.path, settings)
    let answers = AccountDesk.together(20) { try desk.signUp("u\($0)@example.org") }
    let (good, refused) = (answers.filter { $0.status == 200 }, answers.filter { $0.status == 503 })
    #expect(good.count + refused.count == 20 && good.count >= 3)
    #expect(refused.allSatisfy { $0.code == "unavailable" && $0.number("retry_after") == 1 })
    settings.waitingRequests = 0
    let another = try TemporaryFolder()
    let closed = try AccountDesk(another.url.path, settings)
    #expect(try closed.signIn("u1@example.org").status == 503)
  }

  @Test("API: a device shows in the session that enrolled it, and its end ends the session")
  func devices() throws {
    let first = try desk.signUp("anna@example.org")
    let phone = try enrol(first)
    let second = try desk.signIn("anna@example.org")
    let tablet = try enrol(second, seed: 4)
    let list = try desk.ask("GET", "/v1/auth/sessions", token: first.text("access_token"))
    let devices = list.list("sessions").compactMap { $0["device_id"] as? String }
    #expect(Set(devices) == [phone.device!.text, tablet.device!.text])
    #expect(try phone.ask("DELETE", "/v1/devices/\(tablet.device!)").status == 204)
    // Jobs are carried out in order.
    let refused = try desk.refresh(second.text("refresh_token"))
    #expect(refused.status == 403 && refused.code == "device_revoked")
    #expect(try tablet.ask("GET", "/v1/queue").code == "device_revoked")
    #expect(try phone.ask("GET", "/v1/queue").status == 200)
  }

  @Test("Issue 5, 2: who fails from one address again and again is told when to come back")
  func rates() throws {
    var settings = AccountDesk.cheap
    settings.rules.limitsLoopback = true
    let folder = try TemporaryFolder()
    let desk = try AccountDesk(folder.url.path, settings)
    _ = try desk.signUp("anna@example.org")
    for index in 0..<21 {
      #expect(try desk.signIn("u\(index)@example.org", "wrong horse").code == "invalid_credentials")
    }
    let refused = try desk.signIn("anna@example.org")
    #expect(refused.status == 429 && refused.code == "rate_limited" && refused.headers["retry-after"] == "1")
    #expect(refused.number("retry_after") <= 1)
  }

  @Test("--dev: the first sign-in makes the account")
  func development() throws {
    var settings = AccountDesk.cheap
    settings.rules.signInCreatesAccount = true
    let folder = try TemporaryFolder()
    let desk = try AccountDesk(folder.url.path, settings)
    #expect(try desk.signIn("anna@example.org").isTrue("is_new_user"))
    #expect(try !desk.signIn("anna@example.org").isTrue("is_new_user"))
    #expect(try desk.signIn("anna@example.org", "wrong horse").code == "invalid_credentials")
  }

  // MARK: Restarts and keys

  @Test("After a restart tokens are valid, what was refused is refused, and the keys are the same")
  func restart() throws {
    let folder = try TemporaryFolder()
    var answers: [HTTPConnection.Answer] = []
    var keys: [UInt8] = []
    do {
      let desk = try AccountDesk(folder.url.path)
      answers = [try desk.signUp("anna@example.org"), try desk.signIn("anna@example.org")]
      #expect(try desk.post("sign-out", token: answers[1].text("access_token")).status == 204)
      keys = desk.service.keySet
    }
    do {
      let desk = try AccountDesk(folder.url.path)
      #expect(desk.service.keySet == keys)
      let user = try desk.service.session(token: answers[0].text("access_token")).user
      #expect(user.text == answers[0].text("user_id"))
      #expect(throws: BackendFailure.sessionExpired) {
        try desk.service.session(token: answers[1].text("access_token"))
      }
      #expect(try desk.refresh(answers[0].text("refresh_token")).status == 200)
    }
    // The keys are readable by their owner only, also when somebody copied them without their mode.
    let file = folder.path("keys/token-signing")
    chmod(file, 0o644)
    do { _ = try AccountDesk(folder.url.path) }
    let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    // Damaged keys are not replaced by others.
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: file))
    #expect(throws: AccountService.Failure.self) { try AccountDesk(folder.url.path) }
  }

  @Test(
    "Killed at any step of the keys' replacement: the old ones or the new ones are there",
    arguments: KeyFile.Step.allCases)
  func keyCrash(_ step: KeyFile.Step) throws {
    var random = RandomSource(seed: 1)
    let path = folder.path("key")
    let old = SymmetricKey(byteCount: 48, using: &random)
    let new = SymmetricKey(byteCount: 88, using: &random)
    let file = KeyFile(path)
    try file.replace(old)
    // The names and bytes as they are at that moment.
    let copy = try TemporaryFolder()
    var crashing = file
    let names = ["key", "key.new"].map { (folder.path($0), copy.path($0)) }
    crashing.step = { reached throws(KeyFile.Failure) in
      guard reached == step else { return }
      for (from, to) in names { try? FileManager.default.copyItem(atPath: from, toPath: to) }
    }
    try crashing.replace(new)
    let after = KeyFile(copy.path("key"))
    func bytes(_ key: borrowing SymmetricKey) -> [UInt8] { [UInt8](key.span) }
    func found() throws -> [UInt8] {
      guard let key = try after.read() else { return [] }
      return bytes(key)
    }
    #expect(try found() == (step == .renamed ? bytes(new) : bytes(old)))
    // What the crash left is in nobody's way.
    try after.replace(new)
    #expect(try found() == bytes(new))
    let mode = try FileManager.default.attributesOfItem(atPath: copy.path("key"))[.posixPermissions] as? Int
    #expect(mode == 0o600)
    var failing = file
    failing.step = { reached throws(KeyFile.Failure) in
      if reached == .written { throw KeyFile.Failure(description: "full") }
    }
    #expect(throws: KeyFile.Failure(description: "full")) { try failing.replace(old) }
    #expect(!FileManager.default.fileExists(atPath: path + ".new"))
  }
}
