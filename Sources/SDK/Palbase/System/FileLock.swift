import Foundation
package import PalbeUnits

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A lock between processes, and between owners within one: `flock` on a file that is never removed, so that all
/// lock the same inode (S2-5). The kernel lets go of it when its holder dies.
package struct FileLock: Sendable {
  /// The lock's file.
  package let path: String
  private let time: Timebase
  /// How long a wait lasts before `BackendError.accountBusy` (S2-7).
  package static let patience = TimeDelta.seconds(15)

  package init(path: String, time: Timebase) {
    self.path = path
    self.time = time
  }

  /// Runs `body` as the only holder. The wait can be cancelled; it blocks no thread.
  package func withLock<Value: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
  ) async throws -> Value {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw BackendError.storeUnavailable(StoreFault(errno: errno)) }
    defer { close(descriptor) }
    let end = time.now() + Self.patience
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else {
        throw BackendError.storeUnavailable(StoreFault(errno: errno))
      }
      guard time.now() < end else {
        SDKLog.note("the account is in use by \(holder(descriptor))")
        throw BackendError.accountBusy
      }
      try await time.sleep(time.jittered(.milliseconds(40)))
    }
    // Who holds it, for the log of those who give up; locking itself never reads it (S2-8).
    let note = "\(ProcessInfo.processInfo.processName) \(getpid()) \(time.wallMilliseconds())\n"
    ftruncate(descriptor, 0)
    _ = note.withCString { pwrite(descriptor, $0, strlen($0), 0) }
    return try await body()
  }

  private func holder(_ descriptor: Int32) -> String {
    let note = [UInt8](unsafeUninitializedCapacity: 200) { buffer, count in
      count = max(0, pread(descriptor, buffer.baseAddress, 200, 0))
    }
    return note.isEmpty
      ? "another process" : String(decoding: note.filter { (32...126).contains($0) }, as: UTF8.self)
  }
}

extension StoreFault {
  package init(errno: Int32) { self = errno == ENOSPC || errno == EDQUOT ? .full : .system(errno) }
}
