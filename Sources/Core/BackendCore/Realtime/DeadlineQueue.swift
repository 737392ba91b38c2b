import PalbeUnits

/// Keys by the instant at which something is due: a binary heap. A deadline that moved is put in again; who takes an
/// entry out compares it with the deadline that counts.
struct DeadlineQueue<Key> {
  private var heap: [(at: Instant, key: Key)] = []

  var next: Instant? { heap.first?.at }
  var count: Int { heap.count }

  mutating func insert(_ key: Key, at instant: Instant) {
    heap.append((instant, key))
    var child = heap.count - 1
    while child > 0, heap[child].at < heap[(child - 1) / 2].at {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// The earliest key that is due.
  mutating func take(at now: Instant) -> Key? {
    guard let first = heap.first, first.at <= now else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      var parent = 0
      while true {
        var least = parent
        for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
          if heap[child].at < heap[least].at { least = child }
        }
        if least == parent { break }
        heap.swapAt(parent, least)
        parent = least
      }
    }
    return first.key
  }
}
