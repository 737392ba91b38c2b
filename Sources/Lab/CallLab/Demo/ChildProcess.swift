import Foundation
import Glibc
import PalbeEventLoop
import PalbeUnits
import Synchronization

/// A program that we started and that we end, by its process id.
///
/// A thread of its own starts it, reads what it prints and waits for its end. The program gets a process group of its
/// own, so that a ^C at the terminal reaches us alone and we end it in order; and it is asked to end when that thread
/// does, so that it does not outlive us even when we crash.
final class ChildProcess: Sendable {
  /// Why a program could not be started.
  enum StartError: Error, Equatable, CustomStringConvertible {
    case cannotStart(program: String, errno: Int32)
    case ended(program: String, status: Int32, lastLine: String)
    case notReady(program: String, seconds: Double)

    var description: String {
      switch self {
      case .cannotStart(let program, let code):
        "cannot start \(program): \(String(cString: strerror(code)))"
      case .ended(let program, let status, let lastLine):
        "\(program) ended with status \(status) before it was ready"
          + (lastLine.isEmpty ? "" : ": \(lastLine)")
      case .notReady(let program, let seconds):
        "\(program) was not ready after \(Int(seconds)) seconds"
      }
    }
  }

  /// Lines kept of what the program printed; the oldest go first.
  private static let lineLimit = 200

  private struct State {
    var output: [String] = []
    var errors: [String] = []
    var status: Int32?
    var wasStopped = false
  }

  let processID: pid_t
  private let name: String
  private let state: Mutex<State>
  private let reader: Reader

  private init(processID: pid_t, name: String, reader: Reader) {
    self.processID = processID
    self.name = name
    self.reader = reader
    state = Mutex(State())
  }

  /// Starts `program`; throws `cannotStart`.
  static func start(_ program: String, arguments: [String]) throws(StartError) -> ChildProcess {
    let name = URL(fileURLWithPath: program).lastPathComponent
    let launch = Launch(program: program, arguments: arguments, name: name)
    let thread = Thread { launch.runAndSupervise() }
    thread.name = "child \(name)"
    thread.start()
    return try launch.outcome().get()
  }

  /// Starts the program on the thread that then stays with it.
  private final class Launch: Sendable {
    private let program: String
    private let arguments: [String]
    private let name: String
    private let started = DispatchSemaphore(value: 0)
    private let result = Mutex<Result<ChildProcess, StartError>?>(nil)

    init(program: String, arguments: [String], name: String) {
      self.program = program
      self.arguments = arguments
      self.name = name
    }

    func outcome() -> Result<ChildProcess, StartError> {
      started.wait()
      return result.withLock { $0 } ?? .failure(.cannotStart(program: name, errno: EIO))
    }

    func runAndSupervise() {
      let spawned = ChildProcess.spawn(program, arguments, name: name)
      result.withLock { $0 = spawned }
      started.signal()
      if case .success(let child) = spawned { child.supervise() }
    }
  }

  /// The reading ends of the program's standard output and error.
  private struct Reader: Sendable {
    var output: Int32
    var errors: Int32
  }

  private static func spawn(
    _ program: String, _ arguments: [String], name: String
  ) -> Result<ChildProcess, StartError> {
    guard let output = pipe() else { return .failure(.cannotStart(program: name, errno: errno)) }
    guard let errors = pipe() else {
      let code = errno
      output.forEach { _ = close($0) }
      return .failure(.cannotStart(program: name, errno: code))
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output[1], 1)
    posix_spawn_file_actions_adddup2(&actions, errors[1], 2)

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Signals that we block or handle must work in the program as if a shell had started it.
    var none = sigset_t()
    sigemptyset(&none)
    var handled = none
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] { sigaddset(&handled, signal) }
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &handled)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

    // setpriv runs the program in its own place after asking the kernel for the signal at our end.
    let setpriv = "/usr/bin/setpriv"
    let line =
      access(setpriv, X_OK) == 0
      ? [setpriv, "--pdeathsig", "TERM", program] + arguments : [program] + arguments
    var words: [UnsafeMutablePointer<CChar>?] = line.map { strdup($0) } + [nil]
    defer { words.forEach { free($0) } }
    var processID: pid_t = 0
    let code = posix_spawn(&processID, line[0], &actions, &attributes, &words, environ)
    close(output[1])
    close(errors[1])
    guard code == 0 else {
      close(output[0])
      close(errors[0])
      return .failure(.cannotStart(program: name, errno: code))
    }
    let reader = Reader(output: output[0], errors: errors[0])
    return .success(ChildProcess(processID: processID, name: name, reader: reader))
  }

  /// A pipe's reading and writing end, which programs that we start do not inherit; nil leaves `errno`.
  private static func pipe() -> [Int32]? {
    var ends: [Int32] = [-1, -1]
    guard Glibc.pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return ends
  }

  /// Reads until both pipes close, then waits for the end.
  private func supervise() {
    var open = [pollfd(fd: reader.output, events: Int16(POLLIN), revents: 0)]
    open.append(pollfd(fd: reader.errors, events: Int16(POLLIN), revents: 0))
    var partial: [[UInt8]] = [[], []]
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while open.contains(where: { $0.fd >= 0 }) {
      guard poll(&open, 2, -1) >= 0 || errno == EINTR else { break }
      for index in 0..<2 where open[index].fd >= 0 && open[index].revents != 0 {
        let count = read(open[index].fd, &buffer, buffer.count)
        if count > 0 {
          partial[index] += buffer[..<count]
          take(linesOf: &partial[index], isError: index == 1)
        } else {
          close(open[index].fd)
          open[index].fd = -1
        }
      }
    }
    var information = siginfo_t()
    while waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    // The id is given back and the status noted in one step, so that nobody signals an id that is no longer ours.
    state.withLock { state in
      var status: Int32 = 0
      waitpid(processID, &status, 0)
      let signal = status & 0x7f
      state.status = signal == 0 ? status >> 8 & 0xff : 128 + signal
    }
  }

  private func send(_ signal: Int32) {
    state.withLock { state in
      if state.status == nil { kill(processID, signal) }
    }
  }

  private func take(linesOf bytes: inout [UInt8], isError: Bool) {
    while let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
      let line = String(decoding: bytes[..<end], as: UTF8.self)
      bytes.removeFirst(end + 1)
      state.withLock { state in
        if isError { state.errors.append(line) } else { state.output.append(line) }
        if state.errors.count > Self.lineLimit { state.errors.removeFirst() }
        if state.output.count > Self.lineLimit { state.output.removeFirst() }
      }
    }
    if bytes.count > 65_536 { bytes.removeAll() }
  }

  /// The exit status, 128 and the signal's number when a signal ended it; nil while it runs.
  var exitStatus: Int32? { state.withLock { $0.status } }
  /// `stop()` was called.
  var wasStopped: Bool { state.withLock { $0.wasStopped } }
  /// What it printed to standard output, by lines.
  var outputLines: [String] { state.withLock { $0.output } }
  /// What it printed to standard error, by lines.
  var errorLines: [String] { state.withLock { $0.errors } }

  /// Waits for a line of output that begins with `prefix`; throws `ended` or `notReady`.
  func line(beginningWith prefix: String, within limit: TimeDelta) async throws -> String {
    let deadline = MonotonicClock.now() + limit
    while true {
      // The status first: a program that printed and ended at once has its lines by then.
      let status = exitStatus
      if let line = outputLines.first(where: { $0.hasPrefix(prefix) }) { return line }
      if let status {
        throw StartError.ended(program: name, status: status, lastLine: errorLines.last ?? "")
      }
      guard MonotonicClock.now() < deadline else {
        throw StartError.notReady(program: name, seconds: limit.inSeconds)
      }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Asks it to end (SIGTERM), makes it end after `patience` (SIGKILL), and returns when it has; the exit status.
  ///
  /// Safe to call again. Blocks the calling thread, so that it also works while everything is being torn down.
  @discardableResult
  func stop(patience: TimeDelta = .seconds(3)) -> Int32 {
    let deadline = MonotonicClock.now() + patience
    var hasAsked = false
    state.withLock { $0.wasStopped = true }
    while true {
      if let status = exitStatus { return status }
      if !hasAsked {
        send(SIGTERM)
        hasAsked = true
      } else if MonotonicClock.now() > deadline {
        send(SIGKILL)
      }
      usleep(5_000)
    }
  }
}
