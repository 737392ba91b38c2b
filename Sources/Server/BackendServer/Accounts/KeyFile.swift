import Glibc
import PalbeCrypto
import PalbeEventLoop

/// A file with a secret, mode 0600, replaced as a whole: after a crash or a loss of power there is the old one or the new one.
struct KeyFile: Sendable {
  /// Why it cannot be read or written, in words for a person.
  struct Failure: Error, Hashable, CustomStringConvertible {
    let description: String
  }

  /// Where a crash can come, in order; tests stop at each.
  enum Step: CaseIterable { case created, written, synced, renamed }

  let path: String
  /// For tests that end it there.
  var step: (@Sendable (Step) throws(Failure) -> Void)?

  static let byteLimit = 4_096

  init(_ path: String) { self.path = path }

  /// What is in it; nil where there is none.
  func read() throws(Failure) -> SymmetricKey? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw failure("read")
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure("read") }
    guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= Self.byteLimit else {
      throw Failure(description: "\(path) is no key")
    }
    // Somebody copied it without its mode.
    if status.st_mode & 0o077 != 0 { fchmod(descriptor, 0o600) }
    return try SymmetricKey(byteCount: Int(status.st_size)) { output throws(Failure) in
      let wanted = output.capacity
      let count = output.withUnsafeMutableBufferPointer { buffer, initialized in
        initialized = max(0, Glibc.read(descriptor, buffer.baseAddress, wanted))
        return initialized
      }
      guard count == wanted else { throw failure("read") }
    }
  }

  /// Replaces it; returns when that survives a loss of power.
  func replace(_ secret: borrowing SymmetricKey) throws(Failure) {
    let temporary = path + ".new"
    // What a crash left.
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw failure("make") }
    do throws(Failure) {
      defer { close(descriptor) }
      try step?(.created)
      let span = secret.span
      let count = span.withUnsafeBufferPointer { write(descriptor, $0.baseAddress, $0.count) }
      guard count == span.count else { throw failure("write") }
      try step?(.written)
      guard fsync(descriptor) == 0 else { throw failure("write") }
      try step?(.synced)
      guard rename(temporary, path) == 0 else { throw failure("write") }
    } catch {
      unlink(temporary)
      throw error
    }
    try step?(.renamed)
    let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    let parent = open(folder.isEmpty ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard parent >= 0 else { throw failure("write") }
    defer { close(parent) }
    guard fsync(parent) == 0 else { throw failure("write") }
  }

  /// What is in it, `byteCount` random bytes where there was none.
  /// - Parameter mayBeNew: otherwise one that is not there is refused.
  func readOrMake(byteCount: Int, mayBeNew: Bool = true) throws(Failure) -> SymmetricKey {
    if let known = try read() {
      guard known.byteCount == byteCount else { throw malformed(byteCount) }
      return known
    }
    guard mayBeNew else { throw lost }
    var random = SystemRandom.source()
    let key = SymmetricKey(byteCount: byteCount, using: &random)
    try replace(key)
    return key
  }

  /// A folder that only its owner can enter; its parent is there.
  static func makeFolder(_ path: String) throws(Failure) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw KeyFile(path).failure("make") }
  }

  /// It is not what was written.
  func malformed(_ byteCount: Int) -> Failure {
    Failure(description: "\(path) is not a key of \(byteCount) bytes")
  }

  /// It is gone, and what was made with it is not.
  var lost: Failure {
    Failure(description: "\(path) is missing, and the databases are not; restore it from a backup")
  }

  private func failure(_ verb: String) -> Failure {
    Failure(description: "cannot \(verb) \(path): \(String(cString: strerror(errno)))")
  }
}
