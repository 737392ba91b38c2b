import Foundation
import PalbeSDKKit
import PalbeTestKit
import PalbeUnits
import Testing

@testable import Palbase

/// An app's process: sessions over a vault, against a server in memory.
private struct World {
  let time = VirtualTimebase()
  let server: FakeServer
  let transport: FakeTransport
  let vault = MemoryVault()
  let folder: TemporaryFolder
  let http: HTTPClient

  init() throws {
    let timebase = time.timebase
    server = FakeServer { timebase.wallMilliseconds() }
    transport = FakeTransport(server: server)
    folder = try TemporaryFolder()
    http = HTTPClient(server: ServerURL("https://palbe.test")!, transport: transport, time: timebase)
  }

  /// Each is a process of its own, over the same vault.
  func process(_ time: VirtualTimebase? = nil) -> SessionAuthority {
    let http = time.map { HTTPClient(server: self.http.server, transport: transport, time: $0.timebase) }
    return SessionAuthority(vault: vault, http: http ?? self.http, lockPath: folder.path("session.lock"))
  }

  func client(_ sessions: SessionAuthority) -> BackendClient {
    BackendClient(http: http, sessions: sessions, devices: DeviceRegistry(vault: vault))
  }

  let account = ["email": "a@b.c", "password": "long enough"]
  let echo = BackendCall("GET", "/v1/echo", access: .session)
}

@Suite("Sessions: sign-in, renewal, sign-out (S0-6, issue 5 item 4)")
struct SessionTests {
  private let world: World
  init() throws { world = try World() }

  @Test("S0-6: without a session every call throws not_signed_in, and nothing is sent")
  func notSignedIn() async throws {
    let client = world.client(world.process())
    await #expect(throws: BackendError.client(.notSignedIn)) { try await client.send(world.echo) }
    #expect(world.transport.sent.isEmpty)
  }

  @Test("Sign-up, a restart, and sign-in are the same person; states say so")
  func signUpAndRestart() async throws {
    let first = world.process()
    var states = first.state.stream().makeAsyncIterator()
    #expect(await states.next() == .signedOut(nil))
    let user = try await first.signIn("sign-up", world.account)
    #expect(user.isNew && user.id == "usr_a@b.c")
    #expect(await states.next() == .signedIn(user))
    #expect(world.process().state.value == .signedIn(user))
    let again = try await world.process().signIn("sign-in", world.account)
    #expect(again.id == user.id && !again.isNew && again.sessionId != user.sessionId)
    await #expect(throws: BackendError.self) {
      try await first.signIn("sign-in", ["email": "a@b.c", "password": "wrong"])
    }
  }

  @Test("100 callers with a stale token cause one renewal")
  func singleFlight() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    let client = world.client(sessions)
    world.time.advance(by: .seconds(700))
    let echo = world.echo
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<100 { group.addTask { _ = try await client.send(echo) } }
      try await group.waitForAll()
    }
    #expect(world.server.refreshCount == 1)
    #expect(world.server.sessionCount == 1)
  }

  @Test("100 callers that are all refused with 401 cause one renewal, and each is repeated once")
  func singleFlightAfterRefusal() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    let client = world.client(sessions)
    world.server.forgetAccessTokens()
    let echo = world.echo
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<100 { group.addTask { _ = try await client.send(echo) } }
      try await group.waitForAll()
    }
    #expect(world.server.refreshCount == 1)
    #expect(world.transport.sent.count <= 1 + 100 + 1 + 100)
  }

  @Test("Two processes with the same session: one renews, the other takes what it finds")
  func twoProcesses() async throws {
    let app = world.process()
    _ = try await app.signIn("sign-up", world.account)
    let helper = world.process()
    world.time.advance(by: .seconds(700))
    let token = try await app.accessToken()
    #expect(try await helper.accessToken() == token)
    #expect(world.server.refreshCount == 1)
    #expect(world.server.sessionCount == 1)
  }

  @Test("S2-7: while another process holds the account, a renewal waits 15 s, then throws account_busy")
  func accountBusy() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    world.time.advance(by: .seconds(700))
    let before = world.time.now
    let other = FileLock(path: world.folder.path("session.lock"), time: world.http.time)
    await #expect(throws: BackendError.accountBusy) {
      try await other.withLock { _ = try await sessions.accessToken() }
    }
    #expect(world.time.now - before >= .seconds(15) && world.time.now - before < .seconds(16))
    #expect(world.server.refreshCount == 0)
    _ = try await sessions.accessToken()
    // S2-8: who held it stands in the file.
    let note = try String(contentsOfFile: other.path, encoding: .utf8)
    #expect(note.contains(" \(ProcessInfo.processInfo.processIdentifier) "))
  }

  @Test("A lost answer to a renewal: the same token goes again at once, and the session lives")
  func lostAnswer() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    world.time.advance(by: .seconds(700))
    world.transport.prepare(.answerLost)
    _ = try await sessions.accessToken()
    #expect(world.server.sessionCount == 1)
    let bodies = world.transport.sent.suffix(2).map { request -> [UInt8] in
      guard case .bytes(let body) = request.body else { return [] }
      return body
    }
    #expect(bodies[0] == bodies[1] && !bodies[0].isEmpty)
    world.server.forgetAccessTokens()
    _ = try await world.client(sessions).send(world.echo)
  }

  @Test("A lost answer to a sign-up is not repeated: the account may be there")
  func lostSignUp() async throws {
    let sessions = world.process()
    world.transport.prepare(.answerLost)
    await #expect(throws: BackendError.unreachable(.connectionLost)) {
      try await sessions.signIn("sign-up", world.account)
    }
    #expect(world.transport.sent.count == 1)
    #expect(!world.transport.sent[0].headers.contains { $0.name == "Idempotency-Key" })
    _ = try await sessions.signIn("sign-in", world.account)
  }

  @Test("No network: the session stays, the call fails as retryable")
  func offline() async throws {
    let sessions = world.process()
    let user = try await sessions.signIn("sign-up", world.account)
    world.time.advance(by: .seconds(700))
    world.transport.prepare(.requestLost, .requestLost, .requestLost)
    await #expect(throws: BackendError.unreachable(.noConnection)) { try await sessions.accessToken() }
    #expect(sessions.state.value == .signedIn(user))
    _ = try await sessions.accessToken()
  }

  @Test("A stolen refresh token: the session ends here too, with the reason")
  func theft() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    let copied = try await SessionTests.refreshToken(world.vault)
    // The thief is first; the owner's comes later than a lost answer would.
    world.time.advance(by: .seconds(700))
    _ = world.server.answer(
      .init(
        method: "POST", path: "/v1/auth/refresh", headers: [:],
        body: Array(#"{"refresh_token":"\#(copied)"}"#.utf8)))
    world.time.advance(by: .seconds(60))
    await #expect(throws: BackendError.self) { try await sessions.accessToken() }
    #expect(sessions.state.value == .signedOut(.tokenReused))
    #expect(try world.vault.read("session") == nil)
    #expect(world.process().state.value == .signedOut(nil))
  }

  private static func refreshToken(_ vault: MemoryVault) async throws -> String {
    let record = try JSONDecoder().decode(
      SessionRecord.self, from: Data(try #require(try vault.read("session"))))
    return record.refreshToken
  }

  @Test("A revoked session: the next call throws session_expired and the state says expired")
  func revoked() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    world.server.revokeAll()
    let client = world.client(sessions)
    do {
      _ = try await client.send(world.echo)
      Issue.record("it was revoked")
    } catch let error as BackendError {
      #expect(error.code == .sessionExpired && error.retry == .afterSignIn)
    }
    #expect(sessions.state.value == .signedOut(.expired))
    await #expect(throws: BackendError.client(.notSignedIn)) { try await client.send(world.echo) }
  }

  @Test(
    "Sign-out: gone here at once, ended on the server also when the access token is stale or it is offline")
  func signOut() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    world.time.advance(by: .seconds(700))
    try await sessions.signOut()
    #expect(sessions.state.value == .signedOut(.requested))
    #expect(world.server.sessionCount == 0)
    _ = try await sessions.signIn("sign-in", world.account)
    world.transport.prepare(.requestLost, .requestLost)
    try await sessions.signOut()
    #expect(try world.vault.read("session") == nil)
  }

  @Test("Another process signed out: the next renewal here finds nobody")
  func signedOutElsewhere() async throws {
    let app = world.process()
    _ = try await app.signIn("sign-up", world.account)
    let other = world.process()
    try await other.signOut()
    await #expect(throws: BackendError.client(.sessionExpired)) {
      try await world.client(app).send(world.echo)
    }
    #expect(app.state.value == .signedOut(.otherProcess))
  }

  @Test("Somebody else signed in meanwhile, in another process: the call is not sent as them")
  func otherPerson() async throws {
    let app = world.process()
    _ = try await app.signIn("sign-up", world.account)
    _ = try await world.process().signIn("sign-up", ["email": "x@y.z", "password": "long enough"])
    // Signing in there ended the first session; here the token is refused, and the vault holds another person's.
    let client = world.client(app)
    while world.server.sessionCount > 1 { await Task.yield() }
    await #expect(throws: BackendError.client(.sessionExpired)) { try await client.send(world.echo) }
    #expect(app.state.value == .signedIn(CurrentUser(id: "usr_x@y.z", sessionId: "ses_3", isNew: true)))
    _ = try await client.send(world.echo)
  }

  @Test("The clock is set back or forward by a year: the steady clock, and the server, decide")
  func clockJumps() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    world.time.setWall(by: -365 * 86_400_000)
    world.time.advance(by: .seconds(100))
    let early = try await sessions.accessToken()
    #expect(world.server.refreshCount == 0)
    world.time.advance(by: .seconds(500))
    _ = try await sessions.accessToken()
    #expect(world.server.refreshCount == 1)
    world.time.setWall(by: 730 * 86_400_000)
    let late = try await sessions.accessToken()
    #expect(late.text != early.text)
    #expect(sessions.state.value != .signedOut(.expired))
  }

  @Test("After a restart of the machine with a clock before the stamp, the token is renewed, not trusted")
  func otherBoot() async throws {
    _ = try await world.process().signIn("sign-up", world.account)
    let later = VirtualTimebase(boot: "boot-2")
    later.setWall(by: -1_000_000)
    _ = try await world.process(later).accessToken()
    #expect(world.server.refreshCount == 1)
  }

  @Test("A damaged or newer session record is a typed error; signing in replaces it")
  func damagedRecord() async throws {
    try world.vault.write(Array("{".utf8), as: "session")
    let sessions = world.process()
    #expect(sessions.state.value == .signedOut(nil))
    await #expect(throws: BackendError.storeUnavailable(.corrupted("session"))) {
      try await sessions.accessToken()
    }
    try world.vault.write(Array(#"{"schema":2}"#.utf8), as: "session")
    await #expect(throws: BackendError.storeUnavailable(.newerSchema)) {
      try await world.process().accessToken()
    }
    _ = try await sessions.signIn("sign-up", world.account)
    _ = try await sessions.accessToken()
  }

  @Test("The disk is full while a token is renewed: this process goes on with the new one")
  func fullDisk() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    world.time.advance(by: .seconds(700))
    world.vault.fail(with: .full)
    _ = try await world.client(sessions).send(world.echo)
    #expect(world.server.refreshCount == 1)
    await #expect(throws: BackendError.storeUnavailable(.full)) { try await sessions.signOut() }
    #expect(sessions.state.value != .signedOut(.requested))
  }

  @Test(
    "An answer that is no session signs nobody in",
    arguments: [
      "", "{}", "[]",
      #"{"user_id":"usr_1","session_id":"s","access_token":"a b","access_expires_in":1,"refresh_token":"r"}"#,
      #"{"user_id":"usr_1","session_id":"s","access_token":"a\r\nX: y","access_expires_in":1,"refresh_token":"r"}"#,
      #"{"user_id":"usr_1","session_id":"s","access_token":"a","access_expires_in":-1,"refresh_token":"r"}"#,
      #"{"user_id":"usr_1","session_id":"s","access_token":"a","access_expires_in":1e300,"refresh_token":"r"}"#,
    ])
  func malformedAnswer(body: String) async throws {
    let sessions = world.process()
    world.transport.prepare(.answered(TransportAnswer(status: 200, body: Array(body.utf8))))
    do {
      _ = try await sessions.signIn("sign-in", world.account)
      Issue.record("it is no session")
    } catch let error as BackendError {
      #expect(error.code == .unexpectedAnswer)
    }
    #expect(sessions.state.value == .signedOut(nil))
  }

  @Test("No token in a description or a mirror")
  func secrets() async throws {
    let sessions = world.process()
    _ = try await sessions.signIn("sign-up", world.account)
    let token = try await sessions.accessToken()
    var record = ""
    dump(
      try JSONDecoder().decode(SessionRecord.self, from: Data(try #require(try world.vault.read("session")))),
      to: &record)
    #expect(!record.contains("rt-") && !record.contains("at-"))
    #expect(!"\(token)".contains(token.text))
    #expect(!"\(DeviceCredential(deviceId: "mdv_1", token: "secret"))".contains("secret"))
  }

  @Test("2.2: a device that the server does not know is enrolled once again, then the error surfaces")
  func reenrolment() async throws {
    let sessions = world.process()
    let user = try await sessions.signIn("sign-up", world.account)
    let devices = DeviceRegistry(vault: world.vault)
    let client = BackendClient(http: world.http, sessions: sessions, devices: devices)
    var call = BackendCall("PUT", "/v1/devices/mdv_1/push-token", access: .device)
    call.body = Array(#"{"platform":"ios","token":"00"}"#.utf8)
    let put = call
    await #expect(throws: BackendError.client(.deviceNotEnrolled)) { try await client.send(put) }
    let server = world.server
    let enrolments = Broadcast(0)
    devices.onEnrol { _ in
      enrolments.send(enrolments.value + 1)
      if enrolments.value < 3 { server.enrol("token \(enrolments.value)") }
      return DeviceCredential(deviceId: "mdv_1", token: "token \(enrolments.value)")
    }
    try await client.send(put)
    #expect(enrolments.value == 1)
    #expect(try DeviceRegistry(vault: world.vault).credential(of: user.id)?.token == "token 1")
    server.forgetDevices()
    try await client.send(put)
    #expect(enrolments.value == 2)
    server.forgetDevices()
    do {
      try await client.send(put)
      Issue.record("the server knows no device")
    } catch let error as BackendError {
      #expect(error.code == .deviceNotEnrolled && error.requestId != nil)
    }
    #expect(enrolments.value == 3)
  }

  @Test("S2-12: a session whose device was removed is over, with that reason")
  func deviceRemoved() async throws {
    let sessions = world.process()
    let user = try await sessions.signIn("sign-up", world.account)
    let devices = DeviceRegistry(vault: world.vault)
    try devices.set(DeviceCredential(deviceId: "mdv_1", token: "t"), of: user.id)
    let client = BackendClient(http: world.http, sessions: sessions, devices: devices)
    let removed = TransportAnswer(status: 403, body: Array(#"{"code":"device_revoked"}"#.utf8))
    world.transport.prepare(.answered(removed), .answered(removed))
    do {
      try await client.send(world.echo)
      Issue.record("the device was removed")
    } catch let error as BackendError {
      #expect(error.code == .deviceRevoked)
    }
    #expect(sessions.state.value == .signedOut(.deviceRemoved))
    #expect(try devices.credential(of: user.id)?.isRevoked == true)
  }

  @Test("2.2, S2-12: a revoked device is marked, asks no more, and enrols anew after the next sign-in")
  func revokedDevice() async throws {
    let sessions = world.process()
    let user = try await sessions.signIn("sign-up", world.account)
    let devices = DeviceRegistry(vault: world.vault)
    try devices.set(DeviceCredential(deviceId: "mdv_1", token: "t"), of: user.id)
    let client = BackendClient(http: world.http, sessions: sessions, devices: devices)
    let call = BackendCall("GET", "/v1/queue", access: .device)
    world.transport.prepare(
      .answered(TransportAnswer(status: 403, body: Array(#"{"code":"device_revoked"}"#.utf8))))
    await #expect(throws: BackendError.self) { try await client.send(call) }
    let count = world.transport.sent.count
    await #expect(throws: BackendError.client(.deviceRevoked)) { try await client.send(call) }
    #expect(world.transport.sent.count == count)
    try devices.forgetRevoked(of: user.id)
    await #expect(throws: BackendError.client(.deviceNotEnrolled)) { try await client.send(call) }
  }
}
