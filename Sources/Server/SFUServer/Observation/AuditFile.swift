import Glibc
import PalbeServerObservation
import PalbeUnits
import Synchronization

/// The audit log's file, which all workers write into.
///
/// A debugging aid that shows what the SFU can see: every RTP packet it received, after SRTP, as a big-endian
/// 32-bit length and the packet's bytes. With end-to-end encryption these hold no sound and no picture.
final class AuditFile: Sendable {
  private let descriptor: Int32
  /// False once a write has failed: a file with a hole would mislead.
  private let isIntact = Mutex(true)

  /// Empties or makes the file, readable by its owner alone.
  /// - Throws: the reason in the system's words.
  init(path: String) throws(SFUServerError) {
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .auditLog(path: path, reason: String(cString: strerror(errno))) }
  }

  deinit { close(descriptor) }

  /// Appends whole records. False when this call was the first to fail.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    isIntact.withLock { isIntact in
      guard isIntact else { return true }
      var rest = bytes
      while !rest.isEmpty {
        let count = write(descriptor, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else {
          isIntact = false
          return false
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
      return true
    }
  }
}

/// One worker's records on their way to the file. Used by that worker's thread alone.
final class AuditBuffer {
  static let interval = TimeDelta.milliseconds(200)
  private static let capacity = 1 << 20

  private let file: AuditFile
  private let log: ServerLog
  private let bytes: UnsafeMutableRawBufferPointer
  private var count = 0
  /// When what waits has to be in the file.
  private(set) var deadline = Instant.distantFuture

  init(file: AuditFile, log: ServerLog) {
    self.file = file
    self.log = log
    bytes = .allocate(byteCount: Self.capacity, alignment: 16)
  }

  deinit {
    flush()
    bytes.deallocate()
  }

  /// Takes one packet, of at most 64 KiB.
  func record(_ packet: Span<UInt8>, at now: Instant) {
    guard packet.count <= 65_535 else { return }
    if count + 4 + packet.count > bytes.count { flush() }
    if count == 0 { deadline = now + Self.interval }
    bytes.storeBytes(of: UInt32(packet.count).bigEndian, toByteOffset: count, as: UInt32.self)
    packet.withUnsafeBytes { source in
      UnsafeMutableRawBufferPointer(rebasing: bytes[(count + 4)...]).copyMemory(from: source)
    }
    count += 4 + packet.count
  }

  /// Writes when the oldest record has waited long enough.
  func flush(ifDueAt now: Instant) {
    if now >= deadline { flush() }
  }

  func flush() {
    deadline = .distantFuture
    guard count > 0 else { return }
    if !file.append(UnsafeRawBufferPointer(rebasing: bytes[..<count])) {
      log.write(.warning, "audit log failed", [("reason", String(cString: strerror(errno)))])
    }
    count = 0
  }
}
