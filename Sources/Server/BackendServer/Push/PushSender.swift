import CPalbeLinux
import Glibc
import PalbeBackendCore
import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import Synchronization

/// Where pushes go; each stands for APNs (2.12). All of them get one line of JSON for each push.
package enum PushDestination: Hashable, Sendable {
  /// Appended to a file.
  case file(String)
  /// Written to a stream socket of the file system, a connection for each push.
  case socket(String)
  /// A program and its arguments, spawned for each push, which reads it from standard input.
  case command([String])
}

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
  /// A command that takes longer is ended.
  private static let commandTime = TimeDelta.seconds(10)
  /// For what is due at the end.
  private static let lastTime = TimeDelta.seconds(5)
  private let destination: PushDestination
  private let log: ServerLog
  private let queue = Mutex(PushQueue(capacity: capacity))
  private let totals = Mutex(Counts())
  private let wakeUp: WakeUp
  private let isStopping = Atomic<Bool>(false)
  private let thread = Mutex<WorkerThread?>(nil)

  package init(_ destination: PushDestination, log: ServerLog) throws(SystemError) {
    self.destination = destination
    self.log = log
    wakeUp = try WakeUp()
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

  /// Sends what is due, for a few seconds at most, and ends.
  package func stop() {
    isStopping.store(true, ordering: .relaxed)
    wakeUp.wake()
    thread.withLock { $0 }?.join()
  }

  /// What was counted.
  package var counts: Counts {
    var counts = totals.withLock { $0 }
    (counts.lostCount, counts.waitingCount) = queue.withLock { ($0.lostCount, $0.waitingCount) }
    return counts
  }

  // MARK: The thread

  private func run() {
    while !isStopping.load(ordering: .relaxed) {
      sendDue { isStopping.load(ordering: .relaxed) }
      let deadline = queue.withLock { $0.nextDeadline() }
      let wait = deadline.map { max(0, ($0 - MonotonicClock.now()).wholeMilliseconds) + 1 } ?? -1
      var ready = pollfd(fd: wakeUp.fileDescriptor, events: Int16(POLLIN), revents: 0)
      poll(&ready, 1, Int32(clamping: wait))
      wakeUp.drain()
    }
    let end = MonotonicClock.now() + Self.lastTime
    sendDue { MonotonicClock.now() > end }
    let count = queue.withLock { $0.waitingCount }
    // Nobody is woken for these rows again until newer ones come.
    if count > 0 { log.write(.warning, "pushes not sent before the end", [("count", "\(count)")]) }
  }

  /// - Parameter isOver: looked at after each push.
  private func sendDue(until isOver: () -> Bool) {
    while let (push, attempts) = queue.withLock({ $0.next(at: MonotonicClock.now()) }) {
      if let reason = deliver(push) {
        totals.withLock { $0.failedCount += 1 }
        queue.withLock { $0.failed(push, attempts: attempts, at: MonotonicClock.now()) }
        log.write(.debug, "push failed", [("device", push.device.text), ("reason", reason)])
      } else {
        totals.withLock { $0.sentCount += 1 }
      }
      if isOver() { return }
    }
  }

  /// Nil when it went, else why not.
  private func deliver(_ push: PushNotification) -> String? {
    switch destination {
    case .file(let path): Self.append(push.line, to: path)
    case .socket(let path): Self.write(push.line, toSocket: path)
    case .command(let words): Self.run(words, input: push.line)
    }
  }

  private static var failure: String { String(cString: strerror(errno)) }

  private static func append(_ line: [UInt8], to path: String) -> String? {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return failure }
    defer { close(descriptor) }
    return Glibc.write(descriptor, line, line.count) == line.count ? nil : failure
  }

  private static func write(_ line: [UInt8], toSocket path: String) -> String? {
    let descriptor = LocalSocket.make()
    guard descriptor >= 0 else { return failure }
    defer { close(descriptor) }
    LocalSocket.setTimeout(descriptor, seconds: 5)
    guard LocalSocket.connect(descriptor, to: path) else { return failure }
    return Glibc.send(descriptor, line, line.count, Int32(MSG_NOSIGNAL)) == line.count ? nil : failure
  }

  private static func run(_ words: [String], input: [UInt8]) -> String? {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { return failure }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
    // The signals that this server waits for are the command's own again.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var usual = none
    sigaddset(&usual, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &usual)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process = pid_t()
    let code = posix_spawnp(&process, words[0], &actions, &attributes, &arguments, environ)
    close(ends[0])
    // A line is shorter than what a pipe holds, so this does not wait.
    _ = Glibc.write(ends[1], input, input.count)
    close(ends[1])
    guard code == 0 else { return String(cString: strerror(code)) }
    let deadline = MonotonicClock.now() + commandTime
    var status: Int32 = 0
    while waitpid(process, &status, WNOHANG) == 0 {
      if MonotonicClock.now() > deadline {
        kill(process, SIGKILL)
        waitpid(process, &status, 0)
        return "took too long"
      }
      usleep(5_000)
    }
    return status == 0 ? nil : "ended with status \(status >> 8 & 0xff)"
  }
}
