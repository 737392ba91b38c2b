import PalbeUnits

/// Packets that subscribers asked for again and that are still to be sent.
///
/// Bounded; a request beyond the bound is dropped, and the subscriber repeats it.
struct RepairQueue {
  static let limit = 4_096

  private var waiting: [(track: DownTrack, sequence: SequenceNumber)] = []
  private var head = 0

  mutating func append(_ sequence: SequenceNumber, of track: DownTrack) {
    guard waiting.count - head < Self.limit else { return }
    waiting.append((track, sequence))
  }

  mutating func pop() -> (track: DownTrack, sequence: SequenceNumber)? {
    guard head < waiting.count else {
      if head > 0 {
        waiting.removeAll(keepingCapacity: true)
        head = 0
      }
      return nil
    }
    head += 1
    return waiting[head - 1]
  }
}
