import PalbeMLSMessages

/// The public half of a ratchet tree, RFC 9420 §4 and §7, with its hashes cached along clean subtrees.
///
/// The tree counts keys and credential types as leaves come and go, so that a change is checked against all
/// members without visiting them.
///
/// Copies share what neither changed, so that an epoch costs what its commit changes.
struct RatchetTree: Sendable {
  let crypto: SuiteCrypto
  private(set) var size: TreeSize
  private var leaves: SharedBlocks<LeafSlot>
  /// Node 2i + 1 at place i.
  private var parents: SharedInnerNodes<ParentSlot>
  private(set) var index = MemberIndex()

  /// A tree of one member.
  init(_ leaf: LeafNode, crypto: SuiteCrypto) {
    self.crypto = crypto
    size = TreeSize(holding: 1)
    leaves = SharedBlocks(repeating: LeafSlot(), count: 1)
    parents = SharedInnerNodes(repeating: ParentSlot(), count: 0)
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
    leaves = SharedBlocks(repeating: LeafSlot(), count: size.leafCount)
    parents = SharedInnerNodes(repeating: ParentSlot(), count: size.leafCount - 1)
    for (position, node) in wire.nodes.enumerated() {
      switch node {
      case nil: break
      case .leaf(let leaf):
        guard position & 1 == 0 else { throw .tree(.wrongNodeType(index: position)) }
        leaves[position / 2].leaf = BoxedLeaf(leaf)
        index.insert(leaf)
      case .parent(let parent):
        guard position & 1 == 1 else { throw .tree(.wrongNodeType(index: position)) }
        parents[position / 2].node = parent
        index.insert(parent)
      }
    }
    countMembers(size.root)
  }

  @discardableResult
  private mutating func countMembers(_ node: NodeIndex) -> UInt32 {
    guard let left = node.left, let right = node.right else { return isBlank(node) ? 0 : 1 }
    let count = countMembers(left) + countMembers(right)
    parents[Int(node.value / 2)].memberCount = count
    return count
  }

  /// The wire form.
  var wire: RatchetTreeExtension {
    var nodes: [TreeNode?] = []
    nodes.reserveCapacity(size.nodeCount)
    for place in 0..<size.leafCount {
      nodes.append((leaves[place].leaf?.node).map(TreeNode.leaf))
      if place < size.leafCount - 1 { nodes.append(parents[place].node.map(TreeNode.parent)) }
    }
    while let last = nodes.last, last == nil { nodes.removeLast() }
    return RatchetTreeExtension(nodes: nodes)
  }

  // MARK: Reading

  /// The member at a leaf; nil where blank or outside the tree.
  subscript(_ leaf: LeafIndex) -> LeafNode? {
    size.contains(leaf) ? leaves[Int(leaf.value)].leaf?.node : nil
  }

  func parent(_ node: NodeIndex) -> ParentNode? { parents[Int(node.value / 2)].node }

  func isBlank(_ node: NodeIndex) -> Bool {
    let place = Int(node.value / 2)
    guard node.isLeaf else { return parents[place].isBlank }
    return place >= size.leafCount || leaves[place].leaf == nil
  }

  func encryptionKey(_ node: NodeIndex) -> [UInt8]? {
    if let leaf = node.leaf { return self[leaf]?.encryptionKey }
    return parents[Int(node.value / 2)].encryptionKey
  }

  /// Leaves with a member, ascending.
  var members: [LeafIndex] {
    (0..<size.leafCount).filter { leaves[$0].leaf != nil }.map { LeafIndex(UInt32($0)) }
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
      guard !node.isLeaf else { return }
      for leaf in parents[Int(node.value / 2)].unmergedLeaves { result.append(NodeIndex(leaf)) }
    } else if let left = node.left, let right = node.right {
      appendResolution(left, to: &result)
      appendResolution(right, to: &result)
    }
  }

  /// How many members are below a node, or at a leaf.
  private func memberCount(_ node: NodeIndex) -> Int {
    node.isLeaf ? isBlank(node) ? 0 : 1 : Int(parents[Int(node.value / 2)].memberCount)
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
      if memberCount(sibling) > 0 { steps.append(PathStep(node: parent, copathChild: sibling)) }
      node = parent
    }
    return steps
  }

  // MARK: Changing

  /// Puts a leaf in place, or blanks it; the nodes above keep their keys.
  mutating func set(_ leaf: LeafIndex, _ node: LeafNode?) {
    let place = Int(leaf.value)
    let old = leaves[place].leaf?.node
    switch (old, node) {
    case (let old?, let node?): index.replace(old, with: node)
    case (let old?, nil): index.remove(old)
    case (nil, let node?): index.insert(node)
    case (nil, nil): break
    }
    leaves[place] = LeafSlot(leaf: node.map(BoxedLeaf.init))
    for above in size.directPath(of: leaf) {
      let place = Int(above.value / 2)
      if !parents[place].hash.isEmpty { parents[place].hash.clear() }
      if old == nil, node != nil { parents[place].memberCount += 1 }
      if old != nil, node == nil { parents[place].memberCount -= 1 }
    }
  }

  /// Puts a parent in place, or blanks it. The caller has changed, or changes, a leaf below.
  mutating func set(_ node: NodeIndex, _ parent: ParentNode?) {
    let place = Int(node.value / 2)
    if let old = parents[place].node { index.remove(old) } else if parent == nil { return }
    if let parent { index.insert(parent) }
    parents[place].node = parent
    parents[place].hash.clear()
  }

  /// Blanks the nodes above a leaf.
  mutating func blankPath(of leaf: LeafIndex) {
    for node in size.directPath(of: leaf) { set(node, nil) }
  }

  /// RFC 9420 §7.7: the leftmost free leaf, or a tree twice as large.
  mutating func add(_ node: LeafNode) throws(MLSError) -> LeafIndex {
    if memberCount(size.root) == size.leafCount {
      guard size.leafCount < TreeSize.maximumLeafCount else { throw .tree(.tooLarge) }
      let members = UInt32(size.leafCount)
      size.double()
      leaves.resize(to: size.leafCount, repeating: LeafSlot())
      parents.resize(to: size.leafCount - 1, repeating: ParentSlot())
      parents[Int(size.root.value / 2)].memberCount = members
    }
    let leaf = firstFree()
    for above in size.directPath(of: leaf) {
      parents[Int(above.value / 2)].addUnmerged(leaf)
    }
    set(leaf, node)
    return leaf
  }

  /// The leftmost free leaf of a tree that is not full.
  private func firstFree() -> LeafIndex {
    var node = size.root
    while let left = node.left, let right = node.right {
      node = memberCount(left) < Int(left.leaves.count) ? left : right
    }
    return LeafIndex(node.value / 2)
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
    while size.leafCount > 1, let right = size.root.right, memberCount(right) == 0 {
      for place in size.leafCount / 2 - 1..<size.leafCount - 1 {
        if let parent = parents[place].node { index.remove(parent) }
      }
      size.halve()
      leaves.resize(to: size.leafCount, repeating: LeafSlot())
      parents.resize(to: size.leafCount - 1, repeating: ParentSlot())
    }
  }

  // MARK: Hashes

  /// Hash of the whole tree, RFC 9420 §7.8; recomputes what changed.
  mutating func rootHash() -> [UInt8] { hash(size.root) }

  /// Hash of a subtree.
  mutating func hash(_ node: NodeIndex) -> [UInt8] {
    let place = Int(node.value / 2)
    guard let left = node.left, let right = node.right else {
      if let known = leaves[place].hash.value { return known }
      let hash = TreeHash.leaf(LeafIndex(UInt32(place)), leaves[place].leaf?.node, crypto: crypto)
      leaves[place].hash.set(hash)
      return hash
    }
    if let known = parents[place].hash.value { return known }
    let hash = TreeHash.parent(
      parents[place].node, left: hash(left), right: hash(right), crypto: crypto)
    parents[place].hash.set(hash)
    return hash
  }

  /// How many nodes `rootHash` would hash anew.
  var staleHashCount: Int {
    (0..<size.leafCount).count { leaves[$0].hash.isEmpty }
      + (0..<size.leafCount - 1).count { parents[$0].hash.isEmpty }
  }

  /// Hash of a subtree as if `unmerged` (ascending) had not been added yet, RFC 9420 §7.9.
  mutating func originalHash(_ node: NodeIndex, without unmerged: [LeafIndex]) -> [UInt8] {
    originalHash(node, without: unmerged[unmerged.places(below: node)])
  }

  /// All of `unmerged` are below the node.
  private mutating func originalHash(
    _ node: NodeIndex, without unmerged: ArraySlice<LeafIndex>
  ) -> [UInt8] {
    guard !unmerged.isEmpty else { return hash(node) }
    guard let left = node.left, let right = node.right else {
      return TreeHash.leaf(LeafIndex(node.value / 2), nil, crypto: crypto)
    }
    var parent = parent(node)
    if let merged = parent?.unmergedLeaves.ascending(without: unmerged) { parent?.unmergedLeaves = merged }
    let middle = unmerged.insertionPlace(of: LeafIndex(right.leaves.lowerBound))
    return TreeHash.parent(
      parent, left: originalHash(left, without: unmerged[..<middle]),
      right: originalHash(right, without: unmerged[middle...]), crypto: crypto)
  }

  /// `parent_hash` that the node below `parent` on the other side of `sibling` carries, RFC 9420 §7.9.
  mutating func parentHash(_ parent: ParentNode, sibling: NodeIndex) -> [UInt8] {
    TreeHash.parentHash(
      parent, originalSiblingTreeHash: originalHash(sibling, without: parent.unmergedLeaves), crypto: crypto)
  }
}
