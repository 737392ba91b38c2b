import PalbeMLS
import PalbeUnits
import PalbeWire

/// The actions that wait for their message, the oldest first; what they do is in their records.
struct OrphanList: Sendable {
  struct Entry: Hashable, Sendable {
    /// Its record's number.
    var number: UInt64
    var target: MessageRef
    var seq: Int64

    init(number: UInt64, target: MessageRef, seq: Int64) {
      (self.number, self.target, self.seq) = (number, target, seq)
    }

    /// From what its record's name ends with.
    init(name: [UInt8]) throws(MLSStorageError) {
      do throws(WireError) {
        var reader = ByteReader(name.span)
        (number, target, seq) = (try reader.uint64(), try reader.id(), try reader.int64())
        try reader.finish()
      } catch { throw .corrupted(error) }
    }
  }

  private(set) var entries: [Entry] = []
  private var counts: [MessageRef: Int] = [:]

  init() {}

  /// The same action waits already.
  func contains(target: MessageRef, seq: Int64) -> Bool {
    counts[target] != nil && entries.contains { $0.target == target && $0.seq == seq }
  }

  mutating func append(_ entry: Entry) {
    entries.append(entry)
    counts[entry.target, default: 0] += 1
  }

  mutating func removeFirst() {
    let entry = entries.removeFirst()
    counts[entry.target, default: 0] -= 1
    if counts[entry.target] == 0 { counts[entry.target] = nil }
  }

  /// Takes out all that wait for a message, in the server's order.
  mutating func take(_ target: MessageRef) -> [Entry] {
    guard counts[target] != nil else { return [] }
    let found = entries.filter { $0.target == target }
    entries.removeAll { $0.target == target }
    counts[target] = nil
    return found.sorted { $0.seq < $1.seq }
  }
}
