import Glibc

/// Where a file was when it was opened: whoever has it open goes on with it when it is deleted, moved or replaced, and what is
/// written then is lost.
struct FilePlace: Sendable {
  private let path: String
  private let device: dev_t
  private let inode: ino_t

  /// Nil where there is no file, as for a database in memory.
  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    self.path = path
    device = status.st_dev
    inode = status.st_ino
  }

  /// Whether the same file is there still; a microsecond.
  var isKept: Bool {
    guard let now = FilePlace(path) else { return false }
    return now.device == device && now.inode == inode
  }
}
