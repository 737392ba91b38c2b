import PalbeMLSMessages

/// The public half of a ratchet tree, RFC 9420 §4 and §7, with its hashes cached along clean subtrees.
///
/// The tree counts keys and credential types as leaves come and go, so that a change is checked against all
/// members without visiting them.
struct RatchetTree: Sendable {
  let crypto: SuiteCrypto
  private(set) var size: TreeSize
  private var leafNodes: [LeafNode?]
  /// Node 2i + 1 at place i.
  private var parentNodes: [ParentNode?]
  /// By node; empty where it must be computed again.
  private var hashes: [[UInt8]]
  private(set) var index = MemberIndex()

  /// A tree of one member.
  init(_ leaf: LeafNode, crypto: SuiteCrypto) {
    self.crypto = crypto
    size = TreeSize(holding: 1)
    leafNodes = [nil]
    parentNodes = []
    hashes = [[]]
    set(LeafIndex(0), leaf)
  }

  /// A tree from its wire form: checks the shape only, `TreeValidation` the rest.
  init(
    _ wire: RatchetTreeExtension, crypto: SuiteCrypto, maximumLeafCount: Int = TreeSize.maximumLeafCount
  ) throws(MLSError) {
    self.crypto = crypto
    guard let last = wire.nodes.last else { throw .tree(.empty) }
    guard last != nil else { throw .tree(.trailingBlank) }
    guard wire.nodes.count < 2 * maximumLeafCount else { throw .tree(.tooLarge) }
    size = TreeSize(holdingNodes: wire.nodes.count)
    leafNodes = Array(repeating: nil, count: size.leafCount)
    parentNodes = Array(repeating: nil, count: size.leafCount - 1)
    hashes = Array(repeating: [], count: size.nodeCount)
    for (position, node) in wire.nodes.enumerated() {
      switch node {
      case nil: break
      case .leaf(let leaf):
        guard position & 1 == 0 else { throw .tree(.wrongNodeType(index: position)) }
        leafNodes[position / 2] = leaf
        index.insert(leaf)
      case .parent(let parent):
        guard position & 1 == 1 else { throw .tree(.wrongNodeType(index: position)) }
        parentNodes[position / 2] = parent
        index.insert(parent)
      }
    }
  }

  /// The wire form.
  var wire: RatchetTreeExtension {
    var nodes: [TreeNode?] = []
    nodes.reserveCapacity(size.nodeCount)
    for place in 0..<size.leafCount {
      nodes.append(leafNodes[place].map(TreeNode.leaf))
      if place < size.leafCount - 1 { nodes.append(parentNodes[place].map(TreeNode.parent)) }
    }
    while let last = nodes.last, last == nil { nodes.removeLast() }
    return RatchetTreeExtension(nodes: nodes)
  }

  // MARK: Reading

  /// The member at a leaf; nil where blank or outside the tree.
  subscript(_ leaf: LeafIndex) -> LeafNode? { size.contains(leaf) ? leafNodes[Int(leaf.value)] : nil }

  func parent(_ node: NodeIndex) -> ParentNode? { parentNodes[Int(node.value / 2)] }

  func isBlank(_ node: NodeIndex) -> Bool {
    node.leaf.map { self[$0] == nil } ?? (parentNodes[Int(node.value / 2)] == nil)
  }

  func encryptionKey(_ node: NodeIndex) -> [UInt8]? {
    if let leaf = node.leaf { return self[leaf]?.encryptionKey }
    return parent(node)?.encryptionKey
  }

  /// Leaves with a member, ascending.
  var members: [LeafIndex] {
    leafNodes.indices.filter { leafNodes[$0] != nil }.map { LeafIndex(UInt32($0)) }
  }

  /// RFC 9420 §4.1.1: the fewest nodes whose keys reach all members below.
  func resolution(_ node: NodeIndex) -> [NodeIndex] {
    var result: [NodeIndex] = []
    appendResolution(node, to: &result)
    return result
  }

  private func appendResolution(_ node: NodeIndex, to result: inout [NodeIndex]) {
    if !isBlank(node) {
      result.append(node)
      if !node.isLeaf, let unmerged = parent(node)?.unmergedLeaves {
        result.append(contentsOf: unmerged.map(NodeIndex.init))
      }
    } else if let left = node.left, let right = node.right {
      appendResolution(left, to: &result)
      appendResolution(right, to: &result)
    }
  }

  private func hasMembers(_ node: NodeIndex) -> Bool {
    if !isBlank(node) { return true }
    guard let left = node.left, let right = node.right else { return false }
    return hasMembers(left) || hasMembers(right)
  }

  /// A node of a filtered direct path and its child that is not on the path.
  struct PathStep: Sendable {
    let node: NodeIndex
    let copathChild: NodeIndex
  }

  /// RFC 9420 §4.1.2: the direct path without the nodes whose copath child reaches nobody.
  func filteredDirectPath(of leaf: LeafIndex) -> [PathStep] {
    var steps: [PathStep] = []
    var node = NodeIndex(leaf)
    while let parent = size.parent(of: node), let sibling = size.sibling(of: node) {
      if hasMembers(sibling) { steps.append(PathStep(node: parent, copathChild: sibling)) }
      node = parent
    }
    return steps
  }

  // MARK: Changing

  private mutating func markDirty(_ leaf: LeafIndex) {
    hashes[Int(NodeIndex(leaf).value)] = []
    for node in size.directPath(of: leaf) { hashes[Int(node.value)] = [] }
  }

  /// Puts a leaf in place, or blanks it; the nodes above keep their keys.
  mutating func set(_ leaf: LeafIndex, _ node: LeafNode?) {
    let place = Int(leaf.value)
    if let old = leafNodes[place] { index.remove(old) }
    if let node { index.insert(node) }
    leafNodes[place] = node
    markDirty(leaf)
  }

  /// Puts a parent in place, or blanks it. The caller has changed, or changes, a leaf below.
  mutating func set(_ node: NodeIndex, _ parent: ParentNode?) {
    let place = Int(node.value / 2)
    if let old = parentNodes[place] { index.remove(old) }
    if let parent { index.insert(parent) }
    parentNodes[place] = parent
    hashes[Int(node.value)] = []
  }

  /// Blanks the nodes above a leaf.
  mutating func blankPath(of leaf: LeafIndex) {
    for node in size.directPath(of: leaf) { set(node, nil) }
  }

  /// RFC 9420 §7.7: the leftmost free leaf, or a tree twice as large.
  mutating func add(_ node: LeafNode) throws(MLSError) -> LeafIndex {
    let place: Int
    if let free = firstFree() {
      place = free
    } else {
      guard size.leafCount < TreeSize.maximumLeafCount else { throw .tree(.tooLarge) }
      place = size.leafCount
      size.double()
      leafNodes.append(contentsOf: repeatElement(nil, count: size.leafCount - leafNodes.count))
      parentNodes.append(contentsOf: repeatElement(nil, count: size.leafCount - 1 - parentNodes.count))
      hashes.append(contentsOf: repeatElement([], count: size.nodeCount - hashes.count))
    }
    let leaf = LeafIndex(UInt32(place))
    for above in size.directPath(of: leaf) {
      guard var parent = parent(above) else { continue }
      let position = parent.unmergedLeaves.firstIndex { $0 > leaf } ?? parent.unmergedLeaves.endIndex
      parent.unmergedLeaves.insert(leaf, at: position)
      set(above, parent)
    }
    set(leaf, node)
    return leaf
  }

  /// No free leaf lies left of this place; makes adding many leaves linear.
  private var freeHint = 0

  private mutating func firstFree() -> Int? {
    while freeHint < leafNodes.count, leafNodes[freeHint] != nil { freeHint += 1 }
    return freeHint < leafNodes.count ? freeHint : nil
  }

  /// Replaces a member's leaf and blanks the nodes above.
  mutating func update(_ leaf: LeafIndex, _ node: LeafNode) {
    set(leaf, node)
    blankPath(of: leaf)
  }

  /// RFC 9420 §7.8: blanks the leaf and the nodes above, then halves the tree while its right half is empty.
  mutating func remove(_ leaf: LeafIndex) {
    set(leaf, nil)
    blankPath(of: leaf)
    freeHint = min(freeHint, Int(leaf.value))
    while size.leafCount > 1, leafNodes[(size.leafCount / 2)...].allSatisfy({ $0 == nil }) {
      for place in (size.leafCount / 2 - 1)..<parentNodes.count {
        if let parent = parentNodes[place] { index.remove(parent) }
      }
      size.halve()
      leafNodes.removeLast(leafNodes.count - size.leafCount)
      parentNodes.removeLast(parentNodes.count - (size.leafCount - 1))
      hashes.removeLast(hashes.count - size.nodeCount)
    }
  }

  // MARK: Hashes

  /// Hash of the whole tree, RFC 9420 §7.8; recomputes what changed.
  mutating func rootHash() -> [UInt8] { hash(size.root) }

  /// Hash of a subtree.
  mutating func hash(_ node: NodeIndex) -> [UInt8] {
    let place = Int(node.value)
    guard hashes[place].isEmpty else { return hashes[place] }
    let value: [UInt8]
    if let left = node.left, let right = node.right {
      value = TreeHash.parent(parent(node), left: hash(left), right: hash(right), crypto: crypto)
    } else {
      value = TreeHash.leaf(LeafIndex(node.value / 2), leafNodes[place / 2], crypto: crypto)
    }
    hashes[place] = value
    return value
  }

  /// Hash of a subtree as if `unmerged` (ascending) had not been added yet, RFC 9420 §7.9.
  mutating func originalHash(_ node: NodeIndex, without unmerged: [LeafIndex]) -> [UInt8] {
    guard unmerged.contains(where: { node.isAncestor(of: $0) }) else { return hash(node) }
    guard let left = node.left, let right = node.right else {
      return TreeHash.leaf(LeafIndex(node.value / 2), nil, crypto: crypto)
    }
    var parent = parent(node)
    parent?.unmergedLeaves.removeAll { unmerged.contains($0) }
    return TreeHash.parent(
      parent, left: originalHash(left, without: unmerged), right: originalHash(right, without: unmerged),
      crypto: crypto)
  }

  /// `parent_hash` that the node below `parent` on the other side of `sibling` carries, RFC 9420 §7.9.
  mutating func parentHash(_ parent: ParentNode, sibling: NodeIndex) -> [UInt8] {
    TreeHash.parentHash(
      parent, originalSiblingTreeHash: originalHash(sibling, without: parent.unmergedLeaves), crypto: crypto)
  }
}
