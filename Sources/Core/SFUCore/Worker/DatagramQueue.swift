import PalbeRTP
import PalbeUnits
import PalbeWire

/// Datagrams that are ready to go: answers to checks, handshake flights, RTCP. Media does not pass through here.
///
/// Bounded: what does not fit is dropped, as a network would; everything in here is repeated or outdated soon.
struct DatagramQueue {
  static let limit = 4_096

  private var waiting: [(destination: SocketAddress, bytes: [UInt8])] = []
  private var head = 0

  mutating func append(_ bytes: [UInt8], to destination: SocketAddress) {
    guard waiting.count - head < Self.limit else { return }
    waiting.append((destination, bytes))
  }

  /// Copies the next datagram into `buffer`; one that is longer than it is dropped.
  @_lifetime(buffer: copy buffer)
  mutating func pop(into buffer: inout MutableSpan<UInt8>) -> Transmit? {
    while head < waiting.count {
      let (destination, bytes) = waiting[head]
      head += 1
      guard bytes.count <= buffer.count else { continue }
      buffer.copyBytes(from: bytes.span, at: 0)
      return Transmit(destination: destination, count: bytes.count)
    }
    if head > 0 {
      waiting.removeAll(keepingCapacity: true)
      head = 0
    }
    return nil
  }
}
