import PalbeMLSMessages

/// A node's position in the array form of a tree, RFC 9420 appendix C: leaves at even places.
struct NodeIndex: Hashable, Sendable {
  let value: UInt32

  init(_ value: UInt32) { self.value = value }
  init(_ leaf: LeafIndex) { value = leaf.value * 2 }

  /// Height above the leaves.
  var level: UInt32 { UInt32((~value).trailingZeroBitCount) }
  var isLeaf: Bool { value & 1 == 0 }
  var leaf: LeafIndex? { isLeaf ? LeafIndex(value / 2) : nil }

  var left: NodeIndex? { isLeaf ? nil : NodeIndex(value ^ (1 << (level - 1))) }
  var right: NodeIndex? { isLeaf ? nil : NodeIndex(value ^ (3 << (level - 1))) }

  /// The leaves below, or the leaf itself.
  var leaves: ClosedRange<UInt32> {
    let half = (UInt32(1) << level) - 1
    return (value - half) / 2...(value + half) / 2
  }

  func isAncestor(of leaf: LeafIndex) -> Bool { leaves.contains(leaf.value) }
}

/// The shape of a full binary tree; the number of leaves is a power of two.
struct TreeSize: Hashable, Sendable {
  /// At most 2^24: sixteen million members, and no index overflows.
  static let maximumLeafCount = 1 << 24

  private(set) var leafCount: Int

  /// The smallest tree with at least `leafCount` leaves.
  init(holding leafCount: Int) {
    self.leafCount = 1
    while self.leafCount < leafCount { self.leafCount *= 2 }
  }

  /// The smallest tree whose array form has at least `nodeCount` nodes.
  init(holdingNodes nodeCount: Int) { self.init(holding: nodeCount / 2 + 1) }

  var nodeCount: Int { 2 * leafCount - 1 }
  var root: NodeIndex { NodeIndex(UInt32(leafCount - 1)) }

  mutating func double() { leafCount *= 2 }
  mutating func halve() { leafCount /= 2 }

  func contains(_ leaf: LeafIndex) -> Bool { Int(leaf.value) < leafCount }

  func parent(of node: NodeIndex) -> NodeIndex? {
    guard node != root else { return nil }
    let level = node.level
    let bit = node.value >> (level + 1) & 1
    return NodeIndex((node.value | 1 << level) ^ (bit << (level + 1)))
  }

  func sibling(of node: NodeIndex) -> NodeIndex? {
    guard let parent = parent(of: node) else { return nil }
    return node.value < parent.value ? parent.right : parent.left
  }

  /// From the leaf's parent up to the root.
  func directPath(of leaf: LeafIndex) -> [NodeIndex] {
    var path: [NodeIndex] = []
    var node = NodeIndex(leaf)
    while let parent = parent(of: node) {
      path.append(parent)
      node = parent
    }
    return path
  }
}
