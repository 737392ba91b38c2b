import PalbeWire

/// Why a stream cannot be read on: nothing after such a place has a meaning.
public enum StreamFrameError: Error, Equatable, Sendable {
  /// A frame is announced that is longer than any datagram of a call.
  case frameTooLong(count: Int, limit: Int)
}

/// Cuts what a TCP connection brings into datagrams (RFC 4571 §2): each is a length in two bytes and so many bytes.
///
///     reader.fill { room in read(descriptor, room) }
///     while try reader.advance() { reader.withFrame { datagram in … } }
///
/// It holds one buffer, whatever the peer announces; empty frames are passed over.
@safe public struct StreamFrameReader: ~Copyable {
  /// The longest frame that is read.
  public let frameLimit: Int
  private var bytes: [UInt8]
  /// What was read and is not used yet.
  private var start = 0
  private var end = 0
  /// The frame that `advance` found.
  private var current = 0..<0

  /// - Parameter capacity: bytes that can wait; at least one frame and its length have room.
  public init(frameLimit: Int = 2_048, capacity: Int = 8_192) {
    precondition(frameLimit > 0 && frameLimit <= 0xffff)
    self.frameLimit = frameLimit
    bytes = [UInt8](repeating: 0, count: max(capacity, frameLimit + 2))
  }

  /// Lends `read` the room for what comes next, which is never empty once `advance` has returned false; it returns how many
  /// bytes it put there, or nil when the stream has ended. False: it has.
  public mutating func fill(_ read: (inout MutableSpan<UInt8>) -> Int?) -> Bool {
    current = 0..<0
    if start > 0 {
      for index in start..<end { bytes[index - start] = bytes[index] }
      end -= start
      start = 0
    }
    let free = end..<bytes.count
    var all = bytes.mutableSpan
    var room = all._mutatingExtracting(free)
    guard let count = read(&room) else { return false }
    precondition(count >= 0 && count <= free.count)
    end += count
    return true
  }

  /// Looks for the next whole frame, which `withFrame` then lends.
  public mutating func advance() throws(StreamFrameError) -> Bool {
    while end - start >= 2 {
      let count = Int(bytes[start]) << 8 | Int(bytes[start + 1])
      guard count <= frameLimit else { throw .frameTooLong(count: count, limit: frameLimit) }
      guard end - start - 2 >= count else { return false }
      current = start + 2..<start + 2 + count
      start = current.upperBound
      if count > 0 { return true }
    }
    return false
  }

  /// Lends the frame that `advance` found, for work in place.
  public mutating func withFrame(_ body: (inout MutableSpan<UInt8>) -> Void) {
    let range = current
    var all = bytes.mutableSpan
    var frame = all._mutatingExtracting(range)
    body(&frame)
  }
}
