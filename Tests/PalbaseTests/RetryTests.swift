import PalbeSDKKit
import PalbeUnits
import Testing

@testable import Palbase

@Suite("HTTP: what is repeated, and when (2.2)")
struct RetryTests {
  private let time = VirtualTimebase()
  private let transport: FakeTransport
  private let client: HTTPClient

  init() {
    let time = time
    let timebase = time.timebase
    transport = FakeTransport(server: FakeServer { timebase.wallMilliseconds() })
    client = HTTPClient(server: ServerURL("https://palbe.test/")!, transport: transport, time: timebase)
  }

  private func refusal(_ status: Int, _ code: String, after: String? = nil) -> FakeTransport.Accident {
    .answered(
      TransportAnswer(
        status: status, headers: after.map { ["retry-after": $0] } ?? [:],
        body: Array(#"{"code":"\#(code)"}"#.utf8)))
  }

  private let fine = FakeTransport.Accident.answered(TransportAnswer(status: 200, body: [1]))

  @Test("A GET is repeated after lost requests and lost answers, with growing waits and jitter")
  func idempotent() async throws {
    transport.prepare(.requestLost, .answerLost, refusal(503, "unavailable"), fine)
    let answer = try await client.send(BackendCall("GET", "/v1/x", access: .open))
    #expect(answer.body == [1])
    #expect(transport.sent.count == 4)
    for (wait, whole) in zip(time.slept, [400, 800, 1_600]) {
      #expect(wait <= .milliseconds(whole) && wait >= .milliseconds(whole / 2))
    }
    #expect(Set(time.slept.map(\.nanoseconds)).count == 3)
  }

  @Test("A POST without an idempotency key is repeated only when it cannot have arrived")
  func notIdempotent() async throws {
    transport.prepare(.answerLost)
    let call = BackendCall("POST", "/v1/x", access: .open)
    await #expect(throws: BackendError.unreachable(.connectionLost)) { try await client.send(call) }
    #expect(transport.sent.count == 1)
    transport.prepare(.requestLost, fine)
    #expect(try await client.send(call).body == [1])
    transport.prepare(refusal(503, "unavailable"))
    await #expect(throws: BackendError.self) { try await client.send(call) }
    #expect(transport.sent.count == 4)
  }

  @Test("A POST with a key is repeated with the same key")
  func keyed() async throws {
    transport.prepare(.answerLost, refusal(502, "x"), fine)
    _ = try await client.send(try .post("/v1/x", ["a": 1], access: .open))
    let keys = transport.sent.map { $0.headers.first { $0.name == "Idempotency-Key" }?.value }
    #expect(keys.count == 3 && Set(keys).count == 1 && keys[0] != nil)
    _ = try? await client.send(try .post("/v1/x", ["a": 1], access: .open))
    #expect(transport.sent.last?.headers.first { $0.name == "Idempotency-Key" }?.value != keys[0])
  }

  @Test("429: Retry-After is waited for, also by a POST; a longer one than 20 s goes to the caller")
  func retryAfter() async throws {
    let call = BackendCall("POST", "/v1/x", access: .open)
    transport.prepare(refusal(429, "rate_limited", after: "7"), fine)
    _ = try await client.send(call)
    #expect(time.slept == [.seconds(7)])
    transport.prepare(refusal(429, "rate_limited", after: "60"))
    do {
      _ = try await client.send(call)
      Issue.record("it was refused")
    } catch let error as BackendError {
      #expect(error.code == .rateLimited && error.retryAfter == .seconds(60))
    }
    #expect(time.slept.count == 1)
  }

  @Test(
    "What will fail again is not repeated: refusals, a certificate that is not trusted, an endless answer",
    arguments: [400, 401, 403, 404, 409, 410, 412, 413, 422, 500])
  func hopeless(status: Int) async throws {
    transport.prepare(refusal(status, "some_code"))
    await #expect(throws: BackendError.self) {
      try await client.send(BackendCall("GET", "/v1/x", access: .open))
    }
    #expect(transport.sent.count == 1)
    for fault in [NetworkFault.notTrusted, .answerTooLarge, .file(5)] {
      var schedule = RetrySchedule()
      let wait = schedule.wait(
        after: .fault(fault, mayHaveArrived: false), isRepeatable: true, elapsed: .zero, jitter: { $0 })
      #expect(wait == nil)
    }
  }

  @Test("Four attempts, then the last failure")
  func limit() async throws {
    transport.prepare(.requestLost, .requestLost, .requestLost, .requestLost, fine)
    await #expect(throws: BackendError.unreachable(.noConnection)) {
      try await client.send(BackendCall("GET", "/v1/x", access: .open))
    }
    #expect(transport.sent.count == 4)
  }

  @Test("After 40 s no further attempt begins, also when the server asks for a wait until then")
  func patience() {
    for (elapsed, hasNext) in [(0, true), (39, true), (40, false), (100, false)] {
      var schedule = RetrySchedule()
      let wait = schedule.wait(
        after: .fault(.timedOut, mayHaveArrived: true), isRepeatable: true, elapsed: .seconds(elapsed),
        jitter: { $0 })
      #expect((wait != nil) == hasNext)
    }
    var schedule = RetrySchedule()
    let limited = ServerFailure(
      code: .rateLimited, status: 429, message: "", retryAfter: .seconds(15))
    let wait = schedule.wait(
      after: .refused(limited), isRepeatable: true, elapsed: .seconds(30), jitter: { $0 })
    #expect(wait == nil)
  }

  @Test("A cancelled task throws CancellationError, not a failure of the server's")
  func cancelled() async throws {
    transport.prepare(.requestLost)
    let client = client
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      _ = try await client.send(BackendCall("GET", "/v1/x", access: .open))
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test("S0-142: module routes ask for no attestation: these headers and no others are sent")
  func headers() async throws {
    transport.prepare(fine)
    _ = try await client.send(try .post("/v1/x", ["a": 1], access: .open))
    #expect(
      transport.sent[0].headers.map(\.name).sorted()
        == ["Accept", "Content-Type", "Idempotency-Key", "User-Agent"])
  }

  @Test("Addresses: routes, queries, the socket, what the server points to")
  func addresses() throws {
    let server = try #require(ServerURL("https://palbe.test:8443/api/"))
    #expect(server.route("/v1/x") == "https://palbe.test:8443/api/v1/x")
    #expect(
      server.route("/v1/x", [("a b", "ü&="), ("c", "")])
        == "https://palbe.test:8443/api/v1/x?a%20b=%C3%BC%26%3D&c=")
    #expect(server.realtime == "wss://palbe.test:8443/api/v1/realtime")
    #expect(server.resolve("/v1/blob?sig=1") == "https://palbe.test:8443/v1/blob?sig=1")
    #expect(server.resolve("https://files.test/x") == "https://files.test/x")
    #expect(server.resolve("http://files.test/x") == nil && server.resolve("//files.test/x") == nil)
    #expect(server.resolve("file:///etc/passwd") == nil)
    for wrong in [
      "", "palbe.test", "ftp://palbe.test", "https://", "https://a@b", "https://a?b", "https://a#b",
      "https://a b",
      "https://a\u{0}",
    ] {
      #expect(ServerURL(wrong) == nil, "\(wrong)")
    }
    for local in ["http://127.0.0.1:1", "http://localhost", "http://[::1]:80", "https://palbe.test"] {
      #expect(try #require(ServerURL(local)).isConfidential, "\(local)")
    }
    for open in ["http://palbe.test", "http://127.0.0.1.evil.test", "http://10.0.0.1", "http://127.1"] {
      #expect(try !#require(ServerURL(open)).isConfidential, "\(open)")
    }
  }
}
