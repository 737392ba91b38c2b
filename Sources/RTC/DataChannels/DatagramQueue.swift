import PalbeUnits
import PalbeWire

/// Datagrams that wait to be polled, one behind the other in one array.
///
/// Bounded: what does not fit is dropped, as a network would; SCTP repeats it.
final class DatagramQueue {
  static let countLimit = 512
  static let byteLimit = 1 << 20

  private var bytes: [UInt8] = []
  private var ends: [Int] = []
  private var head = 0
  private(set) var droppedCount = 0

  var isEmpty: Bool { head == ends.count }

  func append(_ datagram: UnsafeRawBufferPointer) {
    guard ends.count < Self.countLimit, bytes.count + datagram.count <= Self.byteLimit else {
      droppedCount += 1
      return
    }
    unsafe bytes.append(contentsOf: datagram)
    ends.append(bytes.count)
  }

  /// Bytes of the next datagram; nil when none waits.
  var nextCount: Int? { isEmpty ? nil : ends[head] - start }

  private var start: Int { head == 0 ? 0 : ends[head - 1] }

  /// Copies the next datagram to the start of `buffer`, and drops it when it is larger.
  @_lifetime(buffer: copy buffer)
  func pop(into buffer: inout MutableSpan<UInt8>) -> Int? {
    while !isEmpty {
      let range = start..<ends[head]
      head += 1
      let fits = range.count <= buffer.count
      if fits {
        let source = bytes.span
        for index in range { buffer[index - range.lowerBound] = source[index] }
      }
      if isEmpty { removeAll() }
      if fits { return range.count }
    }
    return nil
  }

  func removeAll() {
    bytes.removeAll(keepingCapacity: bytes.count <= 1 << 16)
    ends.removeAll(keepingCapacity: true)
    head = 0
  }
}
