import Foundation
import Synchronization

/// The thread of one shell. Waits for the disk happen on it, and never on the threads that all tasks of the process share.
final class ShellThread: SerialExecutor {
  private struct State {
    var jobs: [UnownedJob] = []
    var isEnding = false
  }
  private let condition = NSCondition()
  private nonisolated(unsafe) var state = State()

  init(name: String) {
    let thread = Thread { [self] in run() }
    thread.name = name
    // The engine's deepest call is far below; the default of other threads would do as well.
    thread.stackSize = 2 << 20
    thread.start()
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    condition.lock()
    state.jobs.append(job)
    condition.signal()
    condition.unlock()
  }

  /// Lets the thread end when nothing is left to do.
  func end() {
    condition.lock()
    state.isEnding = true
    condition.signal()
    condition.unlock()
  }

  private func run() {
    let executor = asUnownedSerialExecutor()
    var jobs: [UnownedJob] = []
    while true {
      condition.lock()
      while state.jobs.isEmpty, !state.isEnding { condition.wait() }
      guard !state.jobs.isEmpty else { return condition.unlock() }
      swap(&jobs, &state.jobs)
      condition.unlock()
      for job in jobs { job.runSynchronously(on: executor) }
      jobs.removeAll(keepingCapacity: true)
    }
  }
}
