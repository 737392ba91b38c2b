import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

@Suite("RFC 9420 §7: rules for trees and paths")
struct TreeRuleTests {
  /// A tree of five members with keys above the leaves and one unmerged leaf.
  private func sample() throws -> (tree: RatchetTree, groupID: [UInt8]) {
    var group = try TestGroup(4)
    for committer in 0..<4 { try group.update(by: committer) }
    try group.add(1, by: 0)
    try group.update(by: 4)
    try group.add(1, by: 0, path: false)
    return (group.members[0].group.epoch.tree, group.members[0].group.groupID)
  }

  private func check(_ wire: RatchetTreeExtension, _ groupID: [UInt8]) throws {
    let crypto = try SuiteCrypto(.x25519AES128GCM)
    var tree = try RatchetTree(wire, crypto: crypto)
    let rules = try LeafValidation(
      crypto: crypto, policy: AnyCredentialAccepted(), groupID: groupID, extensions: [])
    try TreeValidation.check(&tree, rules)
  }

  /// Changes the node at a place, which must be a parent.
  private func changed(
    _ wire: RatchetTreeExtension, at place: Int, _ change: (inout ParentNode) -> Void
  ) throws -> RatchetTreeExtension {
    var result = wire
    guard case .parent(var parent)? = wire.nodes[place] else {
      Issue.record("expected a parent at \(place)")
      return wire
    }
    change(&parent)
    result.nodes[place] = .parent(parent)
    return result
  }

  // Rules: V302 V303 V304 V307 V308 V309 V310
  @Test("RFC 9420 §12.4.3.1: each rule for a tree has its own error")
  func rules() throws {
    let (tree, groupID) = try sample()
    let wire = tree.wire
    try check(wire, groupID)
    func refused(
      _ error: TreeError, _ wire: RatchetTreeExtension, sourceLocation: SourceLocation = #_sourceLocation
    ) {
      #expect(throws: MLSError.tree(error), sourceLocation: sourceLocation) { try check(wire, groupID) }
    }
    refused(.empty, RatchetTreeExtension(nodes: []))
    refused(.trailingBlank, RatchetTreeExtension(nodes: wire.nodes + [nil]))
    refused(.wrongNodeType(index: 0), RatchetTreeExtension(nodes: [wire.nodes[1]]))
    refused(.wrongNodeType(index: 1), RatchetTreeExtension(nodes: [wire.nodes[0], wire.nodes[2]]))
    var twins = wire
    twins.nodes[2] = twins.nodes[0]
    refused(.duplicateEncryptionKey, twins)
    guard case .leaf(var sibling)? = wire.nodes[2], case .leaf(let first)? = wire.nodes[0] else { return }
    sibling.signatureKey = first.signatureKey
    twins.nodes[2] = .leaf(sibling)
    refused(.duplicateSignatureKey, twins)

    let root = Int(tree.size.root.value)
    refused(.invalidParentHash(node: root), try changed(wire, at: root) { $0.encryptionKey[0] ^= 1 })
    let unmerged = try #require(tree.parent(tree.size.root)?.unmergedLeaves.first)
    #expect(unmerged == LeafIndex(5))
    refused(
      .invalidUnmergedLeaf(LeafIndex(6)),
      try changed(wire, at: root) { $0.unmergedLeaves.append(LeafIndex(6)) })
    refused(
      .invalidUnmergedLeaf(unmerged),
      try changed(wire, at: root) { $0.unmergedLeaves = [unmerged, unmerged] })
    refused(
      .invalidUnmergedLeaf(LeafIndex(UInt32.max)),
      try changed(wire, at: root) { $0.unmergedLeaves.append(LeafIndex(UInt32.max)) })
    refused(
      .invalidUnmergedLeaf(LeafIndex(0)),
      try changed(wire, at: root) { $0.unmergedLeaves.insert(LeafIndex(0), at: 0) })
    refused(.invalidParentHash(node: root), try changed(wire, at: root) { $0.unmergedLeaves = [] })
    var forged = wire
    sibling.signatureKey = [UInt8](repeating: 1, count: 32)
    forged.nodes[2] = .leaf(sibling)
    #expect(throws: MLSError.self) { try check(forged, groupID) }
  }

  @Test("Changed trees are refused or checked, never a trap")
  func mutations() throws {
    let (tree, groupID) = try sample()
    let bytes = tree.wire.encoded()
    var random = RandomSource(seed: 4)
    for _ in 0..<400 {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        changed[Int.random(in: changed.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      if let wire = try? RatchetTreeExtension(decoding: changed) { try? check(wire, groupID) }
    }
  }

  // Rules: V311 V312 V313 V314 V315 V316 V317
  @Test("RFC 9420 §7.5, §12.4.2: each rule for a path has its own error")
  func paths() throws {
    var group = try TestGroup(4)
    for committer in 0..<4 { try group.update(by: committer) }
    let epoch = group.members[0].group.epoch
    let crypto = epoch.tree.crypto
    var mine = epoch.tree
    let created = try TreeKEM.create(
      in: &mine, at: LeafIndex(0),
      TreeKEM.LeafTemplate(
        leaf: try #require(epoch.tree[LeafIndex(0)]), signatureKey: group.members[0].client.signatureKey,
        groupID: epoch.context.groupID), context: epoch.context, added: [], using: &group.random)
    func merge(_ path: UpdatePath) throws -> (RatchetTree, [RatchetTree.PathStep]) {
      var tree = epoch.tree
      let steps = try TreeKEM.merge(path, from: LeafIndex(0), into: &tree, added: [])
      return (tree, steps)
    }
    func refused(
      _ error: TreeError, sourceLocation: SourceLocation = #_sourceLocation,
      _ change: (inout UpdatePath) -> Void
    ) {
      var path = created.path
      change(&path)
      #expect(throws: MLSError.tree(error), sourceLocation: sourceLocation) { _ = try merge(path) }
    }
    let (tree, steps) = try merge(created.path)
    #expect(steps.count == 2)
    refused(.wrongPathLength(expected: 2, got: 1)) { $0.nodes.removeLast() }
    refused(.wrongPathLength(expected: 2, got: 3)) { $0.nodes.append($0.nodes[0]) }
    refused(.wrongCiphertextCount(expected: 1, got: 0)) { $0.nodes[0].encryptedPathSecrets = [] }
    refused(.invalidPathKey) { $0.nodes[1].encryptionKey = [] }
    refused(.wrongLeafParentHash) { $0.nodes[1].encryptionKey[0] ^= 1 }
    refused(.wrongLeafParentHash) { $0.leafNode.source = .commit(parentHash: []) }
    refused(.pathKeyInUse) {
      $0.leafNode.encryptionKey = epoch.tree[LeafIndex(2)]?.encryptionKey ?? []
    }

    func open(
      _ path: UpdatePath, holding keys: [NodeIndex: Secret], at leaf: LeafIndex = LeafIndex(1)
    ) throws -> TreeKEM.Opened {
      try TreeKEM.open(
        path, steps, at: leaf, holding: keys, in: tree, context: created.context.encoded(), added: [])
    }
    let keys = group.members[1].group.epoch.privateKeys
    #expect(try open(created.path, holding: keys).commitSecret.bytes == created.commitSecret.bytes)
    #expect(throws: MLSError.tree(.noPathKey)) { try open(created.path, holding: [:]) }
    var swapped = created.path
    swapped.nodes[1].encryptionKey = swapped.nodes[0].encryptionKey
    #expect(throws: MLSError.tree(.pathKeyMismatch(node: Int(steps[1].node.value)))) {
      try open(swapped, holding: keys)
    }
    #expect(throws: MLSError.crypto(.authenticationFailure)) {
      var other = created.path
      other.nodes[0].encryptedPathSecrets[0].ciphertext[0] ^= 1
      _ = try open(other, holding: keys)
    }
    _ = crypto
  }

  @Test("RFC 9420 §7.7: a cached hash is the hash of the same tree computed anew")
  func cachedHashes() throws {
    var group = try TestGroup(9)
    for step in 0..<12 {
      switch step % 4 {
      case 0: try group.add(2, by: step % group.members.count)
      case 1: try group.remove([group.members.count / 2], by: 0)
      default: try group.update(by: step % group.members.count)
      }
      for member in [group.members[0], group.members[group.members.count - 1]] {
        var tree = member.group.epoch.tree
        var fresh = try RatchetTree(tree.wire, crypto: tree.crypto)
        #expect(tree.rootHash() == fresh.rootHash())
        #expect(fresh.size == tree.size)
      }
    }
  }
}
