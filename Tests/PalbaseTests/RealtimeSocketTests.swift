import Foundation
import PalbeSDKKit
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@testable import Palbase

/// A server's end of the realtime socket: says yes to every subscription, and what a test wants besides.
private final class SocketServer: WebServerHandler {
  struct State {
    var sockets: [WebSocket] = []
    var headers: [[HTTPRequest.Field]] = []
    var frames: [String] = []
    var refusal: HTTPResponse?
  }
  let state = Mutex(State())

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    state.withLock { state in
      state.headers.append(request.headers)
      if let refusal = state.refusal.take() { return .reject(refusal) }
      guard request.path == "/v1/realtime" else { return .reject(.text("no", status: 404)) }
      state.sockets.append(socket)
      return .accept(Handler(owner: self, socket: socket))
    }
  }

  private struct Handler: WebSocketHandler {
    let owner: SocketServer
    let socket: WebSocket
    func opened() {}
    func received(binary: [UInt8]) {}
    func received(text: String) {
      owner.state.withLock { $0.frames.append(text) }
      guard let id = text.firstMatch(of: /"id":(\d+)/)?.1 else { return }
      socket.send(text: #"{"type":"reply","id":\#(id)}"#)
    }
    func closed(_ closure: WebSocketClosure) {}
  }

  func say(_ text: String) { state.withLock { _ = $0.sockets.last?.send(text: text) } }
  func close(_ code: UInt16, _ reason: String = "") {
    state.withLock { $0.sockets.last?.close(code: code, reason: reason) }
  }
}

@Suite("Realtime: over real sockets", .timeLimit(.minutes(2)))
struct RealtimeSocketTests {
  private let folder: TemporaryFolder
  private let handler = SocketServer()
  private let server: WebServer
  private let accounts: FakeServer
  private let sessions: SessionAuthority
  private let devices: DeviceRegistry
  private let socket: RealtimeSocket

  init() async throws {
    folder = try TemporaryFolder()
    var limits = WebServerLimits()
    limits.additionalHeaderNames = ["palbe-device"]
    limits.requestTimeout = .seconds(600)
    server = try WebServer(host: "127.0.0.1", port: 0, limits: limits, handler: handler)
    accounts = FakeServer { Timebase.system.wallMilliseconds() }
    let vault = MemoryVault()
    // Requests go to the server in memory, the socket to a real one.
    let http = HTTPClient(
      server: try #require(ServerURL("https://palbe.test")), transport: FakeTransport(server: accounts),
      time: .system)
    sessions = SessionAuthority(vault: vault, http: http, lockPath: folder.path("lock"))
    devices = DeviceRegistry(vault: vault)
    // Waits for the next attempt are short, everything else is as it is.
    var time = Timebase.system
    time.sleep = { try await Task.sleep(nanoseconds: UInt64(max(0, min($0.nanoseconds, 20_000_000)))) }
    socket = RealtimeSocket(
      server: try #require(ServerURL("http://127.0.0.1:\(server.port)")), sessions: sessions,
      devices: devices,
      connector: WebSocketConnector(trustedCertificateFile: nil), time: time)
    _ = try await sessions.signIn("token", ["id_token": "anna"])
    try devices.set(DeviceCredential(deviceId: "mdv_1", token: "device-token"), of: "usr_anna")
  }

  @Test("Both headers at the upgrade, a subscription, an event, a request, and its end with the stream")
  func wholeLife() async throws {
    var items: AsyncStream<RealtimeItem>? = socket.items(of: "messaging:device:mdv_1")
    var iterator = items?.makeAsyncIterator()
    #expect(await iterator?.next()?.isJoined == true)
    let headers = handler.state.withLock { $0.headers[0] }
    #expect(headers.contains(.init("palbe-device", "device-token")))
    #expect(headers.contains { $0.name == "authorization" && $0.value.hasPrefix("Bearer at-") })
    handler.say(#"{"type":"event","topic":"messaging:device:mdv_1","event":"queue_changed"}"#)
    guard case .event("queue_changed", _) = await iterator?.next() else {
      Issue.record("no event")
      return
    }
    let reply = try await socket.request(.acknowledge(upTo: 9))
    #expect(String(decoding: reply, as: UTF8.self) == #"{"type":"reply","id":2}"#)
    iterator = nil
    items = nil
    while !handler.state.withLock({ $0.frames.contains { $0.contains("unsubscribe") } }) {
      await Task.yield()
    }
  }

  @Test("The connection breaks, and is there again by itself; a new token is handed over")
  func reconnects() async throws {
    var iterator = socket.items(of: "t").makeAsyncIterator()
    #expect(await iterator.next()?.isJoined == true)
    handler.close(1_013)
    #expect(await iterator.next() == .interrupted)
    #expect(await iterator.next()?.isJoined == true)
    let old = try await sessions.accessToken()
    let new = try await sessions.accessToken(replacing: old.text)
    while !handler.state.withLock({ $0.frames.contains { $0.contains(new.text) } }) { await Task.yield() }
    // The session is over for the socket: it comes back with a renewed one.
    handler.close(4_401, "session_expired")
    #expect(await iterator.next() == .interrupted)
    #expect(await iterator.next()?.isJoined == true)
    let last = try await sessions.accessToken()
    #expect(last.text != new.text)
    #expect(
      handler.state.withLock { $0.headers.last!.contains(.init("authorization", "Bearer \(last.text)")) })
  }

  @Test("A refused upgrade with a body: what the server says counts")
  func refused() async throws {
    handler.state.withLock {
      $0.refusal = HTTPResponse(status: 403, body: Array(#"{"code":"device_revoked","status":403}"#.utf8))
    }
    var iterator = socket.items(of: "t").makeAsyncIterator()
    #expect(await iterator.next() == .ended(.deviceRevoked))
    #expect(await iterator.next() == nil)
    #expect(try devices.credential(of: "usr_anna")?.isRevoked == true)
  }

  @Test("S1-18: sign-out ends every subscription, and somebody else's sign-in too")
  func persons() async throws {
    var one = socket.items(of: "t").makeAsyncIterator()
    #expect(await one.next()?.isJoined == true)
    try await sessions.signOut()
    #expect(await one.next() == .ended(.signedOut))
    var none = socket.items(of: "t").makeAsyncIterator()
    #expect(await none.next() == .ended(.signedOut))
    _ = try await sessions.signIn("token", ["id_token": "anna"])
    var two = socket.items(of: "t").makeAsyncIterator()
    #expect(await two.next()?.isJoined == true)
    _ = try await sessions.signIn("token", ["id_token": "ben"])
    #expect(await two.next() == .ended(.personChanged))
  }

  @Test("Who does not read is told that something is missing; who cancels waits no longer")
  func slowReader() async throws {
    let buffer = ItemBuffer()
    for index in 0...ItemBuffer.limit { buffer.push(.event(name: "\(index)", [])) }
    #expect(await buffer.next() == .missed)
    #expect(await buffer.next() == .event(name: "\(ItemBuffer.limit)", []))
    buffer.push(.ended(.superseded))
    buffer.push(.interrupted)
    #expect(await buffer.next() == .ended(.superseded))
    #expect(await buffer.next() == nil)
    let items = socket.items(of: "t")
    let task = Task { () -> Int in
      var count = 0
      for await item in items where !item.isJoined { count += 1 }
      return count
    }
    while handler.state.withLock({ $0.frames.isEmpty }) { await Task.yield() }
    task.cancel()
    #expect(await task.value == 0)
  }
}
