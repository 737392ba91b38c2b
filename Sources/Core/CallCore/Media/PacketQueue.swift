import PalbeUnits

/// Packets that wait to be sent, by the place where their bytes are kept. A ring of fixed size.
struct PacketQueue: Sendable {
  struct Entry: Sendable {
    var track: LocalTrack
    var sequenceNumber: SequenceNumber
  }

  static let capacity = 4_096

  private var entries = [Entry](
    repeating: Entry(track: .microphone, sequenceNumber: SequenceNumber(0)), count: capacity)
  private var head = 0
  private(set) var count = 0

  /// Packets that found no room.
  private(set) var dropped: UInt64 = 0

  mutating func push(_ entry: Entry) {
    guard count < Self.capacity else {
      dropped += 1
      return
    }
    entries[(head + count) % Self.capacity] = entry
    count += 1
  }

  mutating func pop() -> Entry? {
    guard count > 0 else { return nil }
    defer {
      head = (head + 1) % Self.capacity
      count -= 1
    }
    return entries[head]
  }

  mutating func removeAll() { count = 0 }
}
