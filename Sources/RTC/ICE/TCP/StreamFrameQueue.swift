import PalbeWire

/// Datagrams on their way into a TCP connection, framed (RFC 4571 §2); bounded, as a socket's buffer is.
///
/// A frame is taken whole or not at all: what does not fit is dropped, as a full link would drop a datagram. What TCP has
/// begun to send is never dropped, so the stream stays readable.
@safe public struct StreamFrameQueue: ~Copyable {
  /// Bytes that wait at most.
  public let capacity: Int
  /// Frames that had no room since `init`.
  public private(set) var droppedCount: UInt64 = 0
  private var bytes: [UInt8] = []
  private var start = 0

  /// Nothing waits, and nothing is allocated before the first frame.
  public init(capacity: Int = 65_536) {
    precondition(capacity > 2)
    self.capacity = capacity
  }

  /// Nothing waits.
  public var isEmpty: Bool { start == bytes.count }

  /// Queues a datagram with its length. False: it is dropped.
  @discardableResult
  public mutating func append(_ datagram: Span<UInt8>) -> Bool {
    guard !datagram.isEmpty, datagram.count <= 0xffff, bytes.count - start + datagram.count + 2 <= capacity
    else {
      droppedCount += 1
      return false
    }
    if bytes.count + datagram.count + 2 > capacity {
      bytes.removeFirst(start)
      start = 0
    }
    if bytes.capacity < capacity { bytes.reserveCapacity(capacity) }
    bytes.append(UInt8(truncatingIfNeeded: datagram.count >> 8))
    bytes.append(UInt8(truncatingIfNeeded: datagram.count))
    for index in datagram.indices { bytes.append(datagram[index]) }
    return true
  }

  /// What is to be written next.
  public var waiting: Span<UInt8> {
    @_lifetime(borrow self)
    borrowing get {
      bytes.span.extracting(start..<bytes.count)
    }
  }

  /// So many bytes of `waiting` were written.
  public mutating func written(_ count: Int) {
    precondition(count >= 0 && count <= bytes.count - start)
    start += count
    guard isEmpty else { return }
    bytes.removeAll(keepingCapacity: true)
    start = 0
  }
}
