import PalbeMLSMessages
import PalbeUnits

/// An HPKE key pair.
struct HPKEKeyPair: Sendable {
  let privateKey: Secret
  let publicKey: [UInt8]
}

/// Paths of fresh keys, RFC 9420 §7.4 to §7.6.
///
///     path_secret[0] ──"path"─▶ path_secret[1] ──"path"─▶ … ──"path"─▶ commit_secret
///           │ "node"                  │ "node"
///           ▼                         ▼
///      node_secret[0]            node_secret[1]
///           │ DeriveKeyPair           │
///           ▼                         ▼
///      key pair of the          key pair of the
///      first path node          second path node
enum TreeKEM {
  /// A path of our own.
  struct Created: Sendable {
    let path: UpdatePath
    let commitSecret: Secret
    /// Of our leaf and of the path's nodes.
    let privateKeys: [NodeIndex: Secret]
    /// By path node, for the Welcome.
    let pathSecrets: [NodeIndex: Secret]
    /// The provisional group context that the secrets are encrypted under.
    let context: GroupContext
  }

  /// What a leaf's owner puts into its new leaf.
  struct LeafTemplate {
    var leaf: LeafNode
    let signatureKey: SignatureKey
    let groupID: [UInt8]
  }

  /// Replaces our leaf and the nodes above with fresh keys, and encrypts their secrets to all but the members
  /// added by the same commit. `context` lacks only its tree hash.
  static func create(
    in tree: inout RatchetTree, at own: LeafIndex, _ template: LeafTemplate, context: GroupContext,
    added: Set<NodeIndex>, using random: inout RandomSource
  ) throws(MLSError) -> Created {
    let crypto = tree.crypto
    let steps = tree.filteredDirectPath(of: own)
    let leafKeys = try crypto.generateKeyPair(using: &random)
    var privateKeys = [NodeIndex(own): leafKeys.privateKey]
    var pathSecrets: [NodeIndex: Secret] = [:]
    var publicKeys: [[UInt8]] = []
    var secret = Secret(byteCount: crypto.hashByteCount, using: &random)
    for step in steps {
      pathSecrets[step.node] = secret
      let keys = try crypto.deriveKeyPair(crypto.derive(secret, label: "node"))
      privateKeys[step.node] = keys.privateKey
      publicKeys.append(keys.publicKey)
      secret = crypto.derive(secret, label: "path")
    }

    let parentHash = place(publicKeys, steps, above: own, in: &tree)
    var leaf = template.leaf
    leaf.encryptionKey = leafKeys.publicKey
    leaf.source = .commit(parentHash: parentHash)
    let signed = leaf.toBeSigned(groupID: template.groupID, leafIndex: own)
    leaf.signature = try crypto.sign(signed, label: "LeafNodeTBS", key: template.signatureKey)
    tree.set(own, leaf)

    var context = context
    context.treeHash = tree.rootHash()
    let encryption = crypto.encryption(label: "UpdatePathNode", context: context.encoded())
    var nodes: [UpdatePathNode] = []
    for (step, publicKey) in zip(steps, publicKeys) {
      guard let pathSecret = pathSecrets[step.node] else { continue }
      var ciphertexts: [HPKECiphertext] = []
      for recipient in tree.resolution(step.copathChild) where !added.contains(recipient) {
        guard let key = tree.encryptionKey(recipient) else { continue }
        ciphertexts.append(
          try crypto.encrypt(pathSecret, to: key, encryption, using: &random))
      }
      nodes.append(UpdatePathNode(encryptionKey: publicKey, encryptedPathSecrets: ciphertexts))
    }
    return Created(
      path: UpdatePath(leafNode: leaf, nodes: nodes), commitSecret: secret, privateKeys: privateKeys,
      pathSecrets: pathSecrets, context: context)
  }

  /// Puts a path's public keys in place, blanks the rest of the direct path, and returns the leaf's parent hash.
  private static func place(
    _ publicKeys: [[UInt8]], _ steps: [RatchetTree.PathStep], above leaf: LeafIndex,
    in tree: inout RatchetTree
  ) -> [UInt8] {
    var kept = steps[...]
    for node in tree.size.directPath(of: leaf) {
      if kept.first?.node == node { kept.removeFirst() } else { tree.set(node, nil) }
    }
    var parentHash: [UInt8] = []
    for (step, key) in zip(steps, publicKeys).reversed() {
      let parent = ParentNode(encryptionKey: key, parentHash: parentHash)
      tree.set(step.node, parent)
      parentHash = tree.parentHash(parent, sibling: step.copathChild)
    }
    return parentHash
  }

  /// Puts a received path in place after checking its shape, its keys and its parent hash.
  static func merge(
    _ path: UpdatePath, from sender: LeafIndex, into tree: inout RatchetTree, added: Set<NodeIndex>
  ) throws(MLSError) -> [RatchetTree.PathStep] {
    let steps = tree.filteredDirectPath(of: sender)
    guard path.nodes.count == steps.count else {
      throw .tree(.wrongPathLength(expected: steps.count, got: path.nodes.count))
    }
    for (step, node) in zip(steps, path.nodes) {
      guard tree.crypto.isValidEncryptionKey(node.encryptionKey) else { throw .tree(.invalidPathKey) }
      let expected = tree.resolution(step.copathChild).count { !added.contains($0) }
      guard node.encryptedPathSecrets.count == expected else {
        throw .tree(.wrongCiphertextCount(expected: expected, got: node.encryptedPathSecrets.count))
      }
    }
    let parentHash = place(path.nodes.map(\.encryptionKey), steps, above: sender, in: &tree)
    guard path.leafNode.source == .commit(parentHash: parentHash) else {
      throw .tree(.wrongLeafParentHash)
    }
    tree.set(sender, path.leafNode)
    for key in path.nodes.map(\.encryptionKey) + [path.leafNode.encryptionKey]
    where !tree.index.isUniqueEncryptionKey(key) {
      throw .tree(.pathKeyInUse)
    }
    return steps
  }

  /// What a received path gives to a member.
  struct Opened: Sendable {
    let commitSecret: Secret
    let privateKeys: [NodeIndex: Secret]
    /// Of the lowest path node above us.
    let pathSecret: Secret
  }

  /// Decrypts a merged path. `context` is the encoded provisional group context.
  static func open(
    _ path: UpdatePath, _ steps: [RatchetTree.PathStep], at own: LeafIndex, holding keys: [NodeIndex: Secret],
    in tree: RatchetTree, context: [UInt8], added: Set<NodeIndex>
  ) throws(MLSError) -> Opened {
    guard let first = steps.firstIndex(where: { $0.node.isAncestor(of: own) }) else {
      throw .tree(.noPathKey)
    }
    let recipients = tree.resolution(steps[first].copathChild).filter { !added.contains($0) }
    let ciphertexts = path.nodes[first].encryptedPathSecrets
    guard recipients.count == ciphertexts.count,
      let position = recipients.firstIndex(where: { keys[$0] != nil }), let key = keys[recipients[position]],
      let publicKey = tree.encryptionKey(recipients[position])
    else { throw .tree(.noPathKey) }
    let secret = try tree.crypto.decrypt(
      ciphertexts[position], privateKey: key, publicKey: publicKey, label: "UpdatePathNode",
      context: context)
    let expected = path.nodes[first...].map(\.encryptionKey)
    let derived = try deriveKeys(secret, steps[first...].map(\.node), crypto: tree.crypto)
    for (offset, step) in steps[first...].enumerated() where derived.publicKeys[offset] != expected[offset] {
      throw .tree(.pathKeyMismatch(node: Int(step.node.value)))
    }
    return Opened(commitSecret: derived.next, privateKeys: derived.privateKeys, pathSecret: secret)
  }

  /// The key pairs of the nodes from a path secret up, and the secret after the last.
  static func deriveKeys(
    _ pathSecret: Secret, _ nodes: [NodeIndex], crypto: SuiteCrypto
  ) throws(MLSError) -> (privateKeys: [NodeIndex: Secret], publicKeys: [[UInt8]], next: Secret) {
    var secret = pathSecret
    var privateKeys: [NodeIndex: Secret] = [:]
    var publicKeys: [[UInt8]] = []
    for node in nodes {
      let keys = try crypto.deriveKeyPair(crypto.derive(secret, label: "node"))
      privateKeys[node] = keys.privateKey
      publicKeys.append(keys.publicKey)
      secret = crypto.derive(secret, label: "path")
    }
    return (privateKeys, publicKeys, secret)
  }
}
