import PalbeEventLoop
import Synchronization

/// Tells that a server could take no connection for a moment, for lack of descriptors or memory: the log at most once a minute, and metrics.
///
///     WebServer(host: host, port: port, handler: service, whenPaused: pauses.note)
public final class AcceptPauses: Sendable {
  private let log: ServerLog
  private let recurrence = Mutex(Recurrence())
  private let total = Atomic<UInt64>(0)

  /// None yet.
  public init(log: ServerLog) { self.log = log }

  /// Notes one. Any thread.
  @Sendable public func note(_ reason: String) {
    total.add(1, ordering: .relaxed)
    guard let count = recurrence.withLock({ $0.note(at: MonotonicClock.now()) }) else { return }
    log.write(.warning, "connections cannot be taken", [("reason", reason), ("pauses", "\(count)")])
  }

  /// How many there were.
  public var count: UInt64 { total.load(ordering: .relaxed) }
}

extension Exposition {
  /// - Parameter program: how the program's own families begin.
  public mutating func add(_ pauses: AcceptPauses, of program: String) {
    family(
      "\(program)_accept_pauses_total", .counter,
      "Pauses in which no connection was taken, for lack of descriptors or memory."
    ) { $0.sample(value: pauses.count) }
  }
}
