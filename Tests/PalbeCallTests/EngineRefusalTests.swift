import PalbeCall
import PalbeCallCore
import PalbeFrameEncryption
import PalbeUnits
import PalbeWebServer
import Testing

@Suite(
  "an engine that cannot start says why and leaves nothing running",
  .timeLimit(.minutes(1)))
struct EngineRefusalTests {
  private func party(
    _ identity: String, at url: String, key: [UInt8]? = nil, isEncrypted: Bool = true,
    change: (inout CallEngine.Configuration) -> Void = { _ in }
  ) throws -> Party {
    try Party(
      identity, at: url, key: key, isEncrypted: isEncrypted, microphone: Silence(), camera: BlackPicture(),
      change: change)
  }

  private func failure(of party: Party) async -> CallEngineError? {
    do throws(CallEngineError) {
      try await party.engine.start()
      return nil
    } catch { return error }
  }

  @Test(
    "addresses that are none",
    arguments: ["", "127.0.0.1:7880", "http://127.0.0.1", "ws://", "ws://a b", "ws://h?q=1"])
  func malformedURL(url: String) async throws {
    #expect(await failure(of: try party("ada", at: url, isEncrypted: false)) == .malformedURL(url))
  }

  @Test("tokens that are none", arguments: ["", "a.b", "a.!.c", "a.e30.c", "a.eyJzdWIiOiJhIn0.c"])
  func malformedToken(token: String) async throws {
    let party = try self.party("ada", at: "ws://127.0.0.1:1", isEncrypted: false) { $0.token = token }
    #expect(await failure(of: party) == .malformedToken)
  }

  @Test("a closed port")
  func refusedConnection() async throws {
    let party = try self.party("ada", at: "ws://127.0.0.1:1", isEncrypted: false)
    guard case .unreachable = await failure(of: party) else {
      Issue.record("expected unreachable")
      return
    }
    #expect(await failure(of: party) == .alreadyStarted)
  }

  @Test("a host without an address")
  func unknownHost() async throws {
    let party = try self.party("ada", at: "ws://host.invalid", isEncrypted: false)
    #expect(await failure(of: party) == .noRoute(host: "host.invalid"))
  }

  @Test("a refused token: the status and the body of the upgrade")
  func refusedToken() async throws {
    let body = "invalid token: ...,\nerror: expired"
    let doorman = Doorman(decision: .reject(HTTPResponse(status: 401, body: Array(body.utf8))))
    let server = try WebServer(host: "127.0.0.1", port: 0, handler: doorman)
    defer { server.stop() }
    let error = await failure(of: try party("ada", at: server.url, isEncrypted: false))
    #expect(error == .refused(status: 401, body: body))
    let line = try #require(error).description
    #expect(line.contains("401") && line.contains("expired") && !line.contains("\n"))
  }

  @Test("a token signed with another secret, at the SFU itself")
  func wrongSecret() async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let token = try TestSFU.token("ada", secret: "another secret of more than thirty-two characters")
    let party = try self.party("ada", at: sfu.url, isEncrypted: false) { $0.token = token }
    guard case .refused(status: 401, _) = await failure(of: party) else {
      Issue.record("expected 401")
      return
    }
  }

  @Test("a server that accepts and says nothing: the time limit, a stop and a cancelled task each end it")
  func silentServer() async throws {
    let server = try WebServer(host: "127.0.0.1", port: 0, handler: Doorman.silent)
    defer { server.stop() }
    let hasty = try party("ada", at: server.url, isEncrypted: false) { $0.connectTimeout = .milliseconds(50) }
    #expect(await failure(of: hasty) == .timedOut)

    let stopped = try party("bob", at: server.url, isEncrypted: false)
    let start = Task { await self.failure(of: stopped) }
    await Task.yield()
    await stopped.engine.stop()
    let outcome = await start.value
    #expect(outcome == .cancelled || outcome == .alreadyStarted)

    let cancelled = try party("cy", at: server.url, isEncrypted: false)
    let task = Task { await self.failure(of: cancelled) }
    task.cancel()
    #expect(await task.value == .cancelled)
  }

  @Test("S4-31: keys of another length, and keys where there is no encryption", arguments: [0, 16, 31, 33])
  func wrongKeys(length: Int) async throws {
    let key = [UInt8](repeating: 1, count: length)
    let party = try self.party("ada", at: "ws://127.0.0.1:1", key: key)
    #expect(await failure(of: party) == .key(.wrongLength(expected: 32, got: length)))
    let plain = try self.party(
      "ada", at: "ws://127.0.0.1:1", key: [UInt8](repeating: 1, count: 32), isEncrypted: false)
    #expect(await failure(of: plain) == .encryptionIsOff)
  }

  @Test("a listener has no track to mute")
  func notPublished() async throws {
    let party = try self.party("ada", at: "ws://127.0.0.1:1", isEncrypted: false) { $0.videoSource = nil }
    await #expect(throws: CallEngineError.notPublished) { try await party.engine.setMuted(.camera, true) }
    try await party.engine.setMuted(.microphone, true)
    #expect(await party.engine.statistics() == nil)
    await party.engine.stop()
    await #expect(throws: CallEngineError.notConnected) {
      try await party.engine.setMuted(.microphone, false)
    }
  }
}
