import CPalbeOpenSSL
import PalbeUnits

/// What OpenSSL reads from and writes to in place of a socket.
///
/// OpenSSL's memory BIO glues datagrams together, and a flight of which one was lost then never completes. This one
/// holds the one datagram that is being fed, and a queue with an entry for each datagram written.
final class DatagramBIO {
  /// Datagrams that are not polled yet; OpenSSL repeats what is dropped here.
  static let outgoingLimit = 64

  /// The datagram that is being fed.
  var incoming: [UInt8] = []
  /// False once OpenSSL took `incoming`.
  var hasIncoming = false
  var outgoing: [[UInt8]] = []
  var timer = RetransmitTimer()

  /// A new BIO that refers to this object, which must outlive it.
  func makeBIO() -> OpaquePointer? {
    guard let method = unsafe Self.method, let bio = unsafe BIO_new(method) else { return nil }
    unsafe BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    unsafe BIO_set_init(bio, 1)
    return unsafe bio
  }

  private nonisolated(unsafe) static let method: OpaquePointer? = unsafe makeMethod()

  private static func makeMethod() -> OpaquePointer? {
    guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "palbe datagram")
    else {
      return nil
    }
    unsafe BIO_meth_set_read(method) { bio, bytes, limit in
      guard let bio = unsafe bio, let bytes = unsafe bytes, let queue = unsafe DatagramBIO.of(bio) else {
        return -1
      }
      unsafe palbe_bio_clear_retry(bio)
      guard queue.hasIncoming else {
        unsafe palbe_bio_set_retry_read(bio)
        return -1
      }
      queue.hasIncoming = false
      // A datagram is read whole or cut, as from a socket.
      let count = min(queue.incoming.count, Int(max(limit, 0)))
      for index in 0..<count { unsafe bytes[index] = CChar(bitPattern: queue.incoming[index]) }
      return CInt(count)
    }
    unsafe BIO_meth_set_write(method) { bio, bytes, count in
      guard let bio = unsafe bio, let bytes = unsafe bytes, count >= 0, let queue = unsafe DatagramBIO.of(bio)
      else {
        return -1
      }
      unsafe palbe_bio_clear_retry(bio)
      let datagram = unsafe [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(count)))
      if queue.outgoing.count < DatagramBIO.outgoingLimit { queue.outgoing.append(datagram) }
      return count
    }
    unsafe BIO_meth_set_ctrl(method) { bio, command, _, argument in
      switch command {
      case BIO_CTRL_FLUSH: return 1
      case BIO_CTRL_DGRAM_SET_NEXT_TIMEOUT:
        guard let bio = unsafe bio, let argument = unsafe argument, let queue = unsafe DatagramBIO.of(bio)
        else { return 0 }
        unsafe queue.timer.change(argument.assumingMemoryBound(to: timeval.self))
        return 1
      default: return 0
      }
    }
    return unsafe method
  }

  private static func of(_ bio: OpaquePointer) -> DatagramBIO? {
    unsafe BIO_get_data(bio).map { unsafe Unmanaged<DatagramBIO>.fromOpaque($0).takeUnretainedValue() }
  }
}
