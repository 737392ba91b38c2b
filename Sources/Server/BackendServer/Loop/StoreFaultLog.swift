import PalbeBackendCore
import PalbeEventLoop
import PalbeServerObservation
import Synchronization

/// Tells the log that a store could not work: when that begins, and then once a minute, since a full disk fails every request.
final class StoreFaultLog: Sendable {
  private let message: String
  private let log: ServerLog
  private let recurrence = Mutex(Recurrence())

  init(_ message: String, log: ServerLog) {
    self.message = message
    self.log = log
  }

  /// Any thread.
  func note(_ fault: StoreFault) {
    guard let count = recurrence.withLock({ $0.note(at: MonotonicClock.now()) }) else { return }
    log.write(.warning, message, [("fault", "\(fault)"), ("count", "\(count)")])
  }
}
