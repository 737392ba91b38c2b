import PalbeBackendCore
import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import Synchronization

/// How long a fetch of an empty queue waits for rows.
package struct LoopPatience: Sendable {
  let until: Instant
  /// Rows that come within `time`.
  package init(atMost time: TimeDelta) { until = MonotonicClock.now() + time }
}

/// The one thread that owns the backend and its store.
///
///     let loop = try BackendLoop(store: store) { event, subscribers in … }
///     loop.ask(BackendCall(.unread(group), from: caller)) { result in … }
///
/// ## Overview
///
/// All that waits when a turn begins is carried out in one durable transaction (group commit), so that a crowd waits for the
/// medium once. Then, in this order: answers, events, connections that closed. More waiting requests than `Settings` allow are
/// refused at once. A store that cannot tell whether its last transaction is there is opened again.
///
/// Answers and events are called on the loop's thread, and must not block.
package final class BackendLoop: Sendable {
  /// Takes what became of a request.
  package typealias Answer = @Sendable (Result<BackendResponse, BackendFailure>) -> Void
  /// Takes an event, and the connections that hear it where it is for a topic.
  package typealias Deliver = @Sendable (BackendEvent, [ConnectionID]) -> Void

  /// What it takes.
  package struct Settings: Sendable {
    /// What the backend allows.
    package var limits = BackendLimits()
    /// Requests that wait at once.
    package var waitingCount = 10_000
    /// Their bytes.
    package var waitingByteCount = 64 << 20
    /// Requests of one transaction.
    package var batchCount = 512
    /// How long a store that could not be opened again is left alone.
    package var reopenInterval = TimeDelta.seconds(1)
    /// How often `tick` is called.
    package var tickInterval = TimeDelta.seconds(1)
    /// The limits of the requirements.
    package init() {}
  }

  /// What it has done, for metrics.
  package struct Statistics: Sendable, Hashable {
    /// Requests that were answered.
    package var requestCount: UInt64 = 0
    /// Transactions that they took.
    package var batchCount: UInt64 = 0
    /// Requests refused because too many waited.
    package var overloadCount: UInt64 = 0
    /// How often the store was opened again.
    package var reopenCount: UInt64 = 0
    /// Rows in all queues.
    package var queueRowCount: Int64 = 0
  }

  private let inbox: LoopInbox
  private let thread: WorkerThread
  private let counts: LoopCounts
  /// Requests of one transaction.
  package var batchSizes: SharedHistogram { counts.batchSizes }
  /// How long one transaction took with its wait for the medium, in seconds.
  package var transactionTimes: SharedHistogram { counts.transactionTimes }

  /// Takes over a store, and serves it until `stop`.
  /// - Parameter tick: called on the loop's thread again and again.
  package init(
    store: SQLiteBackendStore, settings: Settings = Settings(), random: RandomSource = SystemRandom.source(),
    tick: @escaping @Sendable (ServerTime) -> Void = { _ in }, deliver: @escaping Deliver
  ) throws {
    let inbox = try LoopInbox(countLimit: settings.waitingCount, byteLimit: settings.waitingByteCount)
    let counts = LoopCounts()
    let backend = try Backend(
      store: store, random: random, limits: settings.limits, at: .now)
    let poller = try Poller()
    try poller.add(inbox.wakeUp.fileDescriptor, token: 0)
    let state = BackendThread(
      backend: backend, store: store, inbox: inbox, settings: settings, counts: counts, tick: tick,
      deliver: deliver)
    self.inbox = inbox
    self.counts = counts
    thread = try WorkerThread(name: "backend", moving: Moved(state: state, poller: poller)) { moved in
      moved.run()
    }
  }

  /// Used by the new thread only.
  private struct Moved: ~Copyable, @unchecked Sendable {
    let state: BackendThread
    var poller: Poller
    consuming func run() { state.run(&poller) }
  }

  deinit { stop() }

  /// Carries out a request soon; `unavailable` at once when too many wait.
  /// - Parameter patience: for a fetch of the queue: waits for rows while there are none. A newer one of the same device ends
  ///   an older one with `superseded`.
  package func ask(_ call: BackendCall, patience: LoopPatience? = nil, answer: @escaping Answer) {
    guard inbox.add(.init(call: call, patience: patience, answer: answer)) else {
      counts.add { $0.overloadCount += 1 }
      return answer(.failure(.unavailable(.overloaded)))
    }
  }

  /// A connection is gone; it hears nothing more, and its leases end.
  package func connectionClosed(_ connection: ConnectionID) { inbox.addClosed(connection) }

  /// Copies the store to a file while it goes on; `done` is called on the loop's thread. The copy is not synced.
  package func copy(to path: String, done: @escaping @Sendable (StoreFault?) -> Void) {
    inbox.addCopy(.init(path: path, done: done))
  }

  /// What the backend allows from now on.
  package func setLimits(_ limits: BackendLimits) { inbox.setLimits(limits) }

  /// Answers fetches that wait for rows, and lets none wait from now on.
  package func drain() { inbox.drain() }

  /// Does what waits, closes the store and ends the thread; what is asked from now on is refused. Only from another thread.
  package func stop() {
    inbox.stop()
    thread.join()
  }

  /// What was done until now.
  package var statistics: Statistics { counts.read() }

  /// Requests that wait now.
  package var waitingCount: Int { inbox.count }
}

/// Counts of one thread that others read.
final class LoopCounts: Sendable {
  let batchSizes = SharedHistogram(bounds: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
  let transactionTimes = SharedHistogram(
    bounds: [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2])
  private let state = Mutex(BackendLoop.Statistics())
  func add(_ change: (inout BackendLoop.Statistics) -> Void) { state.withLock { change(&$0) } }
  func read() -> BackendLoop.Statistics { state.withLock { $0 } }
}
