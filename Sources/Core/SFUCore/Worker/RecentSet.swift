/// The last things that were put into it; each one beyond the limit pushes out the oldest.
struct RecentSet<Element: Hashable> {
  let limit: Int
  private var members: Set<Element> = []
  /// A ring, once it is full.
  private var order: [Element] = []
  private var oldest = 0

  init(limit: Int) { self.limit = limit }

  func contains(_ element: Element) -> Bool { members.contains(element) }

  /// False for one that is among them.
  @discardableResult
  mutating func insert(_ element: Element) -> Bool {
    guard members.insert(element).inserted else { return false }
    guard order.count == limit else {
      order.append(element)
      return true
    }
    members.remove(order[oldest])
    order[oldest] = element
    oldest = (oldest + 1) % limit
    return true
  }

  /// Its place in the order stays, so it may be pushed out early if it comes again.
  mutating func remove(_ element: Element) { members.remove(element) }
}
