import PalbeMLSMessages
import PalbeWire

/// A received commit, RFC 9420 §12.4.2.
extension MLSGroup {
  private func resolve(
    _ commit: Commit, from sender: Sender
  ) throws(MLSError) -> [SentProposal] {
    var list: [SentProposal] = []
    for item in commit.proposals {
      switch item {
      case .proposal(let proposal): list.append(SentProposal(proposal: proposal, sender: sender))
      case .reference(let reference):
        guard case .member = sender else { throw .proposals(.referenceInExternalCommit) }
        guard let sent = proposals[reference] else { throw .proposals(.unknownReference) }
        list.append(sent)
      }
    }
    return list
  }

  /// RFC 9420 §12.4.2.
  mutating func process(
    _ commit: Commit, _ message: AuthenticatedContent, at unixTime: UInt64
  ) throws(MLSError) -> ProcessedMessage {
    let sender = message.content.sender
    if sender == .member(ownLeaf) { throw .commit(.ownCommitNotPending) }
    let configuration = client.configuration
    let list = try resolve(commit, from: sender)
    try ProposalRules.check(
      list, committer: sender, hashByteCount: crypto.hashByteCount, version: epoch.context.version,
      declared: configuration.applicationProposals)
    guard commit.path != nil || !ProposalRules.needPath(list, declared: configuration.applicationProposals)
    else { throw .commit(.pathMissing) }
    var applied = try AppliedProposals(
      list, to: epoch, crypto: crypto, policy: configuration.credentialPolicy
    ) { leaf throws(MLSError) in
      try LeafValidation.checkLifetime(
        leaf, at: unixTime, tolerance: configuration.lifetimeToleranceSeconds,
        maximum: configuration.maximumLifetimeSeconds)
    }
    let committer = try placeCommitter(sender, commit, in: &applied)

    var next = try epoch.context.following()
    next.extensions = applied.extensions
    let steps = try mergePath(commit.path, by: sender, from: committer, into: &applied, &next)
    if applied.removed.contains(ownLeaf) {
      let effect = effect(of: applied, next, committer: committer, hasPath: commit.path != nil)
      wipe()
      return .removed(effect)
    }

    var privateKeys = epoch.privateKeys
    var newClient: MLSClient?
    if applied.updated.contains(ownLeaf), let leaf = applied.tree[ownLeaf] {
      privateKeys[NodeIndex(ownLeaf)] = proposals.updateKeys[leaf.encryptionKey]
      newClient = proposals.updateClients[leaf.encryptionKey]
    }
    privateKeys = privateKeys.filter { node, _ in
      Int(node.value) < applied.tree.size.nodeCount && !applied.tree.isBlank(node)
    }
    var commitSecret: Secret?
    if let path = commit.path {
      let opened = try TreeKEM.open(
        path, steps, at: ownLeaf, holding: privateKeys, in: applied.tree, context: next.encoded(),
        added: applied.addedNodes)
      privateKeys.merge(opened.privateKeys) { $1 }
      commitSecret = opened.commitSecret
    }
    let initSecret = try initSecret(applied)
    let schedule = try advance(
      &next, applied: &applied, by: message, commitSecret: commitSecret, initSecret: initSecret)
    guard let tag = message.authentication.confirmationTag,
      crypto.isValidMAC(tag, of: next.confirmedTranscriptHash, key: schedule.secrets.confirmationKey)
    else { throw .commit(.invalidConfirmationTag) }
    try Self.checkChanged(from: epochAuthenticator, to: [UInt8](schedule.secrets.authenticator.span))
    let effect = effect(of: applied, next, committer: committer, hasPath: commit.path != nil)
    enter(
      StagedEpoch(
        epoch: EpochState(
          context: next, tree: applied.tree, ownLeaf: ownLeaf, privateKeys: privateKeys,
          secrets: schedule.secrets, confirmationTag: tag, crypto: crypto), effect: effect,
        client: newClient),
      at: unixTime)
    return .commit(effect)
  }

  /// A commit that leads to the epoch it started from would be recorded as a change that never was.
  static func checkChanged(from old: [UInt8], to new: [UInt8]) throws(MLSError) {
    guard old != new else { throw .commit(.epochDidNotChange) }
  }

  /// The committer's leaf; an external committer gets the first free one.
  private func placeCommitter(
    _ sender: Sender, _ commit: Commit, in applied: inout AppliedProposals
  ) throws(MLSError) -> LeafIndex {
    switch sender {
    case .member(let leaf): return leaf
    case .newMemberCommit:
      guard let path = commit.path else { throw .commit(.pathMissing) }
      return try applied.addExternal(path.leafNode)
    case .external, .newMemberProposal: throw .message(.wrongSenderType)
    }
  }

  /// Checks and places a path. `next` gets the tree hash, which the path secrets are encrypted under.
  private func mergePath(
    _ path: UpdatePath?, by sender: Sender, from committer: LeafIndex, into applied: inout AppliedProposals,
    _ next: inout GroupContext
  ) throws(MLSError) -> [RatchetTree.PathStep] {
    guard let path else { return [] }
    guard path.leafNode.encryptionKey != epoch.tree[committer]?.encryptionKey else {
      throw .leafNode(.encryptionKeyNotChanged)
    }
    guard case .commit = path.leafNode.source else { throw .leafNode(.wrongSource) }
    try applied.leaves.check(path.leafNode, at: committer, as: role(of: sender, applied))
    let added = applied.addedNodes
    let (steps, hash) = try applied.withTree { tree throws(MLSError) in
      let steps = try TreeKEM.merge(path, from: committer, into: &tree, added: added)
      return (steps, tree.rootHash())
    }
    try applied.leaves.checkAgainstMembers(path.leafNode, applied.tree.index)
    next.treeHash = hash
    return steps
  }

  /// A committer shows its next credential; one that rejoins by an external commit takes the place of who it removes.
  private func role(of sender: Sender, _ applied: AppliedProposals) -> PresentedCredential.Role {
    let old: LeafIndex? = if case .member(let leaf) = sender { leaf } else { applied.removed.first }
    guard let old, let node = epoch.tree[old] else { return .newMember }
    return .replacement(of: Member(old, node))
  }

  /// The last epoch's init secret, or for an external commit the one it sends, RFC 9420 §8.3.
  private func initSecret(_ applied: AppliedProposals) throws(MLSError) -> Secret {
    guard let kemOutput = applied.externalInit else { return epoch.secrets.initSecret }
    let keys = try crypto.deriveKeyPair(epoch.secrets.external)
    return try crypto.receiveExport(
      kemOutput, privateKey: keys.privateKey, label: "MLS 1.0 external init secret")
  }
}
