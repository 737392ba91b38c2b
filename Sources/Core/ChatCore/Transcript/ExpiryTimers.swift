import PalbeMLS
import PalbeUnits
import PalbeWire

/// The deadlines of a chat's messages: least first by the wall clock, and by the steady clock of each boot.
///
/// It is rebuilt from the names of the timers' records alone. A timer that is taken out stays in the heaps
/// until it comes up.
struct ExpiryTimers: Sendable {
  private struct Entry: Comparable {
    var due: Int64
    var timer: Timer
    static func < (left: Entry, right: Entry) -> Bool {
      (left.due, left.timer.id) < (right.due, right.timer.id)
    }
  }

  /// One message's deadline.
  struct Timer: Hashable {
    var id: ClientMessageID
    var deadline: ChatDeadline

    init(id: ClientMessageID, deadline: ChatDeadline) { (self.id, self.deadline) = (id, deadline) }

    /// From what its record's name ends with.
    init(name: [UInt8]) throws(MLSStorageError) {
      do throws(WireError) {
        var reader = ByteReader(name.span)
        deadline = try ChatDeadline(from: &reader)
        id = try reader.id()
        try reader.finish()
      } catch { throw .corrupted(error) }
    }
  }

  private var live: [ClientMessageID: ChatDeadline] = [:]
  private var byWall = MinHeap<Entry>()
  private var byInstant = MinHeap<Entry>()

  /// How many messages wait.
  var count: Int { live.count }

  mutating func insert(_ timer: Timer) {
    live[timer.id] = timer.deadline
    byWall.insert(Entry(due: timer.deadline.wall.microseconds, timer: timer))
    byInstant.insert(Entry(due: timer.deadline.instant.nanoseconds, timer: timer))
  }

  mutating func remove(_ id: ClientMessageID) {
    live[id] = nil
    if byWall.count > 2 * live.count + 16 { rebuild() }
  }

  /// Takes out one that is due; nil when none is.
  mutating func popDue(at now: ChatTime) -> Timer? {
    for timer in [soonestByWall(), soonest(in: now.boot)].compactMap({ $0 })
    where timer.deadline.isDue(at: now) {
      remove(timer.id)
      return timer
    }
    return nil
  }

  /// The two that may be next: whichever of their clocks comes first.
  mutating func soonest(at now: ChatTime) -> [ChatDeadline] {
    [soonestByWall()?.deadline, soonest(in: now.boot)?.deadline].compactMap { $0 }
  }

  private mutating func soonestByWall() -> Timer? {
    while let first = byWall.first {
      if live[first.timer.id] == first.timer.deadline { return first.timer }
      byWall.removeFirst()
    }
    return nil
  }

  private mutating func soonest(in boot: UInt64) -> Timer? {
    while let first = byInstant.first {
      // A steady clock of another boot does not come back.
      if live[first.timer.id] == first.timer.deadline, first.timer.deadline.boot == boot {
        return first.timer
      }
      byInstant.removeFirst()
    }
    return nil
  }

  private mutating func rebuild() {
    let timers = live.map { Timer(id: $0.key, deadline: $0.value) }
    self = ExpiryTimers()
    for timer in timers { insert(timer) }
  }
}

/// A binary heap, least first.
struct MinHeap<Element: Comparable & Sendable>: Sendable {
  private var elements: [Element] = []

  var count: Int { elements.count }
  var first: Element? { elements.first }

  mutating func insert(_ element: Element) {
    elements.append(element)
    var child = elements.count - 1
    while child > 0, elements[child] < elements[(child - 1) / 2] {
      elements.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func removeFirst() {
    guard let last = elements.popLast(), !elements.isEmpty else { return }
    elements[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < elements.count {
        if elements[child] < elements[least] { least = child }
      }
      if least == parent { return }
      elements.swapAt(parent, least)
      parent = least
    }
  }
}
