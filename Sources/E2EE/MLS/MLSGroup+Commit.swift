public import PalbeMLSMessages
public import PalbeUnits
import PalbeWire

extension MLSGroup {
  /// Adds clients. With a path, unless `path` is false: then the commit is shorter and renews no keys.
  ///
  /// `unixTime` must lie in every key package's lifetime. Throws `keyPackage`, `leafNode`, `proposals`, `state`.
  public mutating func add(
    _ keyPackages: [KeyPackage], path: Bool = true, at unixTime: UInt64, using random: inout RandomSource
  ) throws(MLSError) -> CommitBundle {
    guard !keyPackages.isEmpty else { throw .state(.nothingToDo) }
    return try commit(keyPackages.map(Proposal.add), path: path, at: unixTime, using: &random)
  }

  /// Removes members, who learn nothing of the next epoch.
  public mutating func remove(
    _ members: [LeafIndex], at unixTime: UInt64, using random: inout RandomSource
  ) throws(MLSError) -> CommitBundle {
    guard !members.isEmpty else { throw .state(.nothingToDo) }
    return try commit(members.map(Proposal.remove), at: unixTime, using: &random)
  }

  /// Commits `list` after all proposals that wait, and renews our keys where `path` is true or RFC 9420 §12.4 asks
  /// for it. An empty list with nothing waiting is an update of our own keys.
  ///
  /// `newClient` gives our leaf another signing key, credential and capabilities, with a path; this commit is still
  /// signed with the old key, its Welcome with the new one. The group speaks for `newClient` once it is merged.
  ///
  /// The commit stays pending until `mergePendingCommit` or `clearPendingCommit`; while one is, this throws
  /// `state(.commitPending)`, unless `replacingPending`: then the new commit takes its place, or it stays when this
  /// throws. Proposals of our own that a committer may not commit itself (its Update, its removal) are left out.
  public mutating func commit(
    _ list: [Proposal] = [], path: Bool = true, as newClient: MLSClient? = nil,
    replacingPending: Bool = false,
    authenticatedData: [UInt8] = [], at unixTime: UInt64, using random: inout RandomSource
  ) throws(MLSError) -> CommitBundle {
    try commit(
      list, path: path, as: newClient, replacingPending: replacingPending, continuing: nil,
      authenticatedData: authenticatedData, at: unixTime, using: &random)
  }

  /// `continuing` is what the first commit of a group that continues another may also name.
  mutating func commit(
    _ list: [Proposal], path: Bool, as newClient: MLSClient? = nil, replacingPending: Bool = false,
    continuing: ResumptionUsage?, authenticatedData: [UInt8] = [], at unixTime: UInt64,
    using random: inout RandomSource
  ) throws(MLSError) -> CommitBundle {
    try requireActive()
    guard pending == nil || replacingPending else { throw .state(.commitPending) }
    guard newClient.map({ $0.cipherSuite == crypto.suite }) ?? true else {
      throw .state(.clientOfOtherSuite)
    }
    let committer = Sender.member(ownLeaf)
    let ours = list.map { SentProposal(proposal: $0, sender: committer) }
    var waiting = committable(besides: list)
    if !waiting.isEmpty {
      // Ours must be right by themselves, so that an error is about them.
      if !ours.isEmpty { _ = try apply(ours, continuing, at: unixTime) }
      waiting = compatible(waiting[...], after: [], with: ours, at: unixTime)
    }
    let sent = waiting.map(\.sent) + ours
    var applied = try apply(sent, continuing, at: unixTime)

    var next = try epoch.context.following()
    next.extensions = applied.extensions
    var created: TreeKEM.Created?
    let declared = client.configuration.applicationProposals
    if path || newClient != nil || ProposalRules.needPath(sent, declared: declared) {
      created = try makePath(&applied, next, as: newClient, using: &random)
    }

    let format: WireFormat =
      client.configuration.handshakeFormat == .publicMessage ? .publicMessage : .privateMessage
    let commit = Commit(
      proposals: waiting.map { .reference($0.reference) } + list.map { .proposal($0) },
      path: created?.path)
    let content = FramedContent(
      groupID: groupID, epoch: epochNumber, sender: committer, authenticatedData: authenticatedData,
      content: .commit(commit))
    let signature = try Framing.sign(
      content, as: format, context: epoch.contextBytes, key: client.signatureKey, crypto: crypto)
    var message = AuthenticatedContent(
      wireFormat: format, content: content, authentication: ContentAuthentication(signature: signature))

    let schedule = try advance(
      &next, applied: &applied, by: message, commitSecret: created?.commitSecret,
      initSecret: epoch.secrets.initSecret)
    let tag = crypto.mac(next.confirmedTranscriptHash, key: schedule.secrets.confirmationKey)
    message.authentication.confirmationTag = tag

    var privateKeys = epoch.privateKeys
    if let created { privateKeys.merge(created.privateKeys) { $1 } }
    let staged = StagedEpoch(
      epoch: EpochState(
        context: next, tree: applied.tree, ownLeaf: ownLeaf, privateKeys: privateKeys,
        secrets: schedule.secrets, confirmationTag: tag, crypto: crypto),
      effect: effect(of: applied, next, committer: ownLeaf, hasPath: created != nil),
      client: newClient)
    let welcome =
      applied.added.isEmpty
      ? nil
      : try makeWelcome(
        applied, staged.epoch, schedule, created?.pathSecrets ?? [:], signer: newClient ?? client,
        using: &random)
    let outgoing = try protect(message, using: &random)
    pending = PendingCommit(message: outgoing, staged: staged)
    return CommitBundle(
      commit: outgoing, welcome: welcome.map(MLSMessage.welcome),
      ratchetTree: welcome == nil || client.configuration.ratchetTreeInWelcome ? nil : applied.tree.wire,
      effect: staged.effect)
  }

  /// Checks and applies a list as a committer.
  private func apply(
    _ sent: [SentProposal], _ continuing: ResumptionUsage? = nil, at unixTime: UInt64
  ) throws(MLSError) -> AppliedProposals {
    let configuration = client.configuration
    try ProposalRules.check(
      sent, committer: .member(ownLeaf), hashByteCount: crypto.hashByteCount,
      version: epoch.context.version, declared: configuration.applicationProposals,
      continuing: continuing)
    let applied = try AppliedProposals(
      sent, to: epoch, crypto: crypto, policy: configuration.credentialPolicy
    ) { leaf throws(MLSError) in
      try LeafValidation.checkLifetime(
        leaf, at: unixTime, maximum: configuration.maximumLifetimeSeconds)
    }
    _ = try lookUp(applied.preSharedKeys)
    return applied
  }

  /// Those of `candidates` that can be committed after `kept` and with `ours`: a member's bad proposal must not
  /// keep the group from changing. Halves the list, so b bad ones among n cost b log n attempts.
  private func compatible(
    _ candidates: ArraySlice<ProposalQueue.Entry>, after kept: [ProposalQueue.Entry],
    with ours: [SentProposal], at unixTime: UInt64
  ) -> [ProposalQueue.Entry] {
    let all = kept + candidates
    if candidates.isEmpty || (try? apply(all.map(\.sent) + ours, at: unixTime)) != nil { return all }
    if candidates.count == 1 { return kept }
    let middle = candidates.startIndex + candidates.count / 2
    let first = compatible(candidates[..<middle], after: kept, with: ours, at: unixTime)
    return compatible(candidates[middle...], after: first, with: ours, at: unixTime)
  }

  /// The waiting proposals that we may commit together with `list`: of several for one leaf the first Remove, else
  /// the last Update (RFC 9420 §12.2); none that concern our own leaf; a ReInit only alone.
  private func committable(besides list: [Proposal]) -> [ProposalQueue.Entry] {
    var chosen: [LeafIndex: ProposalRef] = [:]
    var removed: Set<LeafIndex> = [ownLeaf]
    for case .remove(let leaf) in list { removed.insert(leaf) }
    for entry in proposals.all {
      if case .remove(let leaf) = entry.sent.proposal, removed.insert(leaf).inserted {
        chosen[leaf] = entry.reference
      }
    }
    for entry in proposals.all {
      if case .update = entry.sent.proposal, case .member(let leaf) = entry.sent.sender,
        !removed.contains(leaf)
      {
        chosen[leaf] = entry.reference
      }
    }
    var extensionsSeen = list.contains { $0.type == .groupContextExtensions }
    let alone = proposals.all.count == 1 && list.isEmpty
    return proposals.all.filter { entry in
      switch entry.sent.proposal {
      case .remove(let leaf): return chosen[leaf] == entry.reference
      case .update:
        guard case .member(let leaf) = entry.sent.sender else { return false }
        return chosen[leaf] == entry.reference
      case .groupContextExtensions:
        defer { extensionsSeen = true }
        return !extensionsSeen
      case .reInit: return alone
      case .externalInit: return false
      case .add, .preSharedKey, .application: return true
      }
    }
  }

  private func makePath(
    _ applied: inout AppliedProposals, _ next: GroupContext, as newClient: MLSClient?,
    using random: inout RandomSource
  ) throws(MLSError) -> TreeKEM.Created {
    guard let old = epoch.tree[ownLeaf] else { throw .tree(.noMember(ownLeaf)) }
    var leaf = old
    if let newClient { newClient.describe(in: &leaf) }
    let template = TreeKEM.LeafTemplate(
      leaf: leaf, signatureKey: (newClient ?? client).signatureKey, groupID: groupID)
    let added = applied.addedNodes
    let own = ownLeaf
    let created = try applied.withTree { tree throws(MLSError) in
      try TreeKEM.create(in: &tree, at: own, template, context: next, added: added, using: &random)
    }
    if newClient != nil {
      // What the others would refuse is not sent.
      try applied.leaves.check(created.path.leafNode, at: own, as: .replacement(of: Member(own, old)))
      try applied.leaves.checkAgainstMembers(created.path.leafNode, applied.tree.index)
    }
    return created
  }

  /// Completes the next context and runs the key schedule. `commit` needs its signature only.
  func advance(
    _ next: inout GroupContext, applied: inout AppliedProposals, by commit: AuthenticatedContent,
    commitSecret: Secret?, initSecret: Secret
  ) throws(MLSError) -> KeySchedule {
    next.treeHash = try applied.withTree { tree throws(MLSError) in tree.rootHash() }
    next.confirmedTranscriptHash = Transcript.confirmed(
      interimBefore: epoch.interimTranscriptHash, commit: commit, crypto: crypto)
    let keys = try lookUp(applied.preSharedKeys)
    return KeySchedule(
      initSecret: initSecret, commitSecret: commitSecret ?? .zeros(crypto.hashByteCount),
      pskSecret: KeySchedule.pskSecret(keys, crypto: crypto), context: next.encoded(), crypto: crypto)
  }

  func effect(
    of applied: AppliedProposals, _ next: GroupContext, committer: LeafIndex, hasPath: Bool
  ) -> CommitEffect {
    CommitEffect(
      epoch: next.epoch, committer: committer, added: applied.added.map(\.leaf), removed: applied.removed,
      updated: applied.updated, hasPath: hasPath, reInit: applied.reInit,
      applicationProposals: applied.applicationProposals)
  }

  private func makeWelcome(
    _ applied: AppliedProposals, _ next: EpochState, _ schedule: KeySchedule,
    _ pathSecrets: [NodeIndex: Secret], signer: MLSClient, using random: inout RandomSource
  ) throws(MLSError) -> Welcome {
    var extensions: [Extension] = []
    if client.configuration.ratchetTreeInWelcome {
      extensions.append(Extension(type: .ratchetTree, data: next.tree.wire.encoded()))
    }
    let groupInfo = try makeGroupInfo(next, extensions, by: signer)
    let key = KeySchedule.welcomeKey(schedule.welcomeSecret, crypto: crypto)
    let encryptedGroupInfo = try crypto.seal(
      groupInfo.encoded(), key: key.key, nonce: [UInt8](key.nonce.span), authenticating: [])

    let path = next.tree.size.directPath(of: ownLeaf)
    let encryption = crypto.encryption(label: "Welcome", context: encryptedGroupInfo)
    var secrets: [EncryptedGroupSecrets] = []
    for (leaf, keyPackage) in applied.added {
      let ancestor = path.first { $0.isAncestor(of: leaf) }
      let plaintext = GroupSecrets(
        joinerSecret: schedule.joinerSecret, pathSecret: ancestor.flatMap { pathSecrets[$0] },
        preSharedKeys: applied.preSharedKeys
      ).encoded()
      secrets.append(
        EncryptedGroupSecrets(
          newMember: crypto.reference(to: keyPackage),
          encryptedGroupSecrets: try crypto.encrypt(
            plaintext, to: keyPackage.initKey, encryption, using: &random))
      )
    }
    return Welcome(
      cipherSuite: crypto.suite, secrets: secrets, encryptedGroupInfo: encryptedGroupInfo)
  }

  /// Frames a handshake or application message of ours in this epoch.
  mutating func protect(
    _ message: AuthenticatedContent, using random: inout RandomSource
  ) throws(MLSError) -> MLSMessage {
    if message.wireFormat == .publicMessage {
      return .publicMessage(
        Framing.publicMessage(
          message, context: epoch.contextBytes, membershipKey: epoch.secrets.membershipKey,
          crypto: crypto))
    }
    return .privateMessage(
      try epoch.keys.encrypt(
        message, from: ownLeaf, padding: client.configuration.padding, crypto: crypto, using: &random))
  }
}
