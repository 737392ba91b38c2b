import PalbeMLSMessages

/// A tree with a commit's proposals applied, RFC 9420 §12.3, each checked against the others and the members.
struct AppliedProposals: Sendable {
  private(set) var tree: RatchetTree
  private(set) var extensions: [Extension]
  private(set) var added: [(leaf: LeafIndex, keyPackage: KeyPackage)] = []
  private(set) var removed: [LeafIndex] = []
  private(set) var updated: [LeafIndex] = []
  private(set) var preSharedKeys: [PreSharedKeyID] = []
  private(set) var externalInit: [UInt8]?
  private(set) var reInit: ReInit?
  private(set) var applicationProposals: [ApplicationProposal] = []
  /// The rules for leaves under the new extensions.
  let leaves: LeafValidation

  /// Leaves that a path of the same commit is not encrypted to.
  var addedNodes: Set<NodeIndex> { Set(added.map { NodeIndex($0.leaf) }) }

  /// Applies a list that passed `ProposalRules`. `checkLifetime` decides on a new member's lifetime.
  init(
    _ list: [SentProposal], to epoch: EpochState, crypto: SuiteCrypto, policy: any CredentialPolicy,
    checkLifetime: (LeafNode) throws(MLSError) -> Void
  ) throws(MLSError) {
    tree = epoch.tree
    var extensions = epoch.context.extensions
    for case .groupContextExtensions(let new) in list.map(\.proposal) { extensions = new }
    self.extensions = extensions
    leaves = try LeafValidation(
      crypto: crypto, policy: policy, groupID: epoch.context.groupID, extensions: extensions)
    if extensions != epoch.context.extensions { try leaves.checkExternalSenders() }

    for item in list {
      if case .update(let leaf) = item.proposal, case .member(let index) = item.sender {
        try update(index, leaf)
      }
    }
    for case .remove(let leaf) in list.map(\.proposal) {
      guard tree[leaf] != nil else { throw .proposals(.removesNobody(leaf)) }
      tree.remove(leaf)
      removed.append(leaf)
    }
    // Those who come or go with this commit need not support its types, RFC 9420 §12.2.
    for case .application(let type, _) in list.map(\.proposal) { try checkSupport(of: type) }
    for case .add(let keyPackage) in list.map(\.proposal) {
      try leaves.check(keyPackage)
      try checkLifetime(keyPackage.leafNode)
      added.append((try tree.add(keyPackage.leafNode), keyPackage))
    }
    for item in list {
      switch item.proposal {
      case .preSharedKey(let id): preSharedKeys.append(id)
      case .externalInit(let kemOutput): externalInit = kemOutput
      case .reInit(let parameters): reInit = parameters
      case .application(let type, let data):
        applicationProposals.append(ApplicationProposal(type: type, data: data, sender: item.sender))
      case .add, .update, .remove, .groupContextExtensions: break
      }
    }
    for index in updated + added.map(\.leaf) {
      if let leaf = tree[index] { try leaves.checkAgainstMembers(leaf, tree.index) }
    }
    if extensions != epoch.context.extensions { try checkExtensions() }
  }

  private mutating func update(_ index: LeafIndex, _ leaf: LeafNode) throws(MLSError) {
    guard let old = tree[index] else { throw .message(.unknownSender) }
    guard case .update = leaf.source else { throw .leafNode(.wrongSource) }
    guard leaf.encryptionKey != old.encryptionKey else { throw .leafNode(.encryptionKeyNotChanged) }
    try leaves.check(leaf, at: index, as: .replacement(of: Member(index, old)))
    tree.update(index, leaf)
    updated.append(index)
  }

  private func checkSupport(of type: ProposalType) throws(MLSError) {
    for index in tree.members {
      guard tree[index]?.capabilities.proposals.contains(type) ?? true else {
        throw .proposals(.typeNotSupported(type))
      }
    }
  }

  /// RFC 9420 §12.1.7: every member must support the new extensions and requirements.
  private func checkExtensions() throws(MLSError) {
    for index in tree.members {
      guard let leaf = tree[index] else { continue }
      do { try leaves.checkCapabilities(leaf) } catch {
        throw .proposals(.extensionNotSupportedByAll(index))
      }
    }
  }

  /// Gives an external committer its leaf.
  mutating func addExternal(_ leaf: LeafNode) throws(MLSError) -> LeafIndex { try tree.add(leaf) }

  /// The tree alone may still change: a path comes on top.
  mutating func withTree<Result>(
    _ body: (inout RatchetTree) throws(MLSError) -> Result
  ) throws(MLSError) -> Result { try body(&tree) }
}
