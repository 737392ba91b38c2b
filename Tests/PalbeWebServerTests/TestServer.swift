import PalbeUnits
import PalbeWebServer
import Synchronization

/// Answers plain requests with what it saw, echoes WebSocket messages, and refuses by the path.
final class TestHandler: WebServerHandler {
  struct Log {
    var requests: [HTTPRequest] = []
    var sockets: [WebSocket] = []
    var closures: [WebSocketClosure] = []
    var opened = 0
    var received: [WebSocketMessage] = []
    /// Who waits for an answer to "/later".
    var responders: [HTTPResponder] = []
  }
  let log = Mutex(Log())
  private let changes: AsyncStream<Void>
  private let change: AsyncStream<Void>.Continuation

  init() { (changes, change) = AsyncStream.makeStream(of: Void.self) }

  func refuseBody(of request: HTTPRequest) -> HTTPResponse? {
    request.path == "/unwanted" ? .text("no", status: 401) : nil
  }

  func respond(to request: HTTPRequest, with responder: HTTPResponder) {
    switch request.path {
    case "/later":
      record { $0.responders.append(responder) }
    case "/never": break
    default: responder.send(respond(to: request))
    }
  }

  func respond(to request: HTTPRequest) -> HTTPResponse {
    record { $0.requests.append(request) }
    switch request.path {
    case "/": return .text("OK")
    case "/large": return HTTPResponse(status: 200, body: [UInt8](repeating: 120, count: 3_000_000))
    case "/split":
      return .text("x", headers: [.init("x-bad", "a\r\nset-cookie: b"), .init("x-good", "c")])
    case "/body": return HTTPResponse(status: 200, body: request.body)
    default: return .text("no such page", status: 404)
    }
  }

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    record {
      $0.requests.append(request)
      $0.sockets.append(socket)
    }
    switch request.path {
    case "/refused":
      socket.send(text: "never sent")
      return .reject(.text("requested room does not exist", status: 404))
    case "/token":
      return .reject(.text("no permission: \(request.header("authorization") ?? "none")", status: 401))
    case "/greeting":
      socket.send(binary: [1, 2, 3])
      return .accept(Echo(socket: socket, owner: self))
    default: return .accept(Echo(socket: socket, owner: self))
    }
  }

  func record(_ body: (inout sending Log) -> Void) {
    log.withLock { body(&$0) }
    change.yield()
  }

  /// Waits until the log fulfils `condition`. For one waiter at a time.
  func wait(until condition: @Sendable (borrowing Log) -> Bool) async {
    if log.withLock({ condition($0) }) { return }
    for await _ in changes where log.withLock({ condition($0) }) { return }
  }

  private final class Echo: WebSocketHandler {
    let socket: WebSocket
    let owner: TestHandler
    init(socket: WebSocket, owner: TestHandler) {
      self.socket = socket
      self.owner = owner
    }
    func opened() { owner.record { $0.opened += 1 } }
    func received(binary: [UInt8]) {
      owner.record { $0.received.append(.binary(binary)) }
      socket.send(binary: binary)
    }
    func received(text: String) {
      owner.record { $0.received.append(.text(text)) }
      if text == "close" { socket.close(code: 4_000, reason: "as asked") } else { socket.send(text: text) }
    }
    func closed(_ closure: WebSocketClosure) { owner.record { $0.closures.append(closure) } }
  }
}

extension WebServerLimits {
  /// No ping and no time-out in the life of a test: a busy machine may hold one up for longer than the usual times.
  static var patient: WebServerLimits {
    var limits = WebServerLimits()
    limits.requestTimeout = .seconds(600)
    limits.pingInterval = .seconds(600)
    limits.silenceTimeout = .seconds(1_200)
    return limits
  }
}

/// A server on a free port, stopped at the end of the test.
final class TestServer {
  let handler = TestHandler()
  let server: WebServer
  var port: UInt16 { server.port }

  init(
    host: String = "127.0.0.1", certificate: CertificateFiles? = nil, limits: WebServerLimits = .patient
  ) throws {
    server = try WebServer(
      host: host, port: 0, certificate: certificate, limits: limits, handler: handler)
  }

  deinit { server.stop() }
}
