package import PalbeMLSMessages
package import PalbeUnits

/// A group as it stands after every member has committed once, made without that many commits and joins.
///
/// For measurements and tests of large groups: one public tree that all members share, and each member's private
/// state swapped in. The tree is what the members' commits from the first leaf to the last leave behind, with one
/// exception: where a later commit replaced the node above, the parent hash that the earlier one left is stale, and
/// nobody can check it any more, so random bytes stand there. A new member accepts the tree.
package struct WarmGroup: Sendable {
  private let clients: [MLSClient]
  private let tree: RatchetTree
  private let privateKeys: [NodeIndex: Secret]
  private let context: GroupContext
  private let epochSecret: Secret
  private let confirmationTag: [UInt8]

  /// All clients, one leaf each, of one suite. Traps when there are none. Throws `tree(.tooLarge)`, `crypto`.
  package init(
    groupID: [UInt8], clients: [MLSClient], lifetime: Lifetime, using random: inout RandomSource
  ) throws(MLSError) {
    precondition(!clients.isEmpty, "a group has a member")
    let crypto = clients[0].crypto
    let first = try clients[0].makeLeaf(source: .keyPackage(lifetime), using: &random)
    var tree = RatchetTree(first.leaf, crypto: crypto)
    var keys = [NodeIndex(LeafIndex(0)): first.encryptionKey]
    for client in clients.dropFirst() {
      let (leaf, key) = try client.makeLeaf(source: .update, using: &random)
      keys[NodeIndex(try tree.add(leaf))] = key
    }
    for place in clients.indices {
      try Self.commit(
        LeafIndex(UInt32(place)), of: clients.count, clients[place], groupID, in: &tree, &keys, &random)
    }
    let secret = Secret(byteCount: crypto.hashByteCount, using: &random)
    self.clients = clients
    context = GroupContext(
      cipherSuite: crypto.suite, groupID: groupID, epoch: UInt64(clients.count), treeHash: tree.rootHash(),
      confirmedTranscriptHash: random.bytes(crypto.hashByteCount))
    confirmationTag = crypto.mac(
      context.confirmedTranscriptHash,
      key: EpochSecrets(epochSecret: secret, crypto: crypto).confirmationKey)
    self.tree = tree
    privateKeys = keys
    epochSecret = secret
  }

  /// What the commit of one member leaves that no later one replaces: the nodes that have it as their last leaf.
  private static func commit(
    _ own: LeafIndex, of count: Int, _ client: MLSClient, _ groupID: [UInt8], in tree: inout RatchetTree,
    _ keys: inout [NodeIndex: Secret], _ random: inout RandomSource
  ) throws(MLSError) {
    let crypto = tree.crypto
    let path = tree.filteredDirectPath(of: own)
    let lasting = path.prefix { min($0.node.leaves.upperBound, UInt32(count - 1)) == own.value }
    var parentHash = lasting.count == path.count ? [] : crypto.hash(random.bytes(crypto.hashByteCount))
    for step in lasting.reversed() {
      let pair = try crypto.generateKeyPair(using: &random)
      keys[step.node] = pair.privateKey
      let parent = ParentNode(encryptionKey: pair.publicKey, parentHash: parentHash)
      tree.set(step.node, parent)
      parentHash = tree.parentHash(parent, sibling: step.copathChild)
    }
    guard var leaf = tree[own] else { throw .tree(.noMember(own)) }
    leaf.source = .commit(parentHash: parentHash)
    try client.sign(&leaf, groupID: groupID, at: own)
    tree.set(own, leaf)
  }

  /// The membership of the client at a place. Two of the same place are two copies of one member: let no more than one
  /// of them send.
  package func member(_ place: Int) -> MLSGroup {
    let client = clients[place]
    let own = LeafIndex(UInt32(place))
    var held: [NodeIndex: Secret] = [:]
    for node in [NodeIndex(own)] + tree.size.directPath(of: own) { held[node] = privateKeys[node] }
    return MLSGroup(
      client: client,
      epoch: EpochState(
        context: context, tree: tree, ownLeaf: own, privateKeys: held,
        secrets: EpochSecrets(epochSecret: epochSecret, crypto: client.crypto),
        confirmationTag: confirmationTag, crypto: client.crypto))
  }
}
