import PalbeUnits

/// Keys by the instant at which something is due. A deadline that moved is put in again; who takes an entry out compares
/// it with the deadline that counts.
struct DeadlineQueue<Key> {
  /// Compared by the instant alone.
  private struct Entry: Comparable {
    var at: Instant
    var key: Key
    static func == (left: Entry, right: Entry) -> Bool { left.at == right.at }
    static func < (left: Entry, right: Entry) -> Bool { left.at < right.at }
  }

  private var heap = MinHeap<Entry>()

  var next: Instant? { heap.first?.at }
  var count: Int { heap.count }

  mutating func insert(_ key: Key, at instant: Instant) { heap.insert(Entry(at: instant, key: key)) }

  /// The earliest key that is due.
  mutating func take(at now: Instant) -> Key? {
    guard let first = heap.first, first.at <= now else { return nil }
    heap.removeFirst()
    return first.key
  }
}
