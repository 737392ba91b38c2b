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
