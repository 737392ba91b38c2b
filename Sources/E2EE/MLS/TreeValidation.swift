import PalbeMLSMessages

/// The rules a new member checks on a whole tree, RFC 9420 §7.9.2 and §12.4.3.1.
enum TreeValidation {
  /// All of them. Lifetimes are not among them: members outlive their key packages.
  static func check(_ tree: inout RatchetTree, _ leaves: LeafValidation) throws(MLSError) {
    try checkUniqueKeys(tree)
    try checkParentKeys(tree)
    try checkUnmergedLeaves(tree)
    try checkParentHashes(&tree)
    for index in tree.members {
      guard let leaf = tree[index] else { continue }
      try leaves.check(leaf, at: index)
      try leaves.checkAgainstMembers(leaf, tree.index)
    }
  }

  static func checkUniqueKeys(_ tree: RatchetTree) throws(MLSError) {
    for place in 0..<UInt32(tree.size.nodeCount) {
      guard let key = tree.encryptionKey(NodeIndex(place)) else { continue }
      guard tree.index.isUniqueEncryptionKey(key) else { throw .tree(.duplicateEncryptionKey) }
    }
    for index in tree.members {
      guard let leaf = tree[index], tree.index.isUniqueSignatureKey(leaf.signatureKey) else {
        throw .tree(.duplicateSignatureKey)
      }
    }
  }

  /// Nothing can be encrypted to a key outside the suite, so a member who placed one would stop everybody's paths.
  static func checkParentKeys(_ tree: RatchetTree) throws(MLSError) {
    for place in stride(from: UInt32(1), to: UInt32(tree.size.nodeCount), by: 2) {
      guard let parent = tree.parent(NodeIndex(place)) else { continue }
      guard tree.crypto.isValidEncryptionKey(parent.encryptionKey) else {
        throw .tree(.invalidParentKey(node: Int(place)))
      }
    }
  }

  /// Each unmerged leaf is a member below its node, in ascending order, and unmerged in every node between.
  static func checkUnmergedLeaves(_ tree: RatchetTree) throws(MLSError) {
    let places = stride(from: UInt32(1), to: UInt32(tree.size.nodeCount), by: 2)
    // The order in all nodes first: the rest searches by it.
    for place in places {
      guard let leaves = tree.parent(NodeIndex(place))?.unmergedLeaves else { continue }
      for (last, leaf) in zip(leaves, leaves.dropFirst()) where last >= leaf {
        throw .tree(.invalidUnmergedLeaf(leaf))
      }
    }
    for place in places {
      let node = NodeIndex(place)
      guard let parent = tree.parent(node) else { continue }
      for leaf in parent.unmergedLeaves {
        guard node.isAncestor(of: leaf), !tree.isBlank(NodeIndex(leaf)) else {
          throw .tree(.invalidUnmergedLeaf(leaf))
        }
        var between = NodeIndex(leaf)
        while let above = tree.size.parent(of: between), above != node {
          guard tree.parent(above)?.unmergedLeaves.containsAscending(leaf) ?? true else {
            throw .tree(.invalidUnmergedLeaf(leaf))
          }
          between = above
        }
      }
    }
  }

  /// Every parent is vouched for by a node below it, RFC 9420 §7.9.2.
  static func checkParentHashes(_ tree: inout RatchetTree) throws(MLSError) {
    for place in stride(from: UInt32(1), to: UInt32(tree.size.nodeCount), by: 2) {
      let node = NodeIndex(place)
      guard let parent = tree.parent(node), let left = node.left, let right = node.right else { continue }
      guard
        vouches(below: left, for: parent, sibling: right, &tree)
          || vouches(below: right, for: parent, sibling: left, &tree)
      else { throw .tree(.invalidParentHash(node: Int(place))) }
    }
  }

  /// True when the one node of `child`'s resolution that is not unmerged at `parent` carries its hash.
  private static func vouches(
    below child: NodeIndex, for parent: ParentNode, sibling: NodeIndex, _ tree: inout RatchetTree
  ) -> Bool {
    let unmerged = parent.unmergedLeaves[parent.unmergedLeaves.places(below: child)]
    let resolution = tree.resolution(child)
    guard resolution.count == unmerged.count + 1,
      let candidate = resolution.first(where: { $0.leaf.map { !unmerged.containsAscending($0) } ?? true })
    else { return false }
    // The others are unmerged leaves: as many as there are, and each once.
    let added = resolution.count { $0.leaf.map(unmerged.containsAscending) ?? false }
    guard added == unmerged.count else { return false }
    let carried: [UInt8]
    if let leaf = candidate.leaf {
      guard case .commit(let hash)? = tree[leaf]?.source else { return false }
      carried = hash
    } else {
      guard let hash = tree.parent(candidate)?.parentHash else { return false }
      carried = hash
    }
    return carried == tree.parentHash(parent, sibling: sibling)
  }
}
