import CPalbeLinux
import Glibc
import PalbeEventLoop
import PalbeUnits

/// Where pushes go; each stands for APNs (2.12). All of them get one line of JSON for each push.
package enum PushDestination: Hashable, Sendable {
  /// Appended to a file, or written to a named pipe that somebody reads.
  case file(String)
  /// Written to a stream socket of the file system, a connection for each push.
  case socket(String)
  /// A program and its arguments, spawned for each push, which reads it from standard input.
  case command([String])

  /// Why a server does not start with it, in words for a person: nothing could ever be sent there. A pipe that nobody reads yet and a
  /// socket where nobody listens yet are none of that.
  package struct Unusable: Error, Hashable, CustomStringConvertible {
    package let description: String
  }

  /// Refuses what no push could be sent to.
  package func check() throws(Unusable) {
    switch self {
    case .file(let path):
      do throws(PushFailure) { close(try Self.open(path)) } catch {
        guard error != .nobodyReads else { return }
        throw Unusable(description: "cannot append pushes to '\(path)': \(error.reason)")
      }
    case .socket(let path):
      guard LocalSocket.fits(path) else {
        throw Unusable(description: "'\(path)' is too long for the path of a socket")
      }
    case .command(let words):
      guard let name = words.first, Self.isProgram(name) else {
        throw Unusable(description: "'\(words.first ?? "")' for pushes is not a program that can be run")
      }
    }
  }

  /// Hands a line over.
  /// - Parameter deadline: until when that may take; asked again while it waits.
  func send(_ line: [UInt8], until deadline: () -> Instant) throws(PushFailure) {
    switch self {
    case .file(let path): try Self.append(line, to: path)
    case .socket(let path): try Self.write(line, toSocket: path, until: deadline())
    case .command(let words): try Self.run(words, input: line, until: deadline)
    }
  }

  // MARK: File

  /// Opens for appending, without waiting for whoever reads a pipe.
  private static func open(_ path: String) throws(PushFailure) -> Int32 {
    let descriptor = Glibc.open(
      path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0o600)
    var status = stat()
    guard descriptor >= 0 else {
      let code = errno
      guard code == ENXIO, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else {
        throw .system(code)
      }
      throw .nobodyReads
    }
    // Beside a file and a pipe a terminal or /dev/null: for who tries things out.
    guard fstat(descriptor, &status) == 0, [S_IFREG, S_IFIFO, S_IFCHR].contains(status.st_mode & S_IFMT)
    else {
      close(descriptor)
      throw .notAFile
    }
    return descriptor
  }

  private static func append(_ line: [UInt8], to path: String) throws(PushFailure) {
    let descriptor = try open(path)
    defer { close(descriptor) }
    // A pipe takes a line whole or not at all.
    let count = Glibc.write(descriptor, line, line.count)
    guard count == line.count else { throw count < 0 ? .system(errno) : .cut }
  }

  // MARK: Socket

  private static let socketTime = TimeDelta.seconds(5)

  private static func write(
    _ line: [UInt8], toSocket path: String, until deadline: Instant
  ) throws(PushFailure) {
    let descriptor = LocalSocket.make()
    guard descriptor >= 0 else { throw .system(errno) }
    defer { close(descriptor) }
    LocalSocket.setTimeout(descriptor, min(socketTime, deadline - MonotonicClock.now()))
    guard LocalSocket.connect(descriptor, to: path) else { throw .system(errno) }
    let count = Glibc.send(descriptor, line, line.count, Int32(MSG_NOSIGNAL))
    guard count == line.count else { throw count < 0 ? .system(errno) : .cut }
  }

  // MARK: Command

  /// Whether the system would find it as a shell does.
  private static func isProgram(_ name: String) -> Bool {
    func isExecutable(_ path: String) -> Bool {
      var status = stat()
      return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }
    guard !name.isEmpty, !name.contains("/") else { return isExecutable(name) }
    let folders = getenv("PATH").map { String(cString: $0) } ?? "/bin:/usr/bin"
    return folders.split(separator: ":", omittingEmptySubsequences: false).contains {
      isExecutable(($0.isEmpty ? "." : $0) + "/" + name)
    }
  }

  private static func run(
    _ words: [String], input: [UInt8], until deadline: () -> Instant
  ) throws(PushFailure) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw .system(errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var process = pid_t()
    let code = spawn(words, input: ends[0], &process)
    close(ends[0])
    // A line is shorter than what a pipe holds, so this does not wait.
    _ = Glibc.write(ends[1], input, input.count)
    close(ends[1])
    guard code == 0 else { throw .system(code) }
    var status: Int32 = 0
    while waitpid(process, &status, WNOHANG) == 0 {
      if MonotonicClock.now() > deadline() {
        // What it has started too.
        kill(-process, SIGKILL)
        waitpid(process, &status, 0)
        throw .tookTooLong
      }
      usleep(5_000)
    }
    guard status == 0 else { throw .ended(status: status >> 8 & 0xff, signal: status & 0x7f) }
  }

  /// Starts it in a process group of its own. 0, or why not.
  private static func spawn(_ words: [String], input: Int32, _ process: inout pid_t) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, 0)
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
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    return posix_spawnp(&process, words[0], &actions, &attributes, &arguments, environ)
  }
}

/// Why a push did not go.
enum PushFailure: Error, Hashable {
  /// `errno`.
  case system(Int32)
  /// A named pipe without a reader.
  case nobodyReads
  /// Neither a file nor a pipe.
  case notAFile
  /// Only a part of the line was taken.
  case cut
  case tookTooLong
  case ended(status: Int32, signal: Int32)

  /// In words for a person.
  var reason: String {
    switch self {
    case .system(let code): String(cString: strerror(code))
    case .nobodyReads: "nobody reads the pipe"
    case .notAFile: "neither a file nor a pipe"
    case .cut: "only a part of it was taken"
    case .tookTooLong: "took too long"
    case .ended(let status, let signal):
      signal == 0 ? "ended with status \(status)" : "ended by signal \(signal)"
    }
  }
}
