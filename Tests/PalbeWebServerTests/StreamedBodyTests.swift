import CPalbeLinux
import Glibc
import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@Suite("Web server: bodies piece by piece")
struct StreamedBodyTests {
  private func head(_ count: Int, _ path: String = "/stream") -> String {
    "PUT \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: \(count)\r\n\r\n"
  }

  @Test("A body goes to its sink in order, whatever the small-body limit, and the connection stays")
  func upload() throws {
    var limits = WebServerLimits.patient
    limits.requestBodyByteCount = 10
    let server = try StreamServer(limits: limits)
    let client = try RawClient(port: server.port)
    let body = [UInt8]((0..<3_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    for _ in 0..<2 {
      client.send(head(body.count))
      client.send(body)
      let answer = client.response()
      #expect(answer.status == 200 && answer.body == "3000001")
      #expect(server.handler.state.withLock { $0.received.elementsEqual(body) })
    }
    client.send(head(11, "/small") + "hello world")
    #expect(client.response().status == 413)
  }

  @Test("Bug: a long body that arrived while its head was looked at was now and then refused as pipelined")
  func longBodies() throws {
    let server = try StreamServer()
    let client = try RawClient(port: server.port)
    let request = Array(head(400_000).utf8) + [UInt8](repeating: 7, count: 400_000)
    for _ in 0..<200 {
      client.send(request)
      #expect(client.response().status == 200)
    }
  }

  @Test("A refusal comes before the first byte is read")
  func refused() throws {
    let server = try StreamServer()
    let client = try RawClient(port: server.port)
    client.send(head(1 << 40, "/unwanted"))
    #expect(client.response().status == 403)
    #expect(client.readToEnd().isEmpty)
    #expect(server.handler.state.withLock { $0.pieceCount } == 0)
  }

  @Test("A sink that has enough holds up its client alone, and goes on when it likes")
  func backPressure() throws {
    let server = try StreamServer()
    server.handler.state.withLock { $0.pausesAfter = 1 }
    let client = try RawClient(port: server.port)
    var size: Int32 = 16_384
    setsockopt(client.descriptor, SOL_SOCKET, SO_SNDBUF, &size, 4)
    client.send(head(1 << 28))
    // As much as the sockets hold, and not more.
    let flags = fcntl(client.descriptor, F_GETFL)
    _ = fcntl(client.descriptor, F_SETFL, flags | O_NONBLOCK)
    let piece = [UInt8](repeating: 7, count: 65_536)
    var sent = 0
    var blocked = 0
    while blocked < 20 {
      let count = piece.withUnsafeBytes {
        send(client.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count > 0 { sent += count } else { blocked += 1 }
      // Each answer on another connection is a turn of the server's.
      let other = try RawClient(port: server.port)
      other.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(other.response().body == "OK")
      try #require(sent < 64 << 20)
    }
    #expect(server.handler.state.withLock { $0.pieceCount } == 1)
    let responder = server.handler.state.withLock { state in
      state.pausesAfter = .max
      return state.responder
    }
    responder?.resumeBody()
    _ = fcntl(client.descriptor, F_SETFL, flags)
    var rest = (1 << 28) - sent
    while rest > 0 {
      let next = piece[..<min(rest, piece.count)]
      guard client.send(Array(next)) else { break }
      rest -= next.count
    }
    #expect(client.response().body == "\(1 << 28)")
  }

  @Test("1 GB cut in the middle: the sink hears of it, and memory stays flat")
  func cut() async throws {
    let server = try StreamServer()
    server.handler.state.withLock { $0.keeps = false }
    let client = try RawClient(port: server.port)
    client.send(head(1 << 30))
    let piece = [UInt8](repeating: 1, count: 1 << 20)
    for _ in 0..<16 { client.send(piece) }
    let before = try residentByteCount()
    for _ in 0..<496 { client.send(piece) }
    let after = try residentByteCount()
    client.reset()
    await server.handler.wait { $0.abortedCount == 1 }
    #expect(after - before < 8 << 20, "\(after - before) bytes more")
    let next = try RawClient(port: server.port)
    next.send(head(3) + "abc")
    #expect(next.response().body == "3")
  }

  @Test("An answer in the middle of a body ends it")
  func early() async throws {
    let server = try StreamServer()
    server.handler.state.withLock { $0.answersAfter = 2 }
    let client = try RawClient(port: server.port)
    client.send(head(1 << 20))
    client.send([UInt8](repeating: 1, count: 16_384))
    // Once the first piece is through, one more, which is answered.
    await server.handler.wait { $0.pieceCount >= 1 }
    client.send([UInt8](repeating: 1, count: 16_384))
    #expect(client.response().status == 507)
    #expect(client.readToEnd().isEmpty)
    await server.handler.wait { $0.abortedCount == 1 }
  }

  @Test("A client that stops sending is let go, and so is one that stops reading")
  func stalled() async throws {
    var limits = WebServerLimits.patient
    limits.requestTimeout = .seconds(1)
    limits.streamTimeout = .seconds(1)
    let server = try StreamServer(limits: limits)
    let sender = try RawClient(port: server.port)
    sender.send(head(100) + "abc")
    #expect(sender.response().status == 408)
    #expect(sender.readToEnd().isEmpty)
    await server.handler.wait { $0.abortedCount == 1 }
    let reader = try RawClient(port: server.port, receiveBuffer: 4_096)
    reader.send("GET /bytes/100000000 HTTP/1.1\r\nHost: x\r\n\r\n")
    await server.handler.wait { $0.closedCount == 1 }
  }

  @Test("An answer comes from its source piece by piece, also when pieces are late, and the connection stays")
  func download() throws {
    let server = try StreamServer()
    let client = try RawClient(port: server.port)
    for path in ["/bytes/1000003", "/late/1000003", "/bytes/1", "/bytes/0"] {
      let count = Int(path.split(separator: "/")[1]) ?? 0
      client.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
      let answer = client.response()
      #expect(answer.status == 200 && answer.body.utf8.count == count, "\(path)")
      #expect(answer.body.utf8.enumerated().allSatisfy { $1 == StreamHandler.byte(Int64($0)) })
    }
    client.send("HEAD /bytes/5000 HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response(toHead: true).head.contains("content-length: 5000"))
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().body == "OK")
    #expect(server.handler.state.withLock { $0.closedCount } == 5)
  }

  @Test("A source that fails cuts the answer off")
  func failing() async throws {
    let server = try StreamServer()
    let client = try RawClient(port: server.port)
    client.send("GET /fail/300000 HTTP/1.1\r\nHost: x\r\n\r\n")
    let answer = client.readToEnd()
    #expect(answer.count < 300_000 && answer.starts(with: Array("HTTP/1.1 200".utf8)))
    await server.handler.wait { $0.closedCount == 1 }
  }

  @Test("A slow reader is asked for no more than it takes, and disturbs nobody")
  func slowReader() throws {
    let server = try StreamServer()
    let slow = try (0..<20).map { _ in
      let client = try RawClient(port: server.port, receiveBuffer: 4_096)
      client.send("GET /bytes/1000000000 HTTP/1.1\r\nHost: x\r\n\r\n")
      return client
    }
    for client in slow { #expect(client.response(toHead: true).status == 200) }
    let client = try RawClient(port: server.port)
    for _ in 0..<200 {
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(client.response().body == "OK")
    }
    #expect(server.handler.state.withLock { $0.givenByteCount } < 20 * (16 << 20))
  }

  @Test("What is sent during a streamed answer waits; one that goes in the middle frees its source")
  func pipelinedAndGone() async throws {
    let server = try StreamServer()
    let client = try RawClient(port: server.port)
    client.send("GET /late/200000 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().body.utf8.count == 200_000)
    #expect(client.response().body == "OK")
    let gone = try RawClient(port: server.port, receiveBuffer: 4_096)
    gone.send("GET /bytes/100000000 HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(gone.response(toHead: true).status == 200)
    gone.reset()
    await server.handler.wait { $0.closedCount == 2 }
  }
}

/// Memory of this process in use (proc(5)).
func residentByteCount() throws -> Int {
  let file = try #require(fopen("/proc/self/statm", "r"))
  defer { fclose(file) }
  var buffer = [CChar](repeating: 0, count: 256)
  fgets(&buffer, 255, file)
  let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  return (Int(text.split(separator: " ")[1]) ?? 0) * sysconf(Int32(_SC_PAGESIZE))
}

/// Counts what is uploaded and gives any number of bytes.
final class StreamHandler: WebServerHandler {
  struct State {
    var received: [UInt8] = []
    var keeps = true
    var pieceCount = 0
    var pausesAfter = Int.max
    var answersAfter = Int.max
    var abortedCount = 0
    var closedCount = 0
    var givenByteCount = 0
    var responder: HTTPResponder?
  }
  let state = Mutex(State())
  private let changes: AsyncStream<Void>
  private let change: AsyncStream<Void>.Continuation

  init() { (changes, change) = AsyncStream.makeStream(of: Void.self) }

  func record(_ body: (inout sending State) -> Void) {
    state.withLock { body(&$0) }
    change.yield()
  }

  /// Waits until the state fulfils `condition`. For one waiter at a time.
  func wait(until condition: @Sendable (borrowing State) -> Bool) async {
    if state.withLock({ condition($0) }) { return }
    for await _ in changes where state.withLock({ condition($0) }) { return }
  }

  static func byte(_ index: Int64) -> UInt8 { UInt8(65 + index % 26) }

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    .reject(.text("no", status: 404))
  }

  func body(of request: HTTPRequest, byteCount: Int64, responder: HTTPResponder) -> HTTPBodyDecision {
    switch request.path {
    case "/small": return .collect
    case "/unwanted": return .refuse(.text("no", status: 403))
    default:
      record {
        $0.received = []
        $0.pieceCount = 0
        $0.responder = responder
      }
      return .stream(Sink(self, responder))
    }
  }

  func respond(to request: HTTPRequest) -> HTTPResponse {
    let parts = request.path.split(separator: "/")
    guard parts.count == 2, let count = Int64(parts[1]) else { return .text("OK") }
    return HTTPResponse(status: 200, source: Source(self, String(parts[0])), byteCount: count)
  }

  private final class Sink: HTTPBodySink {
    let owner: StreamHandler
    let responder: HTTPResponder
    let count = Mutex(0)

    init(_ owner: StreamHandler, _ responder: HTTPResponder) {
      self.owner = owner
      self.responder = responder
    }

    func received(_ piece: [UInt8]) -> Bool {
      count.withLock { $0 += piece.count }
      let (number, pauses, answers) = owner.state.withLock { state in
        state.pieceCount += 1
        if state.keeps, state.received.count < 4 << 20 { state.received += piece }
        return (state.pieceCount, state.pausesAfter, state.answersAfter)
      }
      owner.record { _ in }
      if number == answers { responder.send(.text("full", status: 507)) }
      return number < pauses
    }

    func completed() { responder.send(.text("\(count.withLock { $0 })")) }
    func aborted() { owner.record { $0.abortedCount += 1 } }
  }

  private final class Source: HTTPBodySource {
    let owner: StreamHandler
    let kind: String
    private let state = Mutex((position: Int64(0), isReady: false))

    init(_ owner: StreamHandler, _ kind: String) {
      self.owner = owner
      self.kind = kind
    }

    func next(atMost count: Int, ready: @escaping @Sendable () -> Void) -> HTTPBodyPiece {
      let position: Int64? = state.withLock { state in
        if kind == "late", !state.isReady {
          state.isReady = true
          return nil
        }
        state.isReady = false
        state.position += Int64(count)
        return state.position - Int64(count)
      }
      guard let position else {
        Task { ready() }
        return .later
      }
      if kind == "fail", position > 0 { return .failed }
      owner.state.withLock { $0.givenByteCount += count }
      return .bytes((0..<Int64(count)).map { StreamHandler.byte(position + $0) })
    }

    func closed() { owner.record { $0.closedCount += 1 } }
  }
}

/// A server on a free port, stopped at the end of the test.
final class StreamServer {
  let handler = StreamHandler()
  let server: WebServer
  var port: UInt16 { server.port }

  init(limits: WebServerLimits = .patient) throws {
    server = try WebServer(host: "127.0.0.1", port: 0, limits: limits, handler: handler)
  }

  deinit { server.stop() }
}
