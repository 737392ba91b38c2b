/// What the shell has still to be told. Bounded by what one input can cause, because the shell drains it after each.
struct EventQueue {
  private var waiting: [SFUEvent] = []
  private var head = 0

  mutating func append(_ event: SFUEvent) { waiting.append(event) }

  mutating func pop() -> SFUEvent? {
    guard head < waiting.count else {
      waiting.removeAll(keepingCapacity: true)
      head = 0
      return nil
    }
    head += 1
    return waiting[head - 1]
  }
}
