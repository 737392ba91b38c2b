import PalbeEventLoop
import Synchronization

/// A few threads that carry out what takes long, and a bounded number of jobs that wait for them.
final class WorkQueue: Sendable {
  typealias Job = @Sendable () -> Void

  /// A thread, and how many jobs it has.
  private final class Lane: Sendable {
    let jobs: Mailbox<Job?>
    let count = Atomic<Int>(0)

    init() throws(SystemError) { jobs = try Mailbox(capacity: .max) }

    func run(_ poller: inout Poller) {
      var jobs: [Job?] = []
      while true {
        // A wait that the kernel refuses is a turn without news.
        _ = try? poller.wait(until: nil)
        self.jobs.drain(into: &jobs)
        for job in jobs {
          guard let job else { return }
          job()
          count.subtract(1, ordering: .relaxed)
        }
      }
    }
  }

  private let lanes: [Lane]
  private let threads: [WorkerThread]
  private let capacity: Int
  private let count = Atomic<Int>(0)

  /// - Parameters:
  ///   - threads: how many jobs are carried out at once.
  ///   - capacity: how many wait besides.
  init(name: String, threads: Int, capacity: Int) throws(SystemError) {
    var lanes: [Lane] = []
    var started: [WorkerThread] = []
    for _ in 0..<max(1, threads) {
      let lane = try Lane()
      let poller = try Poller()
      try poller.add(lane.jobs.wakeUp.fileDescriptor, token: 0)
      lanes.append(lane)
      started.append(
        try WorkerThread(name: name, moving: poller) { poller in
          var poller = poller
          lane.run(&poller)
        })
    }
    self.lanes = lanes
    self.threads = started
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
    let isTaken = lane.jobs.send { [self] in
      job()
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
    for lane in lanes {
      lane.jobs.send(nil)
      lane.jobs.close()
    }
    for thread in threads { thread.join() }
  }
}
