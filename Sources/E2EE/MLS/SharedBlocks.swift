/// An array in blocks of 32. Copies share the blocks that neither changed, so that a copy and a change cost a block and
/// a list of blocks, not the whole.
struct SharedBlocks<Element: Sendable>: Sendable {
  private var blocks: [[Element]] = []
  private(set) var count = 0

  init(repeating element: Element, count: Int) { resize(to: count, repeating: element) }

  subscript(place: Int) -> Element {
    get { blocks[place >> 5][place & 31] }
    _modify { yield &blocks[place >> 5][place & 31] }
  }

  /// Drops elements from the end, or appends copies of one.
  mutating func resize(to newCount: Int, repeating element: Element) {
    while count > newCount {
      let dropped = min(count - newCount, blocks[blocks.count - 1].count)
      blocks[blocks.count - 1].removeLast(dropped)
      if blocks[blocks.count - 1].isEmpty { blocks.removeLast() }
      count -= dropped
    }
    while count < newCount {
      if count & 31 == 0 { blocks.append([]) }
      let added = min(newCount - count, 32 - count & 31)
      blocks[blocks.count - 1].append(contentsOf: repeatElement(element, count: added))
      count += added
    }
  }
}

/// The inner nodes of a full binary tree from left to right, in blocks of 32 that each hold whole subtrees: the path
/// from a leaf to the root lies in one block for each five levels.
///
///     tier 0   nodes of levels 1 to 5: place 0 to 30 of each block of 32 places
///     tier 1   every 32nd place of tier 0, which are levels 6 to 10, and so on
struct SharedInnerNodes<Element: Sendable>: Sendable {
  private var tiers: [SharedBlocks<Element>] = []
  private(set) var count = 0

  init(repeating element: Element, count: Int) { resize(to: count, repeating: element) }

  subscript(place: Int) -> Element {
    get {
      let (tier, place) = Self.locate(place)
      return tiers[tier][place]
    }
    _modify {
      let (tier, place) = Self.locate(place)
      yield &tiers[tier][place]
    }
  }

  private static func locate(_ place: Int) -> (tier: Int, place: Int) {
    var (tier, place) = (0, place)
    while place & 31 == 31 {
      tier += 1
      place >>= 5
    }
    return (tier, place)
  }

  /// Drops elements from the end, or appends copies of one.
  mutating func resize(to newCount: Int, repeating element: Element) {
    count = newCount
    var (tier, left) = (0, newCount)
    while left > 0 {
      if tier == tiers.count { tiers.append(SharedBlocks(repeating: element, count: 0)) }
      tiers[tier].resize(to: left, repeating: element)
      tier += 1
      left >>= 5
    }
    tiers.removeLast(tiers.count - tier)
  }
}
