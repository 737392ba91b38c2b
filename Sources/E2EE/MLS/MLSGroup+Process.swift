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
  /// `message(.futureEpoch)` asks the caller to keep the message, in `FutureMessages`, until the commits before it are
  /// processed. What was processed before is `duplicate`, as far back as 1,024 messages. A group that a ReInit closed
  /// still reads late application messages.
  public mutating func process(
    _ message: MLSMessage, at unixTime: UInt64
  ) throws(MLSError) -> ProcessedMessage {
    if case .removed = status { throw .state(.removed) }
    dropOld(at: unixTime)
    if let pending, pending.message == message {
      enter(pending.staged, at: unixTime)
      remember(message, .own)
      return .ownCommit(pending.staged.effect)
    }
    let result: ProcessedMessage
    do throws(MLSError) {
      result =
        switch message {
        case .publicMessage(let message): try process(message, at: unixTime)
        case .privateMessage(let message): try process(message, at: unixTime)
        case .welcome, .groupInfo, .keyPackage: throw .message(.notAGroupMessage)
        }
    } catch {
      guard Self.mayBeRepeated(error),
        let origin = state.seen.origin(of: SeenMessages.digest(of: message, crypto))
      else { throw error }
      return origin == .own ? .own : .duplicate
    }
    switch result {
    case .application, .proposal, .commit: remember(message, .received)
    case .removed, .own, .ownCommit, .duplicate: break
    }
    return result
  }

  mutating func remember(_ message: MLSMessage, _ origin: SeenMessages.Origin) {
    state.seen.insert(SeenMessages.digest(of: message, crypto), origin)
  }

  /// True for the refusals that a message meets which was processed before.
  private static func mayBeRepeated(_ error: MLSError) -> Bool {
    switch error {
    case .message(.generationUsed), .message(.staleMessage), .message(.staleCommit), .message(.staleProposal):
      true
    default: false
    }
  }

  private func checkEpoch(_ number: UInt64, _ type: ContentType) throws(MLSError) {
    guard number <= epochNumber else { throw .message(.futureEpoch(epoch: number)) }
    guard number < epochNumber else {
      // After a ReInit nothing but late application messages counts.
      if type != .application { try requireActive() }
      return
    }
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
    guard message.epoch == epochNumber else { return try processPast(message, at: unixTime) }
    let sender = try epoch.keys.sender(of: message, crypto: crypto)
    guard sender.leaf != ownLeaf else {
      // Our own keys are gone, so an echo cannot be read; nor need it be.
      guard message.contentType != .commit else { throw .commit(.ownCommitNotPending) }
      try checkSent(sender, message.contentType, epoch.keys)
      return .own
    }
    let key = try epoch.signatureKey(sender.leaf)
    let opened = try epoch.keys.decrypt(
      message, from: sender, at: unixTime, limits: client.configuration.ratchetLimits, crypto: crypto)
    try Framing.verify(opened.message, context: epoch.contextBytes, key: key, crypto: crypto)
    if message.contentType == .commit {
      // A commit that lacks a proposal must be readable again once it came; one that ended the epoch must not.
      let result = try process(opened.message, at: unixTime)
      if let last = past.indices.last, past[last].number == message.epoch { past[last].keys.accept(opened) }
      return result
    }
    let result = try process(opened.message, at: unixTime)
    epoch.keys.accept(opened)
    return result
  }

  private mutating func processPast(
    _ message: PrivateMessage, at unixTime: UInt64
  ) throws(MLSError) -> ProcessedMessage {
    guard let place = past.firstIndex(where: { $0.number == message.epoch }) else {
      throw .message(.staleMessage(epoch: message.epoch))
    }
    let sender = try past[place].keys.sender(of: message, crypto: crypto)
    guard sender.leaf != ownLeaf else {
      try checkSent(sender, message.contentType, past[place].keys)
      return .own
    }
    guard let leaf = past[place].tree[sender.leaf] else { throw .message(.unknownSender) }
    let opened = try past[place].keys.decrypt(
      message, from: sender, at: unixTime, limits: client.configuration.ratchetLimits, crypto: crypto)
    try Framing.verify(
      opened.message, context: past[place].contextBytes, key: leaf.signatureKey, crypto: crypto)
    past[place].keys.accept(opened)
    return try application(opened.message.content)
  }

  /// What claims to be ours but uses a key that we have not used is forged, or was sent before this state was restored
  /// from an older copy: the next message would use that key again.
  private func checkSent(
    _ sender: MessageKeys.SenderData, _ type: ContentType, _ keys: MessageKeys
  ) throws(MLSError) {
    guard sender.generation < keys.tree.nextGeneration(sender.leaf, type) else {
      throw .message(.notSentHere(generation: sender.generation))
    }
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
      guard proposals[reference] == nil else { return .duplicate }
      try proposals.insert(
        SentProposal(proposal: proposal, sender: sender), reference,
        limit: client.configuration.maximumPendingProposals)
      return .proposal(proposal, reference: reference, sender: sender)
    case .commit(let commit): return try process(commit, message, at: unixTime)
    }
  }

  /// The rules a proposal can break by itself: one that no commit could hold is not kept.
  func check(_ proposal: Proposal, from sender: Sender) throws(MLSError) {
    try ProposalRules.check(
      proposal, from: sender, declared: client.configuration.applicationProposals)
    if case .newMemberProposal = sender, !client.configuration.acceptsJoinProposals {
      throw .proposals(.notAllowedForSender(.add))
    }
    let extensions = epoch.context.extensions
    switch proposal {
    case .add(let keyPackage): try rules(extensions).check(keyPackage)
    case .update(let leaf):
      guard case .member(let index) = sender else { throw .proposals(.notAllowedForSender(.update)) }
      guard case .update = leaf.source else { throw .leafNode(.wrongSource) }
      guard let old = epoch.tree[index] else { throw .message(.unknownSender) }
      try rules(extensions).check(leaf, at: index, as: .replacement(of: Member(index, old)))
    case .remove(let leaf):
      guard epoch.tree[leaf] != nil else { throw .proposals(.removesNobody(leaf)) }
    case .groupContextExtensions(let new):
      guard !new.hasDuplicates else { throw .proposals(.duplicateExtension) }
      try rules(new).checkExternalSenders()
    case .preSharedKey, .reInit, .externalInit, .application: break
    }
  }

  private func rules(_ extensions: [Extension]) throws(MLSError) -> LeafValidation {
    try LeafValidation(
      crypto: crypto, policy: client.configuration.credentialPolicy, groupID: groupID,
      extensions: extensions)
  }
}
