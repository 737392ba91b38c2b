import CPalbeLinux
import Glibc
import PalbeUnits

/// Stream sockets of the file system.
enum LocalSocket {
  /// Whether an address can hold the path.
  static func fits(_ path: String) -> Bool {
    path.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path)
  }

  /// Fills in an address; false for a path that is too long.
  private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32)
    -> Bool
  {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard fits(path) else {
      errno = ENAMETOOLONG
      return false
    }
    let bytes = Array(path.utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
  }

  /// False with `errno` when nobody listens there.
  static func connect(_ descriptor: Int32, to path: String) -> Bool {
    withAddress(path) { Glibc.connect(descriptor, $0, $1) }
  }

  /// False with `errno` when it cannot listen there. What lies there is removed.
  static func listen(_ descriptor: Int32, at path: String) -> Bool {
    unlink(path)
    let before = umask(0o177)
    defer { umask(before) }
    return withAddress(path) { Glibc.bind(descriptor, $0, $1) } && Glibc.listen(descriptor, 8) == 0
  }

  /// A stream socket; negative with `errno`.
  static func make() -> Int32 {
    socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
  }

  /// Reads and writes give up after so long.
  static func setTimeout(_ descriptor: Int32, _ time: TimeDelta) {
    // 0 would be without end.
    let milliseconds = max(1, Int(time.wholeMilliseconds))
    var limit = timeval(tv_sec: milliseconds / 1_000, tv_usec: milliseconds % 1_000 * 1_000)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
  }

  /// Whether the peer runs as this process's user, or as root.
  static func isOwnUser(_ descriptor: Int32) -> Bool {
    // The C library's struct ucred: process, user, group.
    var credentials: (Int32, UInt32, UInt32) = (0, .max, .max)
    var length = socklen_t(12)
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return false }
    return credentials.1 == geteuid() || credentials.1 == 0
  }

  /// A line without its end; nil when none comes, or a longer one.
  static func readLine(_ descriptor: Int32, limit: Int) -> String? {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while bytes.count < limit, recv(descriptor, &byte, 1, 0) == 1 {
      if byte == UInt8(ascii: "\n") { return String(validating: bytes, as: UTF8.self) }
      bytes.append(byte)
    }
    return nil
  }
}
