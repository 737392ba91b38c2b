import CPalbeLinux
import CPalbeWebSockets
import Synchronization

/// The library below the server and the client.
enum WebLibrary {
  /// Silences the library, which by default writes to standard error. Called before its first use.
  static func initialize() { _ = isInitialized }

  private static let isInitialized: Bool = {
    lws_set_log_level(0) { _, _ in }
    return true
  }()
}

/// A context of the library, shared by the threads that wake it and the one that serves it.
///
/// Only `wake` may be called from another thread; it does nothing once the serving thread has taken the
/// context away
/// to destroy it.
final class ServiceContext: Sendable {
  private struct Pointer: @unchecked Sendable { var raw: OpaquePointer? }
  private let pointer = Mutex(Pointer(raw: nil))

  func set(_ context: OpaquePointer?) { pointer.withLock { $0.raw = context } }

  /// For the serving thread.
  var raw: OpaquePointer? { pointer.withLock { $0 }.raw }

  /// Makes the serving thread look for work.
  func wake() {
    pointer.withLock { if let context = $0.raw { lws_cancel_service(context) } }
  }
}

/// The library's one entry point.
typealias ServiceCallback =
  @convention(c) (
    OpaquePointer?, lws_callback_reasons, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int
  ) -> Int32

/// A C array of protocols and its names, kept as long as a context.
final class ProtocolTable: @unchecked Sendable {
  let list: UnsafeMutablePointer<lws_protocols>
  private let name: UnsafeMutablePointer<CChar>?

  init(name: String, readByteCount: Int, callback: @escaping ServiceCallback) {
    self.name = strdup(name)
    list = .allocate(capacity: 2)
    list.initialize(repeating: lws_protocols(), count: 2)
    list[0].name = UnsafePointer(self.name)
    list[0].callback = callback
    list[0].rx_buffer_size = readByteCount
    // As much as the socket takes: by default the library writes no more at once than it reads.
    list[0].tx_packet_size = 1 << 20
  }

  deinit {
    list.deallocate()
    free(name)
  }
}

/// Writes bytes with the library, which needs room before them. Returns false when the connection is broken.
func writeBytes(_ connection: OpaquePointer, _ bytes: [UInt8], _ kind: lws_write_protocol) -> Bool {
  let headroom = palbe_lws_headroom()
  return withUnsafeTemporaryAllocation(byteCount: headroom + bytes.count, alignment: 16) { buffer in
    guard let base = buffer.baseAddress else { return false }
    bytes.withUnsafeBytes { source in
      UnsafeMutableRawBufferPointer(rebasing: buffer[headroom...]).copyMemory(from: source)
    }
    let start = (base + headroom).assumingMemoryBound(to: UInt8.self)
    return lws_write(connection, start, bytes.count, kind) >= bytes.count
  }
}
