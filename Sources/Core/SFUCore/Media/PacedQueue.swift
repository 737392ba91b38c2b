import PalbeRTP
import PalbeUnits

/// A packet that waits until its link takes it: it lies in its source's history.
struct PacedPacket {
  let track: DownTrack
  let sequence: SequenceNumber
  let timestamp: RTPTimestamp
  let byteCount: Int
  let since: Instant
}

/// The packets that wait for one link, first in, first out.
struct PacedQueue {
  /// Half of what a source's history holds, so that nothing that waits is overwritten there.
  static let limit = 256

  private var packets: [PacedPacket] = []
  private var head = 0
  /// Bytes of all that waits.
  private(set) var byteCount = 0

  var isEmpty: Bool { head == packets.count }
  var isFull: Bool { packets.count - head >= Self.limit }
  var first: PacedPacket? { isEmpty ? nil : packets[head] }

  mutating func append(_ packet: PacedPacket) {
    guard !isFull else { return }
    byteCount += packet.byteCount
    packets.append(packet)
  }

  mutating func removeFirst() {
    guard !isEmpty else { return }
    byteCount -= packets[head].byteCount
    head += 1
    if isEmpty {
      removeAll()
    } else if head >= Self.limit {
      packets.removeFirst(head)
      head = 0
    }
  }

  mutating func removeAll() {
    packets.removeAll(keepingCapacity: true)
    head = 0
    byteCount = 0
  }

  /// Drops what waits of a track, but for the rest of a frame that is under way.
  ///
  /// - Returns: the first number that was dropped; nil when nothing was.
  mutating func remove(_ track: DownTrack, exceptOf frame: RTPTimestamp?) -> SequenceNumber? {
    packets.removeFirst(head)
    head = 0
    var first: SequenceNumber?
    packets.removeAll { packet in
      guard packet.track === track, packet.timestamp != frame else { return false }
      first = first ?? packet.sequence
      return true
    }
    byteCount = packets.reduce(0) { $0 + $1.byteCount }
    return first
  }
}
