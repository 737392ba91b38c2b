import Glibc
import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeServerObservation
import PalbeUnits
import PalbeWire
import Synchronization
import Testing

@_spi(Testing) @testable import PalbeSFUServer
@testable import PalbeWebServer

@Suite("Drain, reload and metrics over real sockets (S4 part 5)", .timeLimit(.minutes(1)))
struct OperationTests {
  private func join(_ server: SFUServer, _ room: String, secret: String = Tokens.secret) -> String {
    let token = Tokens.join(room: room, identity: "i", secret: secret)
    return "/rtc/v1?join_request=\(JoinRequests.item())&access_token=\(token)"
  }

  private func validate(_ server: SFUServer, _ room: String, secret: String = Tokens.secret) -> HTTP.Answer {
    let target = join(server, room, secret: secret).replacing("/rtc/v1?", with: "/rtc/v1/validate?")
    return HTTP.ask(server.signalingAddress.port, target)
  }

  @Test(
    "a draining server takes joins to rooms that are there, no others: 503; /ready says so (field fault 19)")
  func drain() async throws {
    let server = try SFUServer.onLoopback()
    let port = server.signalingAddress.port
    #expect(HTTP.ask(port, "/ready").status == 200)
    let socket = try await WebSocketClient.connect(to: server.url + join(server, "hall"))
    var messages = socket.messages.makeAsyncIterator()
    _ = await messages.next()
    server.drain()
    #expect(HTTP.ask(port, "/ready").status == 406)
    #expect(HTTP.ask(port, "/").status == 200)
    #expect(validate(server, "hall").status == 200)
    #expect(validate(server, "other").status == 503)
    #expect(HTTP.ask(port, join(server, "other"), upgrades: true).status == 503)
    // Who resumes is told by the worker that its session is gone.
    var request = JoinRequests.request()
    request.reconnect = true
    let token = Tokens.join(room: "gone", identity: "i")
    let resume = "/rtc/v1?join_request=\(JoinRequests.item(request))&access_token=\(token)"
    #expect(HTTP.ask(port, resume, upgrades: true).status == 101)
    server.stop()
    while await messages.next() != nil {}
  }

  @Test("without auto_create a room that is not there is 404, in the words that clients look for")
  func noAutoCreate() throws {
    let server = try SFUServer.onLoopback { $0.worker.createsRooms = false }
    #expect(validate(server, "hall").status == 404)
    #expect(validate(server, "hall").body == "requested room does not exist")
    #expect(HTTP.ask(server.signalingAddress.port, join(server, "hall"), upgrades: true).status == 404)
  }

  @Test(
    "LiveKit protocol §4 (18): no place for another room on its worker is 503, from validate and upgrade; others are joined"
  )
  func full() async throws {
    let server = try SFUServer.onLoopback(workers: 1) { $0.worker.maxRooms = 1 }
    let socket = try await WebSocketClient.connect(to: server.url + join(server, "hall"))
    var messages = socket.messages.makeAsyncIterator()
    _ = await messages.next()
    let answers = [
      validate(server, "other"),
      HTTP.ask(server.signalingAddress.port, join(server, "other"), upgrades: true),
    ]
    #expect(answers.allSatisfy { $0.status == 503 && $0.body == "the server has as many rooms as it may" })
    #expect(validate(server, "hall").status == 200)
  }

  @Test("LiveKit protocol §4 (18): where a worker does not keep up validate says 503, as the join does")
  func overloaded() throws {
    let inbox = try WorkerInbox()
    let service = SignalingService(
      access: LiveAccess(keys: [Tokens.key: Tokens.secret], rooms: SFUConfiguration(candidates: [])),
      inboxes: [inbox], rooms: LiveRooms(workerCount: 1), log: ServerLog(level: .warning))
    func statuses() -> [Int] {
      let query: [HTTPRequest.Field] = [
        .init("join_request", JoinRequests.item()),
        .init("access_token", Tokens.join(room: "hall", identity: "i")),
      ]
      let found = Mutex<[Int]>([])
      let request = HTTPRequest(path: "/rtc/v1/validate", query: query)
      service.respond(to: request, with: .forTests { answer in found.withLock { $0.append(answer.status) } })
      let socket = WebSocket(queueByteLimit: 1 << 20) { _ in }
      switch service.upgrade(HTTPRequest(path: "/rtc/v1", query: query), socket: socket) {
      case .accept: return found.withLock { $0 } + [101]
      case .reject(let answer): return found.withLock { $0 } + [answer.status]
      }
    }
    #expect(statuses() == [200, 101])
    let socket = WebSocket(queueByteLimit: 1 << 20) { _ in }
    let client = SignalingConnection(socket: socket, inbox: inbox)
    while inbox.post(.signal(client, [])) {}
    #expect(statuses() == [503, 503])
  }

  @Test("a reload changes keys and rooms for those who come, and disturbs nobody who is there")
  func reload() async throws {
    let server = try SFUServer.onLoopback()
    let socket = try await WebSocketClient.connect(to: server.url + join(server, "hall"))
    var messages = socket.messages.makeAsyncIterator()
    _ = await messages.next()
    var configuration = SFUServer.Configuration(keys: [Tokens.key: "another"])
    configuration.worker.createsRooms = false
    configuration.log = ServerLog(level: .warning)
    try server.reload(configuration)
    #expect(validate(server, "hall").status == 401)
    #expect(validate(server, "hall", secret: "another").status == 200)
    #expect(validate(server, "other", secret: "another").status == 404)
    socket.send(binary: LiveKit.SignalRequest(.ping(7)).serialized())
    var isAnswered = false
    while !isAnswered, case .binary(let bytes)? = await messages.next() {
      if case .pong? = try? LiveKit.SignalResponse(serialized: bytes).message { isAnswered = true }
    }
    #expect(isAnswered)
  }

  @Test("/metrics is valid, counts what is there, and is told to who knows the password")
  func metrics() async throws {
    let server = try SFUServer.onLoopback {
      $0.metrics = SFUServer.MetricsConfiguration(port: 0)
      $0.metrics?.username = "prometheus"
      $0.metrics?.password = "p:w"
    }
    let port = try #require(server.metricsAddress?.port)
    let socket = try await WebSocketClient.connect(to: server.url + join(server, "hall"))
    var messages = socket.messages.makeAsyncIterator()
    _ = await messages.next()
    func ask(_ password: String?, path: String = "/metrics") -> HTTP.Answer {
      let credentials = password.map { Base64.encode([UInt8]("prometheus:\($0)".utf8), alphabet: .standard) }
      return HTTP.ask(port, path, headers: credentials.map { "Authorization: Basic \($0)\r\n" } ?? "")
    }
    #expect(ask(nil).status == 401)
    #expect(ask(nil).head.contains("www-authenticate: basic"))
    #expect(ask("p").status == 401)
    #expect(ask("p:w", path: "/").status == 404)
    let answer = ask("p:w")
    #expect(answer.status == 200)
    #expect(answer.head.contains("content-type: text/plain; version=0.0.4"))
    let metrics = try ParsedMetrics(answer.body)
    #expect(metrics["livekit_room_total"] == 1)
    #expect(metrics["palbe_sfu_packets_refused_total"] == 0)
    #expect(metrics["livekit_participant_total"] == 1)
    #expect(metrics["livekit_participant_join_total{state=\"signal_connected\"}"] == 1)
    #expect(metrics["palbe_sfu_ready"] == 1)
    #expect(metrics["livekit_packet_total{direction=\"incoming\",transmission=\"initial\"}"] == 0)
    #expect(metrics["process_open_fds"] ?? 0 > 3)
    #expect(metrics["process_resident_memory_bytes"] ?? 0 > 1_000_000)
    server.drain()
    #expect(try ParsedMetrics(ask("p:w").body)["palbe_sfu_ready"] == 0)
    // The signaling port tells nothing of it.
    #expect(HTTP.ask(server.signalingAddress.port, "/metrics").status == 404)
    withExtendedLifetime(socket) {}
  }

  @Test("who is refused again and again does not fill the log")
  func refusals() async throws {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    defer { for end in ends { close(end) } }
    let log = ServerLog(level: .info, descriptor: ends[1])
    let service = SignalingService(
      access: LiveAccess(keys: [:], rooms: SFUConfiguration(candidates: [])), inboxes: [],
      rooms: LiveRooms(workerCount: 1), log: log)
    let start = MonotonicClock.now()
    for _ in 0..<2_000 {
      service.respond(to: HTTPRequest(path: "/rtc/validate"), with: .forTests { #expect($0.status == 401) })
    }
    let seconds = Int((MonotonicClock.now() - start).wholeMilliseconds / 1_000) + 1
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    let count = read(ends[0], &buffer, buffer.count)
    let lines = buffer[..<max(0, count)].count { $0 == 0x0a }
    #expect(lines > 0 && lines <= (LogBudget.linesPerSecond + 1) * (seconds + 1))
  }

  @Test("histograms are summed up, labels escaped")
  func exposition() throws {
    var text = Exposition()
    text.family("a_ms", .histogram, "help") { $0.samples(Histogram(bounds: [0.5, 1])) }
    text.family("b", .gauge, "help") { $0.sample([("v", "x\"\\\ny")], value: 1.5) }
    #expect(
      text.text == """
        # HELP a_ms help
        # TYPE a_ms histogram
        a_ms_bucket{le="0.5"} 0
        a_ms_bucket{le="1"} 0
        a_ms_bucket{le="+Inf"} 0
        a_ms_sum 0
        a_ms_count 0
        # HELP b help
        # TYPE b gauge
        b{v="x\\"\\\\\\ny"} 1.5

        """)
    _ = try ParsedMetrics(text.text)
  }
}

/// Prometheus' text format, read as strictly as it is written down.
private struct ParsedMetrics {
  struct Malformed: Error { var line: String }
  private var samples: [String: Double] = [:]

  init(_ text: String) throws {
    var family = ""
    var families: Set<String> = []
    guard text.hasSuffix("\n") else { throw Malformed(line: "no end of line") }
    for line in text.split(separator: "\n") {
      if let match = line.wholeMatch(of: #/# HELP ([a-z_:][a-z0-9_:]*) .+/#) {
        family = String(match.1)
        guard families.insert(family).inserted else { throw Malformed(line: "twice: \(line)") }
        continue
      }
      if let match = line.wholeMatch(of: #/# TYPE ([a-z_:][a-z0-9_:]*) (counter|gauge|histogram)/#) {
        guard match.1 == family else { throw Malformed(line: String(line)) }
        continue
      }
      guard
        let match = line.wholeMatch(
          of: #/([a-z_:][a-z0-9_:]*)(\{([a-z_]+="(\\.|[^"\\])*",?)*\})? (-?[0-9.e+]+|\+Inf|NaN)/#),
        match.1.hasPrefix(family), let value = Double(match.5)
      else { throw Malformed(line: String(line)) }
      let name = String(match.1) + String(match.2 ?? "")
      guard samples.updateValue(value, forKey: name) == nil else { throw Malformed(line: "twice: \(line)") }
    }
  }

  subscript(_ name: String) -> Double? { samples[name] }
}
