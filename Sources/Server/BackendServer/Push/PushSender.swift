import CPalbeLinux
import Glibc
import PalbeBackendCore
import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import Synchronization

/// Sends wake pushes on a thread of its own, with retry.
package final class PushSender: Sendable {
  /// What was counted.
  package struct Counts: Sendable, Hashable {
    package var sentCount: UInt64 = 0
    package var failedCount: UInt64 = 0
    package var lostCount: UInt64 = 0
    package var waitingCount = 0
  }

  private static let capacity = 10_000
  /// One that takes longer has failed; a command is ended.
  private static let longestTime = TimeDelta.seconds(10)
  private let destination: PushDestination
  private let log: ServerLog
  private let queue = Mutex(PushQueue(capacity: capacity))
  private let totals = Mutex(Counts())
  private let failures = Mutex(Recurrence())
  private let wakeUp: WakeUp
  /// For what is due at the end.
  private let lastTime: TimeDelta
  /// When the last push has to be sent; nil while there is no end in sight.
  private let end = Mutex<Instant?>(nil)
  private let thread = Mutex<WorkerThread?>(nil)
  /// Its thread has ended.
  private let hasEnded: WakeUp

  /// - Parameter lastTime: how long `stop` sends what is due.
  package init(
    _ destination: PushDestination, log: ServerLog, lastTime: TimeDelta = .seconds(5)
  ) throws(SystemError) {
    self.destination = destination
    self.log = log
    self.lastTime = lastTime
    wakeUp = try WakeUp()
    hasEnded = try WakeUp()
  }

  /// Begins to send.
  package func start() throws(SystemError) {
    let new = try WorkerThread(name: "push") { [self] in run() }
    thread.withLock { $0 = new }
  }

  /// Takes what the backend asks for. Any thread; does not block.
  package func send(_ wake: WakePush) {
    let now = MonotonicClock.now()
    queue.withLock { queue in
      for token in wake.tokens {
        queue.add(
          PushNotification(
            device: wake.device, group: wake.group, isWelcome: wake.kind == .welcome, token: token), at: now)
      }
    }
    wakeUp.wake()
  }

  /// Sends what is due, for a few seconds at most, and ends. Whatever a file system or a command does, it does not wait longer.
  package func stop() {
    end.withLock { $0 = MonotonicClock.now() + lastTime }
    wakeUp.wake()
    guard let thread = thread.withLock({ $0.take() }) else { return }
    var ready = pollfd(fd: hasEnded.fileDescriptor, events: Int16(POLLIN), revents: 0)
    let time = lastTime + .milliseconds(500)
    guard poll(&ready, 1, Int32(clamping: time.wholeMilliseconds)) == 1 else {
      log.write(.warning, "a push is still being sent at the end")
      return
    }
    thread.join()
  }

  /// What was counted.
  package var counts: Counts {
    var counts = totals.withLock { $0 }
    (counts.lostCount, counts.waitingCount) = queue.withLock { ($0.lostCount, $0.waitingCount) }
    return counts
  }

  // MARK: The thread

  private func run() {
    while end.withLock({ $0 == nil }) {
      sendDue { end.withLock { $0 != nil } }
      let deadline = queue.withLock { $0.nextDeadline() }
      let wait = deadline.map { max(0, ($0 - MonotonicClock.now()).wholeMilliseconds) + 1 } ?? -1
      var ready = pollfd(fd: wakeUp.fileDescriptor, events: Int16(POLLIN), revents: 0)
      poll(&ready, 1, Int32(clamping: wait))
      wakeUp.drain()
    }
    sendDue { MonotonicClock.now() > end.withLock { $0 ?? .zero } }
    let count = queue.withLock { $0.waitingCount }
    // Nobody is woken for these rows again until newer ones come.
    if count > 0 { log.write(.warning, "pushes not sent before the end", [("count", "\(count)")]) }
    hasEnded.wake()
  }

  /// - Parameter isOver: looked at before each push.
  private func sendDue(until isOver: () -> Bool) {
    while !isOver(), let (push, attempts) = queue.withLock({ $0.next(at: MonotonicClock.now()) }) {
      let usual = MonotonicClock.now() + Self.longestTime
      do throws(PushFailure) {
        try destination.send(push.line) { min(usual, end.withLock { $0 ?? .distantFuture }) }
        totals.withLock { $0.sentCount += 1 }
      } catch {
        failed(push, attempts, error.reason)
      }
    }
  }

  private func failed(_ push: PushNotification, _ attempts: Int, _ reason: String) {
    let now = MonotonicClock.now()
    queue.withLock { $0.failed(push, attempts: attempts, at: now) }
    log.write(.debug, "push failed", [("device", push.device.text), ("reason", reason)])
    if let count = failures.withLock({ $0.note(at: now) }) {
      log.write(.warning, "pushes failed", [("count", "\(count)"), ("reason", reason)])
    }
    // Last: who sees the count finds it logged.
    totals.withLock { $0.failedCount += 1 }
  }
}
