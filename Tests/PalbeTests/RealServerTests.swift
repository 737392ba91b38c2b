import Foundation
import Palbe
import PalbeBackendCore
import PalbeSDKKit
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Synchronization
import Testing

@testable import Palbase

/// A `palbe-server` process over a folder; killed and started again on the same port.
final class ServerProcess {
  private let folder: TemporaryFolder
  private var process: ToolProcess
  let port: UInt16

  init() throws {
    folder = try TemporaryFolder()
    process = try Self.start(folder, port: 0)
    port = try process.readPort()
  }

  private static func start(_ folder: TemporaryFolder, port: UInt16) throws -> ToolProcess {
    try ToolProcess(
      "palbe-server", ["serve", "--host", "127.0.0.1", "--port", "\(port)", "--data", folder.path("data")])
  }

  func kill() {
    process.terminate(with: SIGKILL)
    _ = process.finish()
  }

  func startAgain() throws {
    process = try Self.start(folder, port: port)
    _ = process.readLine()
  }

  deinit { kill() }
}

/// An app against it: real HTTP, a real socket; waits between attempts are short, and a test can move its clock.
final class App {
  let folder: TemporaryFolder
  let host: PalbaseHost
  var pb: PalbeNamespace { PalbeNamespace(host: host) }
  let shift = Shift()
  final class Shift: Sendable {
    let seconds = Mutex(0)
  }

  init(_ server: ServerProcess, in folder: TemporaryFolder? = nil) throws {
    let folder = try folder ?? TemporaryFolder()
    self.folder = folder
    let keys = ["ServerURL": "http://127.0.0.1:\(server.port)", "DataFolder": "data"]
    try PropertyListSerialization.data(fromPropertyList: keys, format: .xml, options: 0)
      .write(to: URL(fileURLWithPath: folder.path("config.plist")))
    var time = Timebase.system
    time.now = { [shift] in Timebase.system.now() + .seconds(shift.seconds.withLock { $0 }) }
    time.sleep = { try await Task.sleep(nanoseconds: UInt64(max(0, min($0.nanoseconds, 30_000_000)))) }
    host = PalbaseHost(
      surroundings: AppProcess.surroundings(folder), time: time, transport: { _ in CurlTransport() },
      connector: { _ in WebSocketConnector(trustedCertificateFile: nil) })
  }

  func runtime() throws -> PalbaseRuntime { try host.runtime() }

  /// Makes the account and the device, as the messaging module will.
  func begin(_ name: String) async throws -> (user: CurrentUser, device: DeviceCredential) {
    let user = try await pb.auth.signUp(email: "\(name)@example.com", password: "correct horse \(name)")
    return (user, try await enrol(user))
  }

  func enrol(_ user: CurrentUser) async throws -> DeviceCredential {
    let client = ServerClient(
      port: 1, user: try #require(UserID(user.id)), accessToken: "", seed: .random(in: 0 ... .max))
    var call = BackendCall("POST", "/v1/devices", access: .session)
    call.body = [UInt8](try JSONSerialization.data(withJSONObject: client.enrolment()))
    call.idempotencyKey = UUID().uuidString
    struct Enrolled: Decodable { var deviceId: String, deviceToken: String }
    let answer: Enrolled = try await runtime().client.send(call).json()
    let credential = DeviceCredential(deviceId: answer.deviceId, token: answer.deviceToken)
    try runtime().devices.set(credential, of: user.id)
    return credential
  }
}

func code(_ body: () async throws -> Void) async -> FailureCode? {
  do {
    try await body()
    return nil
  } catch {
    return (error as? BackendError)?.code
  }
}

@Suite("pb against palbe-server itself (issue 5, item 4)", .serialized, .timeLimit(.minutes(3)))
struct RealServerTests {
  private let server: ServerProcess
  private let app: App

  init() throws {
    server = try ServerProcess()
    app = try App(server)
  }

  @Test("Sign-up, sign-in, sessions, a new password, sign-out; each refusal has its code")
  func accounts() async throws {
    let auth = app.pb.auth
    let anna = try await auth.signUp(email: "anna@example.com", password: "correct horse")
    #expect(anna.isNew && UserID(anna.id) != nil)
    let other = try App(server)
    #expect(
      await code { try await other.pb.auth.signUp(email: "anna@example.com", password: "correct horse") }
        == .accountExists)
    #expect(
      await code { try await other.pb.auth.signUp(email: "b@example.com", password: "short") }
        == .weakPassword)
    #expect(
      await code { try await other.pb.auth.signIn(email: "anna@example.com", password: "wrong horse") }
        == .invalidCredentials)
    #expect(await code { try await other.pb.auth.signIn(token: "no.such.token") } != nil)
    let again = try await other.pb.auth.signIn(email: "Anna@Example.com", password: "correct horse")
    #expect(again.id == anna.id && !again.isNew)
    let sessions = try await auth.sessions()
    #expect(sessions.count == 2 && sessions.filter(\.isCurrent).map(\.id) == [anna.sessionId])
    #expect(sessions.allSatisfy { $0.createdAtMs > 1_600_000_000_000 })
    #expect(sessions.allSatisfy { $0.userAgent?.hasPrefix("palbe-swift/") == true })
    #expect(
      await code { try await auth.changePassword(current: "wrong", new: "battery staple") }
        == .invalidCredentials)
    try await auth.changePassword(current: "correct horse", new: "battery staple")
    #expect(await code { _ = try await other.pb.auth.sessions() } == .sessionExpired)
    #expect(other.pb.auth.state == .signedOut(.expired))
    #expect(try await auth.sessions().count == 1)
    try await auth.signOut()
    #expect(await code { _ = try await auth.sessions() } == .notSignedIn)
    try await auth.signIn(email: "anna@example.com", password: "battery staple")
    #expect(try await auth.sessions().count == 1)
  }

  @Test("Revoking another session ends it there with its next call; one's own is a sign-out")
  func revoked() async throws {
    _ = try await app.pb.auth.signUp(email: "anna@example.com", password: "correct horse")
    let phone = try App(server)
    let session = try await phone.pb.auth.signIn(email: "anna@example.com", password: "correct horse")
      .sessionId
    try await app.pb.auth.revoke(session)
    #expect(await code { _ = try await phone.pb.auth.sessions() } == .sessionExpired)
    #expect(phone.pb.auth.state == .signedOut(.expired))
    try await app.pb.auth.revoke(try #require(app.pb.auth.currentUser?.sessionId))
    #expect(app.pb.auth.state == .signedOut(.requested))
  }

  @Test(
    "The clock passes the token's life: one renewal for 40 callers; a damaged token is put right the same way"
  )
  func tokens() async throws {
    let auth = app.pb.auth
    let anna = try await auth.signUp(email: "anna@example.com", password: "correct horse")
    let sessions = try app.runtime().sessions
    func refreshToken() throws -> String {
      try JSONDecoder().decode(
        SessionRecord.self, from: Data(try #require(try app.runtime().vault.read("session")))
      ).refreshToken
    }
    let first = try refreshToken()
    app.shift.seconds.withLock { $0 += 1_000 }
    let tokens = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<40 { group.addTask { try await sessions.accessToken().text } }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    // Two access tokens of one second are the same bytes; refresh tokens never are.
    #expect(try tokens.count == 1 && refreshToken() != first)
    #expect(try await auth.sessions().map(\.id) == [anna.sessionId])
    // Another process of the app, whose stored access token is not what the server signed.
    let vault = try app.runtime().vault
    var record = try JSONDecoder().decode(
      SessionRecord.self, from: Data(try #require(try vault.read("session"))))
    record.accessToken = String(record.accessToken.dropLast(8)) + "AAAAAAAA"
    try vault.write([UInt8](JSONEncoder().encode(record)), as: "session")
    let next = try App(server, in: app.folder)
    #expect(try await next.pb.auth.sessions().count == 1)
    // The first process finds what the other has stored.
    app.shift.seconds.withLock { $0 += 1_000 }
    #expect(try await auth.sessions().count == 1)
  }

  @Test("Processes that renew all the time do not look like theft")
  func processes() async throws {
    _ = try await app.pb.auth.signUp(email: "anna@example.com", password: "correct horse")
    let folder = app.folder.path("data/vault")
    let probes = try (0..<3).map { _ in
      try ToolProcess("sdk-probe", ["tokens", folder, "http://127.0.0.1:\(server.port)", "6"])
    }
    for probe in probes {
      let result = probe.finish()
      #expect(result.code == 0, "\(result.errors)")
    }
    app.shift.seconds.withLock { $0 += 1_000 }
    #expect(try await app.pb.auth.sessions().count == 1)
  }

  @Test("kill -9: calls say unreachable, the session outlives it, the socket comes back and subscribes again")
  func killedAndRestarted() async throws {
    let (_, device) = try await app.begin("anna")
    var items = try app.runtime().realtime.items(of: "messaging:device:\(device.deviceId)")
      .makeAsyncIterator()
    #expect(await items.next()?.isJoined == true)
    for _ in 0..<3 {
      server.kill()
      #expect(await items.next() == .interrupted)
      do {
        _ = try await app.pb.auth.sessions()
        Issue.record("nobody was there")
      } catch let error as BackendError {
        #expect(error.code == .unreachable && error.isRetryable)
      }
      try server.startAgain()
      #expect(await items.next()?.isJoined == true)
      #expect(try await app.pb.auth.sessions().count == 1)
    }
    // Restarted while nobody was connected, with a token that is stale by then.
    server.kill()
    try server.startAgain()
    app.shift.seconds.withLock { $0 += 1_000 }
    #expect(try await app.pb.auth.sessions().count == 1)
  }

  @Test(
    "4.3: the device's topic tells of a new row; fetched and acknowledged over the socket; typing is refused to strangers"
  )
  func queue() async throws {
    let (anna, device) = try await app.begin("anna")
    let realtime = try app.runtime().realtime
    var items = realtime.items(of: "messaging:device:\(device.deviceId)").makeAsyncIterator()
    #expect(await items.next()?.isJoined == true)
    let sender = try App(server)
    let ben = try await sender.pb.auth.signUp(email: "ben@example.com", password: "correct horse")
    let token = try await sender.runtime().sessions.accessToken().text
    let client = ServerClient(
      port: server.port, user: try #require(UserID(ben.id)), accessToken: token, seed: 5)
    try client.enrol()
    let (group, mlsID) = try client.found(with: [try #require(UserID(anna.id))])
    guard case .event("queue_changed", _) = await items.next() else {
      Issue.record("no nudge")
      return
    }
    struct Rows: Decodable { var rows: [Row] }
    struct Row: Decodable { var id: Int64, kind: String }
    let rows = try JSON.decode(try await realtime.request(.fetch(after: 0, limit: 10)), as: Rows.self).rows
    #expect(rows.map(\.kind) == ["welcome"])
    try await realtime.request(.acknowledge(rows.map(\.id)))
    #expect(
      try JSON.decode(try await realtime.request(.fetch(after: 0, limit: 10)), as: Rows.self).rows.isEmpty)
    try await realtime.request(.typing(group: group.text, isOn: true))
    var conversation = realtime.items(of: "messaging:conv:\(ServerClient.text(mlsID.bytes))")
      .makeAsyncIterator()
    #expect(await conversation.next()?.isJoined == true)
    // Somebody who is no member gets nothing.
    let stranger = try App(server)
    _ = try await stranger.begin("carl")
    let other = try stranger.runtime().realtime
    var none = other.items(of: "messaging:conv:\(ServerClient.text(mlsID.bytes))").makeAsyncIterator()
    guard case .ended = await none.next() else {
      Issue.record("a stranger listens")
      return
    }
    // The refusal is a code, also over the socket.
    let strange = try #require(try stranger.deviceId())
    var own = other.items(of: "messaging:device:\(strange)").makeAsyncIterator()
    #expect(await own.next()?.isJoined == true)
    #expect(await code { try await other.request(.typing(group: group.text, isOn: true)) } != nil)
  }

  @Test("The session ends while the socket is open: every subscription ends, and nothing is opened again")
  func sessionEndsUnderSocket() async throws {
    let (_, device) = try await app.begin("anna")
    var items = try app.runtime().realtime.items(of: "messaging:device:\(device.deviceId)")
      .makeAsyncIterator()
    #expect(await items.next()?.isJoined == true)
    let tablet = try App(server)
    _ = try await tablet.pb.auth.signIn(email: "anna@example.com", password: "correct horse anna")
    try await tablet.pb.auth.revoke(try #require(app.pb.auth.currentUser?.sessionId))
    #expect(await items.next() == .interrupted)
    #expect(await items.next() == .ended(.signedOut))
    #expect(app.pb.auth.state == .signedOut(.expired))
  }

  @Test(
    "S2-12: the device is removed from another one: subscriptions end, calls throw device_revoked, a sign-in enrols anew"
  )
  func deviceRemoved() async throws {
    let (anna, device) = try await app.begin("anna")
    var items = try app.runtime().realtime.items(of: "messaging:device:\(device.deviceId)")
      .makeAsyncIterator()
    #expect(await items.next()?.isJoined == true)
    let tablet = try App(server)
    let again = try await tablet.pb.auth.signIn(email: "anna@example.com", password: "correct horse anna")
    _ = try await tablet.enrol(again)
    try await tablet.runtime().client.send(
      BackendCall("DELETE", "/v1/devices/\(device.deviceId)", access: .device))
    var last = await items.next()
    while let item = last, item == .interrupted { last = await items.next() }
    // The session that enrolled a device ends with it; which of the two is heard first is the network's business.
    #expect(last == .ended(.deviceRevoked) || last == .ended(.signedOut))
    let call = BackendCall("GET", "/v1/me/comms-prefs", access: .device)
    let refusal = await code { try await app.runtime().client.send(call) }
    #expect(refusal == .deviceRevoked || refusal == .sessionExpired || refusal == .notSignedIn)
    // The session that enrolled it is over too.
    for await state in app.pb.auth.states where state == .signedOut(.deviceRemoved) { break }
    let back = try await app.pb.auth.signIn(email: "anna@example.com", password: "correct horse anna")
    #expect(back.id == anna.id)
    _ = try await app.enrol(back)
    try await app.runtime().client.send(call)
  }

  @Test("S0-113, S0-114: both push tokens reach the server, and are remembered as posted")
  func pushTokens() async throws {
    let (_, device) = try await app.begin("anna")
    let token = Data(repeating: 0xAB, count: 32)
    app.pb.notifications.registerDeviceToken(token)
    app.pb.notifications.registerVoipToken(token)
    struct Posted: Decodable { var deviceId: String, token: String }
    while true {
      let bytes = try app.runtime().vault.read("push") ?? Array("{}".utf8)
      let posted = try JSONDecoder().decode([String: Posted].self, from: Data(bytes))
      if posted.count == 2 {
        #expect(
          posted.values.allSatisfy {
            $0.deviceId == device.deviceId && $0.token == String(repeating: "ab", count: 32)
          })
        break
      }
      await Task.yield()
    }
  }

  @Test("A device token that the server does not know is replaced once by enrolling again")
  func unknownDevice() async throws {
    let (user, device) = try await app.begin("anna")
    var broken = device
    broken.token = String(device.token.dropLast(4)) + "AAAA"
    try app.runtime().devices.set(broken, of: user.id)
    let call = BackendCall("GET", "/v1/me/comms-prefs", access: .device)
    #expect(await code { try await app.runtime().client.send(call) } == .deviceNotEnrolled)
    try app.runtime().devices.onEnrol { _ in device }
    try await app.runtime().client.send(call)
    #expect(try app.runtime().devices.credential(of: user.id) == device)
  }
}

extension App {
  fileprivate func deviceId() throws -> String? {
    try runtime().devices.credential(of: try #require(pb.auth.currentUser).id)?.deviceId
  }
}

extension RealtimeItem {
  fileprivate var isJoined: Bool { if case .joined = self { true } else { false } }
}
