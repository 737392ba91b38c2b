public import PalbeMLSMessages
import PalbeWire

extension MLSGroup {
  /// Processes a message that the group received; bytes after it are refused.
  public mutating func process(
    _ bytes: [UInt8], at unixTime: UInt64
  ) throws(MLSError) -> ProcessedMessage {
    let message: MLSMessage
    do { message = try MLSMessage(decoding: bytes) } catch { throw .malformed(error) }
    return try process(message, at: unixTime)
  }

  /// Processes a message that the group received. When it throws, the group is as before, and a genuine message
  /// whose forged copy was refused can still be read.
  ///
  /// `message(.futureEpoch)` asks the caller to keep the message until the commits before it are processed.
  public mutating func process(
    _ message: MLSMessage, at unixTime: UInt64
  ) throws(MLSError) -> ProcessedMessage {
    try requireActive()
    dropOld(at: unixTime)
    if let pending, pending.message == message {
      enter(pending.staged, at: unixTime)
      return .ownCommit(pending.staged.effect)
    }
    switch message {
    case .publicMessage(let message): return try process(message, at: unixTime)
    case .privateMessage(let message): return try process(message, at: unixTime)
    case .welcome, .groupInfo, .keyPackage: throw .message(.notAGroupMessage)
    }
  }

  private func checkEpoch(_ number: UInt64, _ type: ContentType) throws(MLSError) {
    guard number <= epochNumber else { throw .message(.futureEpoch(epoch: number)) }
    guard number < epochNumber else { return }
    switch type {
    case .commit: throw .message(.staleCommit(epoch: number))
    case .proposal: throw .message(.staleProposal(epoch: number))
    case .application: return
    }
  }

  // MARK: PublicMessage

  private mutating func process(
    _ message: PublicMessage, at unixTime: UInt64
  ) throws(MLSError) -> ProcessedMessage {
    let content = message.content
    guard content.groupID == groupID else { throw .message(.wrongGroup) }
    if case .application = content.content { throw .message(.publicApplicationData) }
    try checkEpoch(content.epoch, content.content.type)
    if case .member = content.sender {
      try Framing.checkMembership(
        message, context: epoch.contextBytes, membershipKey: epoch.secrets.membershipKey, crypto: crypto)
    }
    let authenticated = message.authenticatedContent
    try Framing.verify(
      authenticated, context: epoch.contextBytes, key: try senderKey(content), crypto: crypto)
    return try process(authenticated, at: unixTime)
  }

  /// Verifies a message of this epoch, RFC 9420 §6.1.
  private func senderKey(_ content: FramedContent) throws(MLSError) -> [UInt8] {
    switch (content.sender, content.content) {
    case (.member(let leaf), _): return try epoch.signatureKey(leaf)
    case (.external(let index), .proposal):
      let senders: [ExternalSender]
      do { senders = try epoch.context.extensions.externalSenders() } catch { throw .malformed(error) }
      guard index < senders.count else { throw .message(.unknownSender) }
      return senders[Int(index)].signatureKey
    case (.newMemberProposal, .proposal(.add(let keyPackage))): return keyPackage.leafNode.signatureKey
    case (.newMemberCommit, .commit(let commit)):
      guard let path = commit.path else { throw .commit(.pathMissing) }
      return path.leafNode.signatureKey
    default: throw .message(.wrongSenderType)
    }
  }

  // MARK: PrivateMessage

  private mutating func process(
    _ message: PrivateMessage, at unixTime: UInt64
  ) throws(MLSError) -> ProcessedMessage {
    guard message.groupID == groupID else { throw .message(.wrongGroup) }
    try checkEpoch(message.epoch, message.contentType)
    guard message.epoch == epochNumber else { return try processPast(message) }
    let sender = try epoch.keys.sender(of: message, crypto: crypto)
    guard sender.leaf != ownLeaf else {
      // Our own keys are gone, so an echo cannot be read; nor need it be.
      guard message.contentType != .commit else { throw .commit(.ownCommitNotPending) }
      return .own
    }
    let opened = try epoch.keys.decrypt(
      message, from: sender, limits: client.configuration.ratchetLimits, crypto: crypto)
    let key = try epoch.signatureKey(sender.leaf)
    try Framing.verify(opened.message, context: epoch.contextBytes, key: key, crypto: crypto)
    if message.contentType == .commit {
      // Erased with the epoch: a commit that lacks a proposal must be readable again once it came.
      return try process(opened.message, at: unixTime)
    }
    let result = try process(opened.message, at: unixTime)
    epoch.keys.accept(opened)
    return result
  }

  private mutating func processPast(_ message: PrivateMessage) throws(MLSError) -> ProcessedMessage {
    guard let place = past.firstIndex(where: { $0.number == message.epoch }) else {
      throw .message(.staleMessage(epoch: message.epoch))
    }
    let sender = try past[place].keys.sender(of: message, crypto: crypto)
    guard sender.leaf != ownLeaf else { return .own }
    let opened = try past[place].keys.decrypt(
      message, from: sender, limits: client.configuration.ratchetLimits, crypto: crypto)
    guard let leaf = past[place].tree[sender.leaf] else { throw .message(.unknownSender) }
    try Framing.verify(
      opened.message, context: past[place].contextBytes, key: leaf.signatureKey, crypto: crypto)
    past[place].keys.accept(opened)
    return try application(opened.message.content)
  }

  // MARK: Content

  private func application(_ content: FramedContent) throws(MLSError) -> ProcessedMessage {
    guard case .application(let data) = content.content, case .member(let sender) = content.sender else {
      throw .message(.wrongSenderType)
    }
    return .application(
      ApplicationMessage(
        sender: sender, epoch: content.epoch, data: data, authenticatedData: content.authenticatedData))
  }

  /// A message of this epoch whose signature verified.
  private mutating func process(
    _ message: AuthenticatedContent, at unixTime: UInt64
  ) throws(MLSError) -> ProcessedMessage {
    switch message.content.content {
    case .application: return try application(message.content)
    case .proposal(let proposal):
      let sender = message.content.sender
      if sender == .member(ownLeaf) { return .own }
      try check(proposal, from: sender)
      let reference = crypto.reference(to: message)
      try proposals.insert(
        SentProposal(proposal: proposal, sender: sender), reference,
        limit: client.configuration.maximumPendingProposals)
      return .proposal(proposal, reference: reference, sender: sender)
    case .commit(let commit): return try process(commit, message, at: unixTime)
    }
  }

  /// The rules a proposal can break by itself: one that no commit could hold is not kept.
  private func check(_ proposal: Proposal, from sender: Sender) throws(MLSError) {
    try ProposalRules.check(proposal.type, from: sender)
    let extensions = epoch.context.extensions
    switch proposal {
    case .add(let keyPackage): try rules(extensions).check(keyPackage)
    case .update(let leaf):
      guard case .member(let index) = sender else { throw .proposals(.notAllowedForSender(.update)) }
      guard case .update = leaf.source else { throw .leafNode(.wrongSource) }
      try rules(extensions).check(leaf, at: index)
    case .remove(let leaf):
      guard epoch.tree[leaf] != nil else { throw .proposals(.removesNobody(leaf)) }
    case .groupContextExtensions(let new):
      guard !new.hasDuplicates else { throw .proposals(.duplicateExtension) }
      _ = try rules(new)
    case .preSharedKey, .reInit, .externalInit: break
    }
  }

  private func rules(_ extensions: [Extension]) throws(MLSError) -> LeafValidation {
    try LeafValidation(
      crypto: crypto, policy: client.configuration.credentialPolicy, groupID: groupID,
      extensions: extensions)
  }

  // MARK: Commit

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
  private mutating func process(
    _ commit: Commit, _ message: AuthenticatedContent, at unixTime: UInt64
  ) throws(MLSError) -> ProcessedMessage {
    let sender = message.content.sender
    if sender == .member(ownLeaf) { throw .commit(.ownCommitNotPending) }
    let list = try resolve(commit, from: sender)
    try ProposalRules.check(
      list, committer: sender, hashByteCount: crypto.hashByteCount, version: epoch.context.version)
    guard commit.path != nil || !ProposalRules.needPath(list) else { throw .commit(.pathMissing) }
    let configuration = client.configuration
    var applied = try AppliedProposals(
      list, to: epoch, crypto: crypto, policy: configuration.credentialPolicy
    ) { leaf throws(MLSError) in
      try LeafValidation.checkLifetime(
        leaf, at: unixTime, tolerance: configuration.lifetimeToleranceSeconds)
    }
    let committer = try placeCommitter(sender, commit, in: &applied)

    var next = epoch.context
    next.epoch += 1
    next.extensions = applied.extensions
    let steps = try mergePath(commit.path, from: committer, into: &applied, &next)
    if applied.removed.contains(ownLeaf) {
      let effect = effect(of: applied, next, committer: committer, hasPath: commit.path != nil)
      wipe()
      return .removed(effect)
    }

    var privateKeys = epoch.privateKeys
    if applied.updated.contains(ownLeaf), let leaf = applied.tree[ownLeaf] {
      privateKeys[NodeIndex(ownLeaf)] = proposals.updateKeys[leaf.encryptionKey]
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
    guard [UInt8](schedule.secrets.authenticator.span) != epochAuthenticator else {
      throw .commit(.epochDidNotChange)
    }
    let effect = effect(of: applied, next, committer: committer, hasPath: commit.path != nil)
    enter(
      StagedEpoch(
        epoch: EpochState(
          context: next, tree: applied.tree, ownLeaf: ownLeaf, privateKeys: privateKeys,
          secrets: schedule.secrets, confirmationTag: tag, crypto: crypto), effect: effect),
      at: unixTime)
    return .commit(effect)
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
    _ path: UpdatePath?, from committer: LeafIndex, into applied: inout AppliedProposals,
    _ next: inout GroupContext
  ) throws(MLSError) -> [RatchetTree.PathStep] {
    guard let path else { return [] }
    guard path.leafNode.encryptionKey != epoch.tree[committer]?.encryptionKey else {
      throw .leafNode(.encryptionKeyNotChanged)
    }
    guard case .commit = path.leafNode.source else { throw .leafNode(.wrongSource) }
    try applied.leaves.check(path.leafNode, at: committer)
    let added = applied.addedNodes
    let (steps, hash) = try applied.withTree { tree throws(MLSError) in
      let steps = try TreeKEM.merge(path, from: committer, into: &tree, added: added)
      return (steps, tree.rootHash())
    }
    try applied.leaves.checkAgainstMembers(path.leafNode, applied.tree.index)
    next.treeHash = hash
    return steps
  }

  /// The last epoch's init secret, or for an external commit the one it sends, RFC 9420 §8.3.
  private func initSecret(_ applied: AppliedProposals) throws(MLSError) -> Secret {
    guard let kemOutput = applied.externalInit else { return epoch.secrets.initSecret }
    let keys = try crypto.deriveKeyPair(epoch.secrets.external)
    return try crypto.receiveExport(
      kemOutput, privateKey: keys.privateKey, label: "MLS 1.0 external init secret")
  }
}
