import Foundation
import PalbeCrypto
import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import PalbeWire
import Synchronization
import Testing

@testable import PalbeSFUCore
@_spi(Testing) @testable import PalbeSFUServer

/// An operator's server: answers what the test wants and keeps what came.
private final class Receiver: WebServerHandler {
  struct Hook {
    var headers: HTTPRequest
    var event: LiveKit.WebhookEvent
  }
  private struct State {
    var hooks: [Hook] = []
    var statuses: [Int] = []
  }
  private let state: Mutex<State>
  private let changes: AsyncStream<Void>
  private let change: AsyncStream<Void>.Continuation

  /// - Parameter statuses: of the first answers; then 200.
  init(statuses: [Int] = []) {
    state = Mutex(State(statuses: statuses))
    (changes, change) = AsyncStream.makeStream(of: Void.self)
  }

  func respond(to request: HTTPRequest) -> HTTPResponse {
    let event = (try? LiveKit.WebhookEvent(json: request.body)) ?? LiveKit.WebhookEvent()
    let status = state.withLock { state in
      state.hooks.append(Hook(headers: request, event: event))
      return state.statuses.isEmpty ? 200 : state.statuses.removeFirst()
    }
    change.yield()
    return .text("", status: status)
  }

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    .reject(.text("", status: 404))
  }

  /// What came so far.
  var all: [Hook] { state.withLock { $0.hooks } }

  /// The first hooks, once there are so many.
  func hooks(_ count: Int) async -> [Hook] {
    func found() -> [Hook]? {
      state.withLock { $0.hooks.count >= count ? Array($0.hooks.prefix(count)) : nil }
    }
    if let hooks = found() { return hooks }
    for await _ in changes {
      if let hooks = found() { return hooks }
    }
    return []
  }
}

@Suite("Webhooks over real sockets (livekit-protocol.md 2, Webhooks)")
struct WebhookTests {
  private func receiver(_ handler: Receiver, certificate: CertificateFiles? = nil) throws -> WebServer {
    var limits = WebServerLimits()
    limits.requestTimeout = .seconds(600)
    return try WebServer(
      host: "127.0.0.1", port: 0, certificate: certificate, limits: limits, handler: handler)
  }

  private func room(_ name: String) -> LiveKit.Room { .with { $0.name = name } }

  private func notice(_ event: RoomNotice.Event, _ room: String) -> RoomNotice {
    RoomNotice(event: event, room: self.room(room), createdAt: 1_700_000_000)
  }

  private func sender(
    to port: UInt16, _ change: (inout WebhookSender.Settings) -> Void = { _ in }
  ) throws -> WebhookSender {
    let url = try #require(WebhookURL("http://127.0.0.1:\(port)/hook?a=b"))
    var settings = WebhookSender.Settings(
      target: WebhookTarget(
        urls: [url], signer: WebhookSigner(keyName: Tokens.key, secret: Tokens.secret)))
    settings.firstWait = .milliseconds(1)
    change(&settings)
    return try WebhookSender(settings, log: ServerLog(level: .warning))
  }

  @Test("A room's life is told: signed, in order, as a POST of camelCase JSON")
  func life() async throws {
    let handler = Receiver()
    let receiver = try receiver(handler)
    let server = try SFUServer.onLoopback { $0.webhooks.urls = ["http://127.0.0.1:\(receiver.port)/hook"] }
    _ = try await SignalClient.connect(to: server, room: "hall", identity: "anna")
    let started = await handler.hooks(1)[0]
    #expect(started.event.event == "room_started" && started.event.room?.name == "hall")
    server.stop()
    let hooks = await handler.hooks(3)
    // No connection for media was ever there.
    #expect(hooks.map(\.event.event) == ["room_started", "participant_connection_aborted", "room_finished"])
    #expect(hooks[1].event.participant?.identity == "anna")
    #expect(hooks[2].event.roomEndReason == .serverShutdown)
    #expect(Set(hooks.map(\.event.id)).count == 3 && hooks.allSatisfy { $0.event.id.hasPrefix("EV_") })
    for hook in hooks {
      let request = hook.headers
      #expect(request.method == "POST" && request.path == "/hook")
      #expect(request.header("content-type") == "application/webhook+json")
      #expect(request.header("user-agent") == "LiveKit")
      #expect(String(decoding: request.body, as: UTF8.self).contains(#""createdAt":""#))
      let token = try #require(request.header("authorization"))
      #expect(throws: Never.self) {
        try AccessToken(verifying: token, keys: [Tokens.key: Tokens.secret], now: Tokens.now)
      }
      let claims = try #require(Base64.decode(String(token.split(separator: ".")[1]), alphabet: .url))
      let object = try #require(try JSONSerialization.jsonObject(with: Data(claims)) as? [String: Any])
      #expect(object["iss"] as? String == Tokens.key)
      #expect(LiveKit.Webhook.matches(body: request.body, claim: object["sha256"] as? String ?? ""))
    }
  }

  @Test("After a failure the same body comes again, in order; a refusal is not repeated")
  func retries() async throws {
    let handler = Receiver(statuses: [500, 429, 200, 404])
    let receiver = try receiver(handler)
    let sender = try sender(to: receiver.port)
    for event: RoomNotice.Event in [.roomStarted, .participantJoined, .roomFinished] {
      sender.post(notice(event, "hall"))
    }
    let hooks = await handler.hooks(5)
    #expect(
      hooks.map(\.event.event)
        == ["room_started", "room_started", "room_started", "participant_joined", "room_finished"])
    #expect(Set(hooks.prefix(3).map(\.headers.body)).count == 1)
    #expect(hooks[0].event.createdAt == 1_700_000_000)
    sender.stop()
  }

  @Test("A key that a reload brings signs what is sent from then on, retries too")
  func newKey() async throws {
    let handler = Receiver(statuses: [500])
    let receiver = try receiver(handler)
    let sender = try sender(to: receiver.port) { $0.firstWait = .seconds(1) }
    sender.post(notice(.roomStarted, "hall"))
    _ = await handler.hooks(1)
    let url = try #require(WebhookURL("http://127.0.0.1:\(receiver.port)/hook?a=b"))
    sender.change(to: WebhookTarget(urls: [url], signer: WebhookSigner(keyName: "new", secret: "other")))
    let token = try #require(await handler.hooks(2)[1].headers.header("authorization"))
    #expect(throws: Never.self) {
      try AccessToken(verifying: token, keys: ["new": "other"], now: Tokens.now)
    }
    sender.stop()
  }

  @Test("A reload changes who is told: nobody, somebody, somebody else; a wrong one changes nothing")
  func newAddresses() async throws {
    let first = Receiver()
    let second = Receiver()
    let firstServer = try receiver(first)
    let secondServer = try receiver(second)
    func configuration(_ urls: [String], key: String? = nil) -> SFUServer.Configuration {
      var configuration = SFUServer.Configuration(keys: [Tokens.key: Tokens.secret])
      configuration.log = ServerLog(level: .warning)
      configuration.webhooks.urls = urls
      configuration.webhooks.keyName = key
      return configuration
    }
    let server = try SFUServer.onLoopback(workers: 1)
    defer { server.stop() }
    /// Returns when the worker has told of the room.
    func join(_ room: String) async throws -> SignalClient {
      let client = try await SignalClient.connect(to: server, room: room, identity: "i")
      _ = try await client.next()
      await withCheckedContinuation { done in server.inboxes[0].post(.measure { _ in done.resume() }) }
      return client
    }
    var clients = [try await join("before")]
    try server.reload(configuration(["http://127.0.0.1:\(firstServer.port)/a"]))
    clients.append(try await join("told"))
    #expect(await first.hooks(1)[0].event.room?.name == "told")
    for wrong in [configuration(["ftp://nowhere"]), configuration(["http://127.0.0.1:1/"], key: "nobody")] {
      #expect(throws: SFUServerError.self) { try server.reload(wrong) }
    }
    try server.reload(configuration(["http://127.0.0.1:\(secondServer.port)/b"]))
    clients.append(try await join("elsewhere"))
    let hook = await second.hooks(1)[0]
    #expect(hook.event.room?.name == "elsewhere" && hook.headers.path == "/b")
    #expect(first.all.allSatisfy { $0.event.room?.name == "told" })
    try server.reload(configuration([]))
    clients.append(try await join("silent"))
    try server.reload(configuration(["http://127.0.0.1:\(secondServer.port)/b"]))
    clients.append(try await join("again"))
    let names = await second.hooks(2).compactMap(\.event.room?.name)
    #expect(names == ["elsewhere", "again"])
    withExtendedLifetime(clients) {}
  }

  @Test("A receiver that is not there holds up neither others nor the stop; what is left is counted")
  func absent() async throws {
    let handler = Receiver()
    let receiver = try receiver(handler)
    let closed = try self.receiver(Receiver())
    let closedPort = closed.port
    closed.stop()
    let sender = try sender(to: closedPort) { settings in
      settings.target?.urls.append(WebhookURL("http://127.0.0.1:\(receiver.port)/")!)
      settings.farewell = .milliseconds(1)
    }
    sender.post(notice(.roomStarted, "hall"))
    #expect(await handler.hooks(1)[0].event.event == "room_started")
    sender.stop()
    sender.stop()
    sender.post(notice(.roomFinished, "hall"))
  }

  @Test("HTTPS: the receiver's certificate must be trusted")
  func https() async throws {
    let folder = try TemporaryFolder()
    let files = CertificateFiles(certificate: folder.path("cert.pem"), key: folder.path("key.pem"))
    try TestCertificates.first.write(toFile: files.certificate, atomically: true, encoding: .utf8)
    try TestCertificates.firstKey.write(toFile: files.key, atomically: true, encoding: .utf8)
    let handler = Receiver()
    let receiver = try receiver(handler, certificate: files)
    let url = try #require(WebhookURL("https://localhost:\(receiver.port)/"))
    let distrustful = try sender(to: 1) {
      $0.target?.urls = [url]
      $0.farewell = .milliseconds(100)
    }
    distrustful.post(notice(.roomStarted, "distrusted"))
    let sender = try sender(to: 1) {
      $0.target?.urls = [url]
      $0.authorities = files.certificate
    }
    sender.post(notice(.roomStarted, "trusted"))
    #expect(await handler.hooks(1)[0].event.room?.name == "trusted")
    sender.stop()
    distrustful.stop()
  }

  @Test("A wrong address or key is told at the start")
  func configuration() {
    for (urls, key, text) in [
      (["nowhere"], nil, "webhooks: 'nowhere' is no http or https address"),
      (["http://a/"], "other", "webhooks: there is no API key 'other' to sign with"),
    ] as [([String], String?, String)] {
      let error = #expect(throws: SFUServerError.self) {
        try SFUServer.onLoopback {
          $0.webhooks.urls = urls
          $0.webhooks.keyName = key
        }
      }
      #expect(error?.description == text)
    }
  }
}
