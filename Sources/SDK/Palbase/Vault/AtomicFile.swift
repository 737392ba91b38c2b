import Foundation

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Small files that are replaced as a whole, readable by their owner only.
package enum AtomicFile {
  /// Where a crash can happen, in order; tests stop at each.
  enum Step: CaseIterable, Sendable { case created, written, synced, renamed }
  typealias Witness = @Sendable (Step) throws(StoreFault) -> Void

  static let temporaryPrefix = ".new-"

  /// The bytes of a file, nil when there is none; one above `limit` bytes is not read.
  static func read(_ path: String, limit: Int) throws(StoreFault) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw StoreFault(errno: errno)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw StoreFault(errno: errno) }
    // Somebody copied it without its mode.
    if status.st_mode & 0o077 != 0 { fchmod(descriptor, 0o600) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = systemRead(descriptor, &piece)
      guard count >= 0 else { throw StoreFault(errno: errno) }
      if count == 0 { return bytes }
      bytes += piece[..<count]
      guard bytes.count <= limit else { throw .corrupted(URL(fileURLWithPath: path).lastPathComponent) }
    }
  }

  private static func systemRead(_ descriptor: Int32, _ piece: inout [UInt8]) -> Int {
    piece.withUnsafeMutableBytes { buffer in
      #if canImport(Darwin)
        Darwin.read(descriptor, buffer.baseAddress, buffer.count)
      #else
        Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      #endif
    }
  }

  /// Replaces the file, and returns when that would survive a power cut.
  static func replace(
    _ path: String, with bytes: [UInt8], temporary: String, witness: Witness? = nil
  ) throws(StoreFault) {
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw StoreFault(errno: errno) }
    do throws(StoreFault) {
      defer { close(descriptor) }
      try witness?(.created)
      var done = 0
      while done < bytes.count {
        let count = bytes[done...].withUnsafeBytes {
          pwrite(descriptor, $0.baseAddress, $0.count, off_t(done))
        }
        guard count > 0 else { throw StoreFault(errno: errno) }
        done += count
      }
      try witness?(.written)
      guard fsync(descriptor) == 0 else { throw StoreFault(errno: errno) }
      try witness?(.synced)
    } catch {
      unlink(temporary)
      throw error
    }
    guard rename(temporary, path) == 0 else {
      let number = errno
      unlink(temporary)
      throw StoreFault(errno: number)
    }
    try witness?(.renamed)
    try syncFolder(of: path)
  }

  /// Makes the names in a folder durable.
  package static func syncFolder(of path: String) throws(StoreFault) {
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StoreFault(errno: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw StoreFault(errno: errno) }
  }

  /// An empty file, unless there is one.
  package static func makeEmpty(_ path: String) throws(StoreFault) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 && close(descriptor) == 0 || errno == EEXIST else { throw StoreFault(errno: errno) }
  }

  /// A folder that only its owner can enter.
  package static func makeFolder(_ path: String) throws(StoreFault) {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw StoreFault(errno: errno == 0 ? EIO : errno)
    }
    // Only ours: whoever shares it with others meant something else.
    var status = stat()
    guard stat(path, &status) == 0 else { throw StoreFault(errno: errno) }
    if status.st_mode & 0o077 != 0 { chmod(path, 0o700) }
  }
}
