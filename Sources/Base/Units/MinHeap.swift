/// A binary heap, least first; equal elements come in no particular order.
///
///     var deadlines = MinHeap<Instant>()
///     deadlines.insert(now + .seconds(2))
///     while let first = deadlines.first, first <= now { deadlines.removeFirst() }
public struct MinHeap<Element: Comparable> {
  @usableFromInline var elements: [Element] = []

  /// Nothing.
  @inlinable public init() {}

  /// How many elements there are.
  @inlinable public var count: Int { elements.count }

  /// The least; nil for none.
  @inlinable public var first: Element? { elements.first }

  /// Takes an element in, in logarithmic time.
  @inlinable public mutating func insert(_ element: Element) {
    elements.append(element)
    var child = elements.count - 1
    while child > 0, elements[child] < elements[(child - 1) / 2] {
      elements.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Takes the least out, in logarithmic time; nothing where there is none.
  @inlinable public mutating func removeFirst() {
    guard let last = elements.popLast(), !elements.isEmpty else { return }
    elements[0] = last
    var parent = 0
    while true {
      let child = 2 * parent + 1
      var least = parent
      if child < elements.count, elements[child] < elements[least] { least = child }
      if child + 1 < elements.count, elements[child + 1] < elements[least] { least = child + 1 }
      if least == parent { return }
      elements.swapAt(parent, least)
      parent = least
    }
  }
}

extension MinHeap: Sendable where Element: Sendable {}
