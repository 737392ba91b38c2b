/// First in, first out, filled and then drained in turns: it gives its places back when it is found empty.
struct BoundedQueue<Element> {
  /// What comes while so many wait is dropped.
  let limit: Int
  private var waiting: [Element] = []
  private var head = 0

  init(limit: Int) { self.limit = limit }

  mutating func append(_ element: Element) {
    guard waiting.count - head < limit else { return }
    waiting.append(element)
  }

  mutating func pop() -> Element? {
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
