import PalbeEventLoop
import Synchronization

/// A few threads that carry out what takes long, and a bounded number of jobs that wait for them.
final class WorkQueue: Sendable {
  typealias Job = @Sendable () -> Void

  /// A thread, and how many jobs it has.
  private final class Lane: Sendable {
    let thread: JobThread
    let count = Atomic<Int>(0)

    init(name: String) throws(SystemError) { thread = try JobThread(name: name) }
  }

  private let lanes: [Lane]
  private let capacity: Int
  private let count = Atomic<Int>(0)

  /// - Parameters:
  ///   - threads: how many jobs are carried out at once.
  ///   - capacity: how many wait besides.
  init(name: String, threads: Int, capacity: Int) throws(SystemError) {
    var lanes: [Lane] = []
    for _ in 0..<max(1, threads) { lanes.append(try Lane(name: name)) }
    self.lanes = lanes
    self.capacity = capacity + lanes.count
  }

  /// Leaves a job; false when too many wait, or after `stop`.
  func submit(_ job: @escaping Job) -> Bool {
    guard count.add(1, ordering: .relaxed).newValue <= capacity,
      let lane = lanes.min(by: { $0.count.load(ordering: .relaxed) < $1.count.load(ordering: .relaxed) })
    else {
      count.subtract(1, ordering: .relaxed)
      return false
    }
    lane.count.add(1, ordering: .relaxed)
    let isTaken = lane.thread.run { [self] in
      job()
      lane.count.subtract(1, ordering: .relaxed)
      count.subtract(1, ordering: .relaxed)
    }
    if !isTaken {
      lane.count.subtract(1, ordering: .relaxed)
      count.subtract(1, ordering: .relaxed)
    }
    return isTaken
  }

  /// Jobs that wait or are being carried out.
  var jobCount: Int { count.load(ordering: .relaxed) }

  /// Carries out what waits, and ends the threads. Only the first call waits.
  func stop() {
    for lane in lanes { lane.thread.close() }
    for lane in lanes { lane.thread.stop() }
  }
}
