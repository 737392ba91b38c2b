import Foundation
import Palbe
import PalbeSDKKit
import PalbeTestKit
import Testing

@testable import Palbase

@Suite("pb.auth (issue 5, item 4)")
struct AuthTests {
  private let app: AppProcess
  init() throws { app = try AppProcess() }

  @Test("Sign-up, sign-out, sign-in, by token; the state stream tells each change")
  func wholeLife() async throws {
    let pb = app.pb
    var states = pb.auth.states.makeAsyncIterator()
    #expect(await states.next() == .signedOut(nil))
    let anna = try await pb.auth.signUp(email: "anna@example.com", password: "long enough")
    #expect(anna.isNew && pb.auth.currentUser == anna)
    #expect(await states.next() == .signedIn(anna))
    try await pb.auth.signOut()
    #expect(await states.next() == .signedOut(.requested))
    #expect(pb.auth.currentUser == nil && app.server.sessionCount == 0)
    let again = try await pb.auth.signIn(email: "anna@example.com", password: "long enough")
    #expect(await states.next() == .signedIn(again))
    let ben = try await pb.auth.signIn(token: "ben")
    #expect(await states.next() == .signedIn(ben))
    #expect(ben.id == "usr_ben")
  }

  @Test("Refusals come through as the server's codes and change nothing")
  func refusals() async throws {
    let auth = app.pb.auth
    let codes: [FailureCode] = [.weakPassword, .accountExists, .invalidCredentials, .invalidCredentials]
    var seen: [FailureCode] = []
    _ = try await auth.signUp(email: "a", password: "long enough")
    let before = auth.currentUser
    for attempt in [
      { try await auth.signUp(email: "b", password: "short") },
      { try await auth.signUp(email: "a", password: "long enough") },
      { try await auth.signIn(email: "a", password: "wrong") },
      { try await auth.signIn(email: "z", password: "wrong") },
    ] {
      do { _ = try await attempt() } catch let error as BackendError { seen.append(error.code) }
    }
    #expect(seen == codes)
    #expect(auth.currentUser == before)
  }

  @Test("A user id that is no file name: everything works, and nothing leaves the vault's folder")
  func hostileUserId() async throws {
    for token in ["../../x", "Ä", String(repeating: "x", count: 4_000), "a/b"] {
      let result = try? await app.pb.auth.signIn(token: token)
      // Not ASCII is no id at all.
      #expect((result == nil) == (token == "Ä"))
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: app.folder.path("data"))
    #expect(names == ["vault"])
  }

  @Test("Sessions are listed and revoked; revoking one's own is signing out; a new password ends the others")
  func sessions() async throws {
    let auth = app.pb.auth
    _ = try await auth.signUp(email: "a", password: "long enough")
    let other = try AppProcess(server: app.server)
    _ = try await other.pb.auth.signIn(email: "a", password: "long enough")
    let listed = try await auth.sessions()
    #expect(listed.count == 2 && listed.filter(\.isCurrent).map(\.id) == [auth.currentUser?.sessionId])
    let lost = try #require(listed.first { !$0.isCurrent })
    try await auth.revoke(lost.id)
    await #expect(throws: BackendError.self) { try await other.pb.auth.sessions() }
    #expect(other.pb.auth.state == .signedOut(.expired))
    _ = try await other.pb.auth.signIn(email: "a", password: "long enough")
    do {
      try await auth.changePassword(current: "wrong", new: "even longer")
      Issue.record("the password was wrong")
    } catch let error as BackendError {
      #expect(error.code == .invalidCredentials)
    }
    try await auth.changePassword(current: "long enough", new: "even longer")
    await #expect(throws: BackendError.self) { try await other.pb.auth.sessions() }
    #expect(try await auth.sessions().count == 1)
    try await auth.revoke(try #require(auth.currentUser?.sessionId))
    #expect(auth.state == .signedOut(.requested))
  }
}

@Suite("pb.notifications (S0-113, S0-114, S4-51)")
struct NotificationTests {
  private let app: AppProcess
  private let token = Data([0x00, 0xAB, 0xff])
  init() throws { app = try AppProcess() }

  private func enrol(_ id: String = "mdv_1") throws {
    app.server.enrol("device token \(id)")
    let user = try #require(app.pb.auth.currentUser)
    try app.host.runtime().devices.set(
      DeviceCredential(deviceId: id, token: "device token \(id)"), of: user.id)
  }

  /// Waits until the server has seen `count` of them.
  private func posted(_ count: Int) async -> [FakeServer.Request] {
    while true {
      let requests = app.server.requests.filter { $0.path.hasSuffix("/push-token") }
      if requests.count >= count { return requests }
      await Task.yield()
    }
  }

  @Test("S0-113: signed out it does nothing; after sign-in and enrolment lowercase hex is put as ios")
  func alertToken() async throws {
    app.pb.notifications.registerDeviceToken(token)
    _ = try await app.pb.auth.signIn(token: "anna")
    try enrol()
    #expect(app.server.pushTokens.isEmpty)
    app.pb.notifications.registerDeviceToken(token)
    let requests = await posted(1)
    #expect(requests.count == 1 && requests[0].method == "PUT")
    #expect(requests[0].path == "/v1/devices/mdv_1/push-token")
    #expect(requests[0].headers["palbe-device"] == "device token mdv_1")
    #expect(app.server.pushTokens == ["mdv_1 ios": "00abff"])
  }

  @Test(
    "S0-114, S4-51: the VoIP token is another row; identical ones are skipped, also after a restart; rotated ones replace"
  )
  func voipAndRepetition() async throws {
    _ = try await app.pb.auth.signIn(token: "anna")
    try enrol()
    app.pb.notifications.registerVoipToken(token)
    _ = await posted(1)
    app.pb.notifications.registerDeviceToken(token)
    _ = await posted(2)
    #expect(app.server.pushTokens == ["mdv_1 ios": "00abff", "mdv_1 ios_voip": "00abff"])
    let again = try AppProcess(in: app.folder, server: app.server)
    again.pb.notifications.registerDeviceToken(token)
    app.pb.notifications.registerVoipToken(token)
    again.pb.notifications.registerDeviceToken(Data([1]))
    let requests = await posted(3)
    #expect(requests.count == 3)
    #expect(app.server.pushTokens["mdv_1 ios"] == "01")
  }

  @Test("S0-113: a token that comes before the device is enrolled is put when it is")
  func beforeEnrolment() async throws {
    _ = try await app.pb.auth.signIn(token: "anna")
    app.pb.notifications.registerDeviceToken(token)
    for _ in 0..<20 { await Task.yield() }
    #expect(app.server.pushTokens.isEmpty)
    try enrol()
    _ = await posted(1)
    #expect(app.server.pushTokens == ["mdv_1 ios": "00abff"])
  }

  @Test("S0-113: a device that the server forgot is enrolled anew, and its token goes to the new one")
  func enrolledAnew() async throws {
    _ = try await app.pb.auth.signIn(token: "anna")
    try enrol("mdv_1")
    app.server.forgetDevices()
    let server = app.server
    try app.host.runtime().devices.onEnrol { _ in
      server.enrol("device token mdv_2")
      return DeviceCredential(deviceId: "mdv_2", token: "device token mdv_2")
    }
    app.pb.notifications.registerDeviceToken(token)
    while app.server.pushTokens["mdv_2 ios"] == nil { await Task.yield() }
  }

  @Test("S0-113: another person's device does not get it by itself; no token, and an endless one, are none")
  func otherPerson() async throws {
    _ = try await app.pb.auth.signIn(token: "anna")
    app.pb.notifications.registerDeviceToken(token)
    app.pb.notifications.registerDeviceToken(Data())
    app.pb.notifications.registerDeviceToken(Data(count: 10_000))
    _ = try await app.pb.auth.signIn(token: "ben")
    try enrol("mdv_2")
    for _ in 0..<20 { await Task.yield() }
    #expect(app.server.pushTokens.isEmpty)
    app.pb.notifications.registerDeviceToken(token)
    _ = await posted(1)
    #expect(app.server.pushTokens == ["mdv_2 ios": "00abff"])
  }
}
