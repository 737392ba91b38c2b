import Glibc
import PalbeBackendCore
import PalbeUnits
import PalbeWire

/// Why bytes could not be stored or read.
package enum BlobFault: Error, Hashable, Sendable {
  /// No room on the medium, or none that may be used up.
  case full
  /// There are no such bytes.
  case missing
  /// The piece does not begin where the one before ended: there.
  case offset(Int64)
  /// More bytes than were announced.
  case tooLong
  /// What lies under the blob's name has another count of bytes than the blob.
  case damaged
  /// Any other failure of the medium, with its `errno`.
  case failed(code: Int32)

  init(errno code: Int32) {
    switch code {
    case ENOSPC, EDQUOT, EFBIG: self = .full
    case ENOENT: self = .missing
    default: self = .failed(code: code)
    }
  }
}

extension BlobFault {
  /// What it says of the medium; nil where it speaks of the request.
  var storeFault: StoreFault? {
    switch self {
    case .full: .full
    case .damaged: .corrupted
    case .failed: .failed
    case .missing, .offset, .tooLong: nil
    }
  }
}

/// The bytes of blobs in a folder: `ef/cd/blb_…cdef`, and with `.part` behind it what is not whole yet.
///
/// A blob's own name appears when all its bytes are on the medium (written, synced, renamed, folder synced), so what has the
/// name is whole. What is not whole survives the end of the process; after another start of the machine it is dropped, as
/// nobody knows how much of it reached the medium. All calls wait for the disk.
package struct BlobFiles: Sendable {
  /// Changes of the disk, for tests that stop before each of them.
  package enum Step: Hashable, Sendable {
    case makeFolder, create, write, syncFile, rename, syncFolder, truncate, remove
  }

  /// What is there of a blob.
  package enum State: Hashable, Sendable {
    case none
    case partial(Int64)
    case whole(Int64)
  }

  private static let suffix = ".part"
  package let folder: String
  /// Called before each change of the disk.
  package var willTake: @Sendable (Step) throws(BlobFault) -> Void = { _ in }

  /// Makes the folder where there is none, readable by its owner alone.
  package init(folder: String) throws(BlobFault) {
    self.folder = folder
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw BlobFault(errno: errno) }
    try dropPartsOfAnotherBoot()
  }

  // MARK: Names

  private func parts(of id: BlobID) -> (folders: [String], file: String) {
    let bytes = id.bytes
    return ([Hex.encode([bytes[15]]), Hex.encode([bytes[14]])], id.text)
  }

  /// Where a whole blob lies.
  package func path(of id: BlobID) -> String {
    let (folders, file) = parts(of: id)
    return ([folder] + folders + [file]).joined(separator: "/")
  }

  private func partPath(of id: BlobID) -> String { path(of: id) + Self.suffix }

  // MARK: Looking

  /// What is there.
  package func state(of id: BlobID) throws(BlobFault) -> State {
    if let count = try byteCount(path(of: id)) { return .whole(count) }
    return try byteCount(partPath(of: id)).map { .partial($0) } ?? .none
  }

  private func byteCount(_ path: String) throws(BlobFault) -> Int64? {
    var status = stat()
    guard stat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw BlobFault(errno: errno)
    }
    return Int64(status.st_size)
  }

  /// A descriptor of a whole blob, to be closed by the caller.
  package func open(_ id: BlobID) throws(BlobFault) -> (descriptor: Int32, byteCount: Int64) {
    let descriptor = Glibc.open(path(of: id), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { throw BlobFault(errno: errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let code = errno
      close(descriptor)
      throw BlobFault(errno: code)
    }
    return (descriptor, Int64(status.st_size))
  }

  /// Every blob, and what is there of it; names that are none are passed over.
  package func all() throws(BlobFault) -> [(id: BlobID, state: State)] {
    var found: [(BlobID, State)] = []
    for outer in try names(in: folder) where outer.count == 2 {
      for inner in try names(in: folder + "/" + outer) where inner.count == 2 {
        for name in try names(in: "\(folder)/\(outer)/\(inner)") {
          let isPart = name.hasSuffix(Self.suffix)
          guard let id = BlobID(isPart ? name.dropLast(Self.suffix.count) : name[...]),
            let count = try byteCount("\(folder)/\(outer)/\(inner)/\(name)")
          else { continue }
          found.append((id, isPart ? .partial(count) : .whole(count)))
        }
      }
    }
    return found
  }

  private func names(in path: String) throws(BlobFault) -> [String] {
    guard let directory = opendir(path) else {
      if errno == ENOTDIR || errno == ENOENT { return [] }
      throw BlobFault(errno: errno)
    }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name.first != "." { names.append(name) }
    }
    return names.sorted()
  }

  /// Bytes that may still be used up, beyond those that are kept for the rest of the server.
  package func freeByteCount(keeping reserve: Int64) -> Int64 {
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else { return .max }
    let free = Int64(
      clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
    return max(0, free - reserve)
  }

  // MARK: Changing

  /// A descriptor of what is not whole yet, made where there is none; to be closed by the caller.
  package func openPart(of id: BlobID) throws(BlobFault) -> (descriptor: Int32, byteCount: Int64) {
    var walked = folder
    for name in parts(of: id).folders {
      let parent = walked
      walked += "/" + name
      var status = stat()
      guard stat(walked, &status) != 0 else { continue }
      try willTake(.makeFolder)
      guard mkdir(walked, 0o700) == 0 || errno == EEXIST else { throw BlobFault(errno: errno) }
      try syncFolder(parent)
    }
    try willTake(.create)
    let descriptor = Glibc.open(partPath(of: id), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw BlobFault(errno: errno) }
    let count = lseek(descriptor, 0, SEEK_END)
    guard count >= 0 else {
      let code = errno
      close(descriptor)
      throw BlobFault(errno: code)
    }
    return (descriptor, Int64(count))
  }

  /// Writes at a place; when that fails, nothing of it counts: the file is cut there.
  package func write(_ bytes: [UInt8], at offset: Int64, to descriptor: Int32) throws(BlobFault) {
    try willTake(.write)
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes {
        pwrite(descriptor, $0.baseAddress?.advanced(by: done), $0.count - done, off_t(offset) + off_t(done))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        let code = count == 0 ? ENOSPC : errno
        ftruncate(descriptor, off_t(offset))
        throw BlobFault(errno: code)
      }
      done += count
    }
  }

  /// Cuts what is not whole yet.
  package func truncate(_ descriptor: Int32, to count: Int64) throws(BlobFault) {
    try willTake(.truncate)
    guard ftruncate(descriptor, off_t(count)) == 0 else { throw BlobFault(errno: errno) }
  }

  /// Waits until the bytes are on the medium.
  package func sync(_ descriptor: Int32) throws(BlobFault) {
    try willTake(.syncFile)
    guard fdatasync(descriptor) == 0 else { throw BlobFault(errno: errno) }
  }

  /// All bytes are written: they get the blob's name. When this returns they survive everything.
  package func finish(_ id: BlobID, _ descriptor: Int32) throws(BlobFault) {
    try willTake(.syncFile)
    guard fsync(descriptor) == 0 else { throw BlobFault(errno: errno) }
    try willTake(.rename)
    guard rename(partPath(of: id), path(of: id)) == 0 else { throw BlobFault(errno: errno) }
    let (folders, _) = parts(of: id)
    try syncFolder(([folder] + folders).joined(separator: "/"))
  }

  /// Removes all there is of a blob; nothing is no failure.
  package func remove(_ id: BlobID) throws(BlobFault) {
    for path in [partPath(of: id), path(of: id)] {
      try willTake(.remove)
      guard unlink(path) == 0 || errno == ENOENT else { throw BlobFault(errno: errno) }
    }
  }

  private func syncFolder(_ path: String) throws(BlobFault) {
    try willTake(.syncFolder)
    let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw BlobFault(errno: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw BlobFault(errno: errno) }
  }

  // MARK: Another start of the machine

  private func dropPartsOfAnotherBoot() throws(BlobFault) {
    let mark = folder + "/.boot"
    let now = Self.contents("/proc/sys/kernel/random/boot_id")
    let before = Self.contents(mark)
    guard before != now || now.isEmpty else { return }
    for case (let id, .partial) in try all() {
      guard unlink(partPath(of: id)) == 0 || errno == ENOENT else { throw BlobFault(errno: errno) }
    }
    let descriptor = Glibc.open(mark, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw BlobFault(errno: errno) }
    defer { close(descriptor) }
    try write(now, at: 0, to: descriptor)
  }

  private static func contents(_ path: String) -> [UInt8] {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64)
    return Array(bytes.prefix(max(0, read(descriptor, &bytes, bytes.count))))
  }
}
