import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@Suite("WebSocket client")
struct ClientTests {
  private func url(_ server: TestServer, _ target: String = "/ws") -> String {
    "ws://127.0.0.1:\(server.port)\(target)"
  }

  @Test("Messages of all lengths come back, text and binary")
  func echo() async throws {
    let server = try TestServer()
    let client = try await WebSocketClient.connect(to: url(server))
    var messages = client.messages.makeAsyncIterator()
    for count in [0, 1, 125, 126, 65_535, 65_536, 400_000] {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      #expect(client.send(binary: bytes))
      #expect(await messages.next() == .binary(bytes))
    }
    client.send(text: "grüße")
    #expect(await messages.next() == .text("grüße"))
    #expect(client.closure == nil)
    client.close(code: 4_002, reason: "done")
    #expect(!client.send(binary: [1]))
    #expect(await messages.next() == nil)
    #expect(client.closure?.code == 4_002)
    await server.handler.wait { !$0.closures.isEmpty }
    #expect(server.handler.log.withLock { $0.closures } == [WebSocketClosure(code: 4_002, reason: "done")])
  }

  @Test("Headers, a query of 20 kB and the first message of the server")
  func request() async throws {
    let server = try TestServer()
    var options = WebSocketClient.Options()
    options.headers = [.init("Authorization", "Bearer a.b.c"), .init("X-Bad", "a\r\nX-Worse: b")]
    let value = String(repeating: "q", count: 20_000)
    let client = try await WebSocketClient.connect(
      to: url(server, "/greeting?join_request=\(value)"), options: options)
    for await message in client.messages {
      #expect(message == .binary([1, 2, 3]))
      break
    }
    let seen = server.handler.log.withLock { $0.requests[0] }
    #expect(seen.header("authorization") == "Bearer a.b.c" && seen.query("join_request") == value)
    #expect(seen.header("host") == "127.0.0.1:\(server.port)")
    client.disconnect()
    await server.handler.wait { $0.closures == [.abnormal] }
  }

  @Test("A refused upgrade is a typed error with status and body")
  func refused() async throws {
    let server = try TestServer()
    var options = WebSocketClient.Options()
    options.headers = [.init("Authorization", "Bearer wrong")]
    await #expect(throws: WebSocketClientError.refused(status: 404, body: "requested room does not exist")) {
      try await WebSocketClient.connect(to: url(server, "/refused"))
    }
    await #expect(throws: WebSocketClientError.refused(status: 401, body: "no permission: Bearer wrong")) {
      try await WebSocketClient.connect(to: url(server, "/token"), options: options)
    }
  }

  @Test("Closed ports, other servers, silence and cancellation are typed errors")
  func failures() async throws {
    let server = try TestServer()
    let port = server.port
    server.server.stop()
    await #expect {
      try await WebSocketClient.connect(to: "ws://127.0.0.1:\(port)/")
    } throws: { error in
      guard case .unreachable = error as? WebSocketClientError else { return false }
      return true
    }
    // A listener that never accepts: the connection stands, and nothing comes.
    let silent = try SilentListener()
    var options = WebSocketClient.Options()
    options.timeout = .milliseconds(50)
    await #expect(throws: WebSocketClientError.timedOut) {
      try await WebSocketClient.connect(to: "ws://127.0.0.1:\(silent.port)/", options: options)
    }
    let task = Task { try await WebSocketClient.connect(to: "ws://127.0.0.1:\(silent.port)/") }
    task.cancel()
    await #expect(throws: WebSocketClientError.cancelled) { _ = try await task.value }
    for bad in [
      "http://x/", "ws://", "ws://a b/", "ws://x:0/", "ws://x:99999/", "ws://u@x/", "ws://[::1/", "",
      "ws://x\r\n",
    ] {
      await #expect(throws: WebSocketClientError.malformedURL) { try await WebSocketClient.connect(to: bad) }
    }
  }

  @Test("The server's close, with code and reason, ends the messages")
  func serverCloses() async throws {
    let server = try TestServer()
    let client = try await WebSocketClient.connect(to: url(server))
    client.send(text: "close")
    for await _ in client.messages {}
    #expect(client.closure == WebSocketClosure(code: 4_000, reason: "as asked"))
  }

  @Test("A stopped server ends its clients with 1001")
  func serverStops() async throws {
    let server = try TestServer()
    let client = try await WebSocketClient.connect(to: url(server))
    await server.handler.wait { $0.opened == 1 }
    server.server.stop()
    for await _ in client.messages {}
    #expect(client.closure?.code == 1_001)
  }

  @Test(
    "A message above the client's limit ends the socket, and so does a consumer that does not take messages")
  func limits() async throws {
    let server = try TestServer()
    var options = WebSocketClient.Options()
    options.messageByteCount = 1_000
    let client = try await WebSocketClient.connect(to: url(server), options: options)
    client.send(binary: [UInt8](repeating: 0, count: 1_001))
    for await _ in client.messages { Issue.record("a message above the limit") }
    #expect(client.closure?.code == 1_009)

    options.receiveQueueCount = 10
    let idle = try await WebSocketClient.connect(to: url(server), options: options)
    for number in 0..<12 { idle.send(binary: [UInt8(number)]) }
    await server.handler.wait { $0.closures.count == 2 }
    var count = 0
    for await _ in idle.messages { count += 1 }
    #expect(count == 10)
  }

  @Test("Silence is answered by pings, and a dead server is given up")
  func silence() async throws {
    let server = try TestServer()
    var options = WebSocketClient.Options()
    options.pingInterval = .milliseconds(50)
    options.silenceTimeout = .seconds(2)
    // A live server answers the pings: the socket outlives the silence limit.
    let live = try await WebSocketClient.connect(to: url(server), options: options)
    let silent = try SilentListener(answersUpgrade: true)
    let dead = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(silent.port)/", options: options)
    for await _ in dead.messages {}
    #expect(dead.closure == .abnormal && live.closure == nil)
    live.close()
  }

  @Test("50 clients at once, each with its own handler")
  func many() async throws {
    let server = try TestServer()
    let address = url(server)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<50 {
        group.addTask {
          let client = try await WebSocketClient.connect(to: address)
          client.send(text: "\(number)")
          for await message in client.messages {
            #expect(message == .text("\(number)"))
            client.close()
          }
        }
      }
      try await group.waitForAll()
    }
    await server.handler.wait { $0.closures.count == 50 }
  }

  /// Keeps the client that it hears, as owners of both do.
  private final class Owner: WebSocketHandler {
    let client = Mutex<WebSocketClient?>(nil)
    private let life: AsyncStream<Void>.Continuation

    init(_ life: AsyncStream<Void>.Continuation) { self.life = life }
    deinit { life.finish() }

    func opened() {}
    func received(binary: [UInt8]) {}
    func received(text: String) {}
    func closed(_ closure: WebSocketClosure) {}
  }

  @Test(
    "Churn: a handler that keeps its client goes with the socket, whoever ended it",
    .timeLimit(.minutes(1)), arguments: ["server", "client", "break"])
  func handlerLetGo(by side: String) async throws {
    let server = try TestServer()
    let (life, continuation) = AsyncStream<Void>.makeStream()
    do {
      let owner = Owner(continuation)
      let client = try await WebSocketClient.connect(to: url(server), handler: owner)
      owner.client.withLock { $0 = client }
      switch side {
      case "server": client.send(text: "close")
      case "client": client.close()
      default: client.disconnect()
      }
    }
    // Ends with the handler.
    for await _ in life {}
  }

  @Test("It connects to IPv6 and to names", arguments: ["[::1]", "localhost"])
  func addresses(host: String) async throws {
    let server = try TestServer(host: "::")
    let client = try await WebSocketClient.connect(to: "ws://\(host):\(server.port)")
    client.send(text: "close")
    for await _ in client.messages {}
    #expect(server.handler.log.withLock { $0.requests[0].path } == "/")
  }
}
