import Glibc
import PalbeBackendCore
import PalbeSQLStore
import Synchronization

/// A consistent copy of a data folder: databases, keys and attachments that belong together.
///
/// The databases are copied first, that of messages before that of accounts, so an account in the copy can lack its messages
/// (it gets a new entry with its next sign-in) but not the other way round. Attachments are linked last, and what is deleted
/// meanwhile goes after that: the copy has the bytes of all attachments that it names. It appears under its name when all of it is on
/// the medium.
package struct DataBackup {
  /// Why there is none, in words for a person.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// A database file, and how it is copied to a path.
  package struct Source {
    let name: String
    let copy: (String) throws -> Void
  }

  private let source: String
  private let target: String
  private var partial: String { target + ".partial" }

  /// - Parameters:
  ///   - source: the data folder.
  ///   - target: where the copy goes; nothing may be there.
  package init(of source: String, to target: String) throws {
    self.source = source
    var target = target
    while target.count > 1, target.last == "/" { target.removeLast() }
    self.target = target
    try Self.checkOutside(source, target)
    guard access(target, F_OK) != 0 else { throw Failure(description: "\(target) is there already") }
    guard mkdir(partial, 0o700) == 0 else {
      throw Self.failure(errno == EEXIST ? "use (another backup, or what one has left)" : "make", partial)
    }
  }

  /// A copy inside of what is copied would be copied by the next one, and go with the data.
  private static func checkOutside(_ source: String, _ target: String) throws {
    let parent =
      target.lastIndex(of: "/").map { $0 == target.startIndex ? "/" : String(target[..<$0]) } ?? "."
    guard let folder = realpath(source, nil) else { return }
    defer { free(folder) }
    guard let place = realpath(parent, nil) else {
      throw failure("write into", parent)
    }
    defer { free(place) }
    guard !(String(cString: place) + "/").hasPrefix(String(cString: folder) + "/") else {
      throw Failure(
        description: "\(target) is inside the data folder \(source); a copy belongs outside of it")
    }
  }

  /// Of all files in a folder.
  package static func byteCount(of path: String) -> Int64 {
    var status = stat()
    guard lstat(path, &status) == 0 else { return 0 }
    guard status.st_mode & S_IFMT == S_IFDIR else { return Int64(status.st_size) }
    return (names(in: path) ?? []).reduce(0) { $0 + byteCount(of: path + "/" + $1) }
  }

  /// Makes it; what was made is removed when that fails.
  ///
  /// - Parameter copies: how each database file is copied, in order.
  package func run(_ copies: [Source]) throws {
    do {
      for source in copies { try source.copy(partial + "/" + source.name) }
      for name in ["messages.sqlite", "accounts.sqlite"] where !copies.contains(where: { $0.name == name }) {
        guard access(source + "/" + name, F_OK) != 0 else {
          throw Failure(description: "\(name) is not among what is copied")
        }
      }
      try copyFolder("keys", linking: false)
      try copyFolder("blobs", linking: true)
      try Self.syncTree(partial)
      guard rename(partial, target) == 0 else { throw Self.failure("rename", partial) }
      try Self.sync(
        target.contains("/") ? String(target[..<(target.lastIndex(of: "/") ?? target.startIndex)]) + "/" : "."
      )
    } catch {
      Self.removeTree(partial)
      throw error
    }
  }

  /// A whole database file that nobody uses.
  package static func file(_ name: String, in folder: String) -> Source {
    Source(name: name) { target in
      let path = folder + "/" + name
      do throws(SQLError) { try SQLConnection(path: path, settings: .server()).backUp(to: target) } catch {
        throw Failure(description: "cannot copy \(path): \(error.words)")
      }
    }
  }

  private func copyFolder(_ name: String, linking: Bool) throws {
    try copyTree(source + "/" + name, partial + "/" + name, linking: linking)
  }

  /// Whole blobs and keys; what is not whole yet, or is no file, stays behind.
  private func copyTree(_ from: String, _ to: String, linking: Bool) throws {
    guard let names = Self.names(in: from) else { return }
    guard mkdir(to, 0o700) == 0 else { throw Self.failure("make", to) }
    for name in names where !name.hasSuffix(".part") && !name.hasSuffix(".new") {
      let (old, new) = (from + "/" + name, to + "/" + name)
      var status = stat()
      guard lstat(old, &status) == 0 else { continue }
      switch status.st_mode & S_IFMT {
      case S_IFDIR: try copyTree(old, new, linking: linking)
      case S_IFREG:
        // A blob's bytes never change, so a link is a copy where both are on one file system.
        if linking, link(old, new) == 0 { continue }
        try Self.copyBytes(old, new)
      default: continue
      }
    }
  }

  private static func copyBytes(_ from: String, _ to: String) throws {
    let input = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    // Gone since its name was read.
    if input < 0, errno == ENOENT { return }
    guard input >= 0 else { throw failure("read", from) }
    defer { close(input) }
    let output = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard output >= 0 else { throw failure("write", to) }
    defer { close(output) }
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = read(input, &buffer, buffer.count)
      guard count >= 0 else { throw failure("read", from) }
      guard count > 0 else { return }
      var done = 0
      while done < count {
        let written = buffer.withUnsafeBytes {
          write(output, $0.baseAddress?.advanced(by: done), count - done)
        }
        guard written > 0 else { throw failure("write", to) }
        done += written
      }
    }
  }

  // MARK: Folders

  /// Nil where there is no folder.
  private static func names(in path: String) -> [String]? {
    guard let directory = opendir(path) else { return nil }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  private static func syncTree(_ path: String) throws {
    guard let names = names(in: path) else { return try sync(path) }
    for name in names { try syncTree(path + "/" + name) }
    try sync(path)
  }

  private static func sync(_ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("open", path) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure("write", path) }
  }

  private static func removeTree(_ path: String) {
    for name in names(in: path) ?? [] { removeTree(path + "/" + name) }
    _ = unlink(path) == 0 || rmdir(path) == 0
  }

  private static func failure(_ verb: String, _ path: String) -> Failure {
    Failure(description: "cannot \(verb) \(path): \(String(cString: strerror(errno)))")
  }
}
