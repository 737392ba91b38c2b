import PalbeDataChannels
import PalbeEventLoop
import PalbeUnits
import Synchronization

/// The one thread of the process that calls usrsctp, for the workers of all servers in it.
///
/// It runs while there are workers. See docs/decisions/0009-data-channels.md.
enum SCTPThread {
  private struct Running {
    var thread: WorkerThread
    var changes: Mailbox<Change>
    var numbers: Set<Int> = []
  }

  fileprivate enum Change {
    case add(SCTPPort)
    case remove(SCTPPort)
    case stop
  }

  private static let running = Mutex<Running?>(nil)
  private static let lastNumber = Atomic<Int>(-1)

  /// A port for one more worker.
  static func attach() throws(SystemError) -> SCTPPort {
    let port = try SCTPPort(number: lastNumber.wrappingAdd(1, ordering: .relaxed).newValue)
    try running.withLock { state throws(SystemError) in
      var present: Running
      if let running = state {
        present = running
      } else {
        let changes = try Mailbox<Change>(capacity: .max)
        let poller = try Poller()
        try poller.add(changes.wakeUp.fileDescriptor, token: SCTPLoop.changesToken)
        let loop = SCTPLoop(poller: poller, changes: changes)
        present = Running(
          thread: try WorkerThread(name: "sfu-sctp", moving: loop) { loop in
            var loop = loop
            loop.run()
          }, changes: changes)
      }
      present.numbers.insert(port.number)
      present.changes.send(.add(port))
      state = present
    }
    return port
  }

  /// The worker has ended. The last one ends the thread; returns when that is done.
  static func detach(_ port: SCTPPort) {
    running.withLock { state in
      guard var present = state, present.numbers.remove(port.number) != nil else { return }
      present.changes.send(.remove(port))
      state = present
      guard present.numbers.isEmpty else { return }
      present.changes.send(.stop)
      present.thread.join()
      state = nil
    }
  }
}

/// What the thread does.
private struct SCTPLoop: ~Copyable, Sendable {
  static let changesToken = UInt64.max
  /// Another part of the process has usrsctp: this is how often it is tried again.
  private static let claimInterval = TimeDelta.milliseconds(100)

  private var poller: Poller
  private let changes: Mailbox<SCTPThread.Change>
  private var ports: [Int: SCTPPort] = [:]
  private var isStopped = false

  init(poller: consuming Poller, changes: Mailbox<SCTPThread.Change>) {
    self.poller = poller
    self.changes = changes
  }

  mutating func run() {
    var hub: SCTPHub?
    while !isStopped {
      if hub == nil {
        do throws(SCTPError) { hub = try SCTPHub() } catch {}
      }
      turn(hub)
    }
  }

  private mutating func turn(_ hub: SCTPHub?) {
    let idle = MonotonicClock.now() + (hub == nil ? Self.claimInterval : .seconds(1))
    // A poller fails for a bad descriptor alone, and ours are open while they are in it.
    do throws(SystemError) { _ = try poller.wait(until: min(idle, hub?.nextDeadline ?? idle)) } catch {}
    var taken: [SCTPThread.Change] = []
    changes.drain(into: &taken)
    for change in taken { take(change, hub) }
    guard let hub else { return }
    let now = MonotonicClock.now()
    var commands: [SCTPCommand] = []
    for port in ports.values {
      port.takeCommands(into: &commands)
      for command in commands {
        if case .datagram = command, port.isBehind { continue }
        hub.handle(command, at: now)
        while let report = hub.pollReport() { ports[report.peer.worker]?.send(report) }
      }
    }
    if let deadline = hub.nextDeadline, deadline <= now { hub.handleTimeout(at: now) }
    while let report = hub.pollReport() { ports[report.peer.worker]?.send(report) }
  }

  private mutating func take(_ change: SCTPThread.Change, _ hub: SCTPHub?) {
    switch change {
    case .add(let port):
      ports[port.number] = port
      do throws(SystemError) {
        try poller.add(port.commandsDescriptor, token: UInt64(port.number))
      } catch {}  // Its commands are then looked at once a tick.
    case .remove(let port):
      ports[port.number] = nil
      do throws(SystemError) { try poller.remove(port.commandsDescriptor) } catch {}
      hub?.discardAll(ofWorker: port.number)
      port.close()
    case .stop: isStopped = true
    }
  }
}
