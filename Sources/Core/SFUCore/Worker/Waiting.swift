import PalbeRTP
import PalbeUnits
import PalbeWire

/// Datagrams that are ready to go, one behind the other in one buffer: answers to checks, handshake flights, RTCP. Media
/// does not pass through here.
///
/// It is filled and then drained in turns, and begins at its start again when it is found empty: no datagram costs an
/// allocation once it has grown to what a turn takes.
struct DatagramQueue {
  private struct Entry {
    var destination: SocketAddress
    var range: Range<Int>
  }
  /// Bytes that are kept for the next turn at most.
  private static let keptByteCount = 256 << 10

  /// What comes while so many wait is dropped.
  let limit: Int
  private var entries: [Entry] = []
  private var bytes: [UInt8] = []
  private var head = 0

  init(limit: Int) { self.limit = limit }

  mutating func append(_ datagram: Span<UInt8>, to destination: SocketAddress) {
    guard entries.count - head < limit, !datagram.isEmpty else { return }
    let start = bytes.count
    unsafe datagram.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    entries.append(Entry(destination: destination, range: start..<bytes.count))
  }

  /// Copies the next datagram into `buffer`; one that is longer than it is dropped.
  @_lifetime(buffer: copy buffer)
  mutating func pop(into buffer: inout MutableSpan<UInt8>) -> Transmit? {
    while head < entries.count {
      let entry = entries[head]
      head += 1
      guard entry.range.count <= buffer.count else { continue }
      buffer.copyBytes(from: bytes.span.extracting(entry.range), at: 0)
      return Transmit(destination: entry.destination, count: entry.range.count)
    }
    if head > 0 {
      entries.removeAll(keepingCapacity: true)
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptByteCount)
      head = 0
    }
    return nil
  }
}

/// A packet that a subscriber asked for again and that is still to be sent.
struct WaitingRepair {
  var track: DownTrack
  var sequence: SequenceNumber
}
