import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import PalbeWebServer
import Synchronization

/// Counts requests by route and status, and measures how long their answers took. Of a request it keeps the name of its route
/// and the status of its answer, nothing else.
package final class RequestMetrics: Sendable {
  private struct Key: Hashable {
    var route: String
    var status: Int
  }

  /// One request on its way.
  final class Trace: Sendable {
    private let name = Mutex("none")
    let begun = MonotonicClock.now()
    /// A route's name of the table, or a part's: nothing that a client chooses.
    var route: String {
      get { name.withLock { $0 } }
      set { name.withLock { $0 = newValue } }
    }
  }

  private let log: ServerLog
  private let counts = Mutex<[Key: UInt64]>([:])
  private let open = Atomic<Int>(0)
  private let budget = Mutex(LogBudget())
  private let latency = SharedHistogram(
    bounds: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30])

  package init(log: ServerLog) { self.log = log }

  /// Requests that wait for their answer.
  package var openCount: Int { open.load(ordering: .relaxed) }

  func begin(_ responder: HTTPResponder, _ requestID: String) -> Trace {
    let trace = Trace()
    open.add(1, ordering: .relaxed)
    responder.whenAnswered { [self] status in
      open.subtract(1, ordering: .relaxed)
      let time = MonotonicClock.now() - trace.begun
      // A fetch that waits for rows says nothing about how fast the server is.
      if trace.route != "queue" { latency.observe(time.inSeconds) }
      count(trace.route, status)
      tell(trace.route, status, time, requestID)
    }
    return trace
  }

  /// A request that was refused before its body was read.
  package func refused(_ route: String, _ status: Int, _ requestID: String) {
    count(route, status)
    tell(route, status, .zero, requestID)
  }

  /// Who may not, and what the server could not, an operator is asked about: by the id that the answer had, the line is found.
  static func level(of status: Int) -> ServerLog.Level {
    switch status {
    case 503: .info
    case 500...: .warning
    case 401, 403: .info
    default: .debug
    }
  }

  /// Counts an answer; nothing of it is told.
  package func count(_ route: String, _ status: Int) {
    counts.withLock { $0[Key(route: route, status: status), default: 0] += 1 }
  }

  private func tell(_ route: String, _ status: Int, _ time: TimeDelta, _ requestID: String) {
    let level = Self.level(of: status)
    guard level >= log.level else { return }
    let verdict = budget.withLock { $0.take(at: MonotonicClock.now()) }
    if case .writeAfter(let count) = verdict { log.write(level, "lines left out", [("count", "\(count)")]) }
    guard verdict != .suppress else { return }
    log.write(
      level, "request",
      [
        ("route", route), ("status", "\(status)"), ("ms", "\(time.wholeMilliseconds)"),
        ("request", requestID),
      ])
  }

  func write(into text: inout Exposition) {
    let sorted = counts.withLock { $0 }.sorted {
      ($0.key.route, $0.key.status) < ($1.key.route, $1.key.status)
    }
    text.family("palbe_server_requests_total", .counter, "Requests by route and status.") {
      for (key, value) in sorted {
        $0.sample([("route", key.route), ("status", "\(key.status)")], value: value)
      }
    }
    text.family("palbe_server_requests_open", .gauge, "Requests that wait for their answer.") {
      $0.sample(value: openCount)
    }
    text.family(
      "palbe_server_request_seconds", .histogram,
      "From a request's body to its answer, fetches of the queue aside."
    ) { latency.write(into: &$0) }
  }
}
