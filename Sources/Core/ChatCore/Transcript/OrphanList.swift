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

  init() {}

  /// The same action waits already.
  func contains(target: MessageRef, seq: Int64) -> Bool {
    entries.contains { $0.target == target && $0.seq == seq }
  }

  mutating func append(_ entry: Entry) { entries.append(entry) }

  mutating func removeFirst() { entries.removeFirst() }

  /// Takes out all that wait for a message, in the server's order.
  mutating func take(_ target: MessageRef) -> [Entry] {
    let found = entries.filter { $0.target == target }
    if !found.isEmpty { entries.removeAll { $0.target == target } }
    return found.sorted { $0.seq < $1.seq }
  }
}
