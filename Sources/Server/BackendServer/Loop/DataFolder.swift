import Glibc
import PalbeAccountsCore
import PalbeCrypto
import PalbeEventLoop
import PalbeUnits
import PalbeWire
import Synchronization

/// The files in `keys/`.
package enum DataKey: String, CaseIterable, Sendable {
  case deviceTokens = "device-tokens"
  case blobAddresses = "blob-addresses"
  case refreshTokens = "refresh-tokens"
  /// Several keys; the others are one of 32 bytes.
  case tokenSigning = "token-signing"

  static let byteCount = 32

  /// Whether a server without accounts of its own has none.
  var isOfAccounts: Bool { self == .refreshTokens || self == .tokenSigning }

  func file(in folder: String) -> KeyFile { KeyFile("\(folder)/keys/\(rawValue)") }

  /// What is wrong with its file, for an operator.
  /// - Parameter mayBeNew: whether it may not be there.
  func problem(in folder: String, mayBeNew: Bool) -> String? {
    let file = file(in: folder)
    do throws(KeyFile.Failure) {
      guard let key = try file.read() else { return mayBeNew ? nil : file.lost.description }
      guard self == .tokenSigning else {
        return key.byteCount == Self.byteCount ? nil : file.malformed(Self.byteCount).description
      }
      return SigningKeys(serialized: key.span) == nil ? "\(file.path) is damaged" : nil
    } catch { return error.description }
  }
}

/// The folder with everything that a server keeps, locked for one process.
///
///     let folder = try DataFolder("/var/lib/palbe")
///     let store = try SQLiteBackendStore(path: folder.path("messages.sqlite"))
///
/// What it makes has mode 0700, files 0600. The lock ends with the process, however that ends.
///
/// The file of the lock also names the write-ahead logs of databases that are open. SQLite removes such a log when it closes the
/// database, and begins an empty one where there is none: without the note, a log that somebody has deleted after a crash would
/// take what was acknowledged last with it, without a word.
package final class DataFolder: Sendable {
  /// Why it cannot be used, in words for a person.
  package struct Failure: Error, Hashable, CustomStringConvertible {
    package let description: String
    /// A server that runs has it.
    package var isInUse = false

    init(description: String, isInUse: Bool = false) {
      self.description = description
      self.isInUse = isInUse
    }
  }

  /// Where it is, without a slash at its end.
  package let root: String
  private let descriptor: Int32

  /// Makes the folder where there is none, and locks it.
  package init(_ path: String) throws(Failure) {
    var root = path
    while root.count > 1, root.last == "/" { root.removeLast() }
    self.root = root
    try Self.make(root)
    let lock = root + "/lock"
    descriptor = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw Self.failure("open", lock) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let isBusy = errno == EWOULDBLOCK
      close(descriptor)
      throw isBusy
        ? Failure(description: "another server uses \(root)", isInUse: true) : Self.failure("lock", lock)
    }
  }

  deinit { close(descriptor) }

  /// Whether others than its owner may look into it: it has the keys of everything.
  package var isOpenToOthers: Bool {
    var status = stat()
    return stat(root, &status) == 0 && status.st_mode & 0o077 != 0
  }

  // MARK: Write-ahead logs

  private static let noteLimit = 4_096
  /// The note is of this process.
  private let hasNoted = Atomic(false)

  /// Notes which of these databases have a write-ahead log, of which the folder knows durably by then.
  func noteLogs(of names: [String]) throws(Failure) {
    let logs = names.map { $0 + "-wal" }.filter { access(path($0), F_OK) == 0 }
    let note = Array(logs.map { $0 + "\n" }.joined().utf8)
    let directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { throw Self.failure("open", root) }
    defer { close(directory) }
    guard fsync(directory) == 0, ftruncate(descriptor, 0) == 0,
      pwrite(descriptor, note, note.count, 0) == note.count, fsync(descriptor) == 0
    else { throw Self.failure("write", path("lock")) }
    hasNoted.store(true, ordering: .relaxed)
  }

  /// The databases are about to be closed, and their logs with them; does nothing where nothing was noted.
  func forgetLogs() { if hasNoted.exchange(false, ordering: .relaxed) { clearNote() } }

  private func clearNote() {
    ftruncate(descriptor, 0)
    fsync(descriptor)
  }

  /// Logs that were noted and are gone: what was acknowledged last is lost. To be asked before a database is opened.
  var lostLogs: [String] {
    var bytes = [UInt8](repeating: 0, count: Self.noteLimit)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    let note = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    return note.split(separator: "\n").map(String.init).filter {
      $0.hasSuffix(".sqlite-wal") && !$0.contains("/") && access(path($0), F_OK) != 0
    }
  }

  /// Refuses a folder without a log that must be there. Otherwise the databases are about to be opened, and nothing is noted any
  /// more: who opens one and does not go on merges its log, which then is gone.
  func takeLogs() throws(Failure) {
    guard let lost = lostLogs.first else { return clearNote() }
    throw Failure(
      description:
        "\(path(lost)) is gone and the last server did not end by itself: what it took last is lost. Put the file back, or restore a backup; to go on without, delete \(path("lock"))"
    )
  }

  /// Lets another server have it, before this one is gone from memory.
  package func unlock() { flock(descriptor, LOCK_UN) }

  /// The path of something in it.
  package func path(_ name: String) -> String { root + "/" + name }

  /// Whether a file in it has any bytes.
  func holds(_ name: String) -> Bool {
    var status = stat()
    return stat(path(name), &status) == 0 && status.st_size > 0
  }

  /// Makes a folder in it, mode 0700; returns its path.
  package func folder(_ name: String) throws(Failure) -> String {
    try Self.make(path(name))
    return path(name)
  }

  /// A key of 32 random bytes, made at the first time: `keys/<name>`, mode 0600.
  /// - Parameter mayBeNew: otherwise one that is not there is refused.
  package func key(_ name: DataKey, mayBeNew: Bool = true) throws(Failure) -> [UInt8] {
    _ = try folder("keys")
    do throws(KeyFile.Failure) {
      let key = try name.file(in: root).readOrMake(byteCount: DataKey.byteCount, mayBeNew: mayBeNew)
      return [UInt8](key.span)
    } catch { throw Failure(description: error.description) }
  }

  private static func make(_ path: String) throws(Failure) {
    var walked = ""
    for part in path.split(separator: "/", omittingEmptySubsequences: true) {
      walked += (walked.isEmpty && path.first != "/" ? "" : "/") + part
      guard mkdir(walked, 0o700) == 0 || errno == EEXIST else { throw failure("make", walked) }
    }
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      throw Failure(description: "\(path) is no folder")
    }
  }

  private static func failure(_ verb: String, _ path: String) -> Failure {
    Failure(description: "cannot \(verb) \(path): \(String(cString: strerror(errno)))")
  }
}
