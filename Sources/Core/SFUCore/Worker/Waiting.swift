import PalbeRTP
import PalbeUnits
import PalbeWire

/// A datagram that is ready to go: an answer to a check, a handshake flight, RTCP. Media does not pass through here.
struct WaitingDatagram {
  var destination: SocketAddress
  var bytes: [UInt8]
}

extension BoundedQueue<WaitingDatagram> {
  /// Copies the next datagram into `buffer`; one that is longer than it is dropped.
  @_lifetime(buffer: copy buffer)
  mutating func pop(into buffer: inout MutableSpan<UInt8>) -> Transmit? {
    while let datagram = pop() {
      guard datagram.bytes.count <= buffer.count else { continue }
      buffer.copyBytes(from: datagram.bytes.span, at: 0)
      return Transmit(destination: datagram.destination, count: datagram.bytes.count)
    }
    return nil
  }
}

/// A packet that a subscriber asked for again and that is still to be sent.
struct WaitingRepair {
  var track: DownTrack
  var sequence: SequenceNumber
}
