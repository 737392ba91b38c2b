public import PalbeMLSMessages
public import PalbeUnits
import PalbeWire

/// A join by an external commit that no member has accepted yet.
///
/// The group comes out only with `accepted()`: until the server took the commit, another may be first, and then this
/// one is void and a new attempt needs a new GroupInfo.
public struct ExternalJoin: ~Copyable, Sendable {
  /// For the members.
  public let commit: MLSMessage
  /// What the commit does.
  public let effect: CommitEffect
  private let group: MLSGroup

  init(commit: MLSMessage, effect: CommitEffect, group: consuming MLSGroup) {
    self.commit = commit
    self.effect = effect
    self.group = group
  }

  /// The membership, once the commit was accepted.
  public consuming func accepted() -> MLSGroup { group }
}

extension MLSGroup {
  /// The public state that somebody outside needs to join by an external commit, RFC 9420 §12.4.3. It is signed, not
  /// secret, and good for this epoch.
  ///
  /// Without `ratchetTree` the tree travels beside. Throws `state` after a removal.
  public func groupInfo(ratchetTree: Bool = true) throws(MLSError) -> MLSMessage {
    try requireActive()
    return .groupInfo(try makeGroupInfo(of: epoch, ratchetTree: ratchetTree, by: client))
  }

  /// Signs a GroupInfo of an epoch.
  func makeGroupInfo(
    _ epoch: EpochState, _ extensions: [Extension], by client: MLSClient
  ) throws(MLSError) -> GroupInfo {
    var groupInfo = GroupInfo(
      context: epoch.context, extensions: extensions + client.grease.groupInfoExtensions,
      confirmationTag: epoch.confirmationTag, signer: epoch.ownLeaf)
    groupInfo.signature = try crypto.sign(
      groupInfo.toBeSigned, label: "GroupInfoTBS", key: client.signatureKey)
    return groupInfo
  }

  /// Joins by an external commit, RFC 9420 §12.4.3.2, after checking the whole tree.
  ///
  /// `groupInfo` is the message of `groupInfo(ratchetTree:)`; `ratchetTree` is needed where it does not carry the tree.
  /// The commit removes `oldLeaf`, and the leaf with this client's signature key if there is one: the leaf of a member
  /// that lost its state. All of `preSharedKeys` and `resumptionKeys` are mixed in: a resumption key of this group proves a former membership. Throws `welcome`, `tree`, `leafNode`, `malformed`.
  public static func joinExternally(
    _ message: MLSMessage, client: MLSClient, ratchetTree: RatchetTreeExtension? = nil,
    replacing oldLeaf: LeafIndex? = nil, preSharedKeys: [PreSharedKey] = [],
    resumptionKeys: [ResumptionKey] = [], authenticatedData: [UInt8] = [], using random: inout RandomSource
  ) throws(MLSError) -> ExternalJoin {
    guard case .groupInfo(let groupInfo) = message else { throw .message(.notAGroupMessage) }
    let crypto = client.crypto
    var (tree, rules) = try check(groupInfo, ratchetTree, client)
    let (kemOutput, initSecret) = try crypto.sendExport(
      to: try externalPub(groupInfo, crypto), label: "MLS 1.0 external init secret", using: &random)

    var proposals = [Proposal.externalInit(kemOutput: kemOutput)]
    let old =
      oldLeaf ?? tree.members.first { tree[$0]?.signatureKey == client.signaturePublicKey }
    var role = PresentedCredential.Role.newMember
    if let old {
      guard let node = tree[old] else { throw .proposals(.removesNobody(old)) }
      role = .replacement(of: Member(old, node))
      tree.remove(old)
      proposals.append(.remove(old))
    }
    var keys: [(id: PreSharedKeyID, key: Secret)] = []
    for key in preSharedKeys {
      let id = PreSharedKeyID(source: .external(id: key.id), nonce: random.bytes(crypto.hashByteCount))
      keys.append((id, key.secret))
      proposals.append(.preSharedKey(id))
    }
    for key in resumptionKeys {
      let id = key.id(usage: .application, nonce: random.bytes(crypto.hashByteCount))
      keys.append((id, key.secret))
      proposals.append(.preSharedKey(id))
    }

    let (leaf, _) = try client.makeLeaf(source: .update, using: &random)
    let own = try tree.add(leaf)
    var next = try groupInfo.context.following()
    let created = try TreeKEM.create(
      in: &tree, at: own,
      TreeKEM.LeafTemplate(leaf: leaf, signatureKey: client.signatureKey, groupID: next.groupID),
      context: next, added: [], using: &random)
    // What members would refuse is not sent.
    try rules.check(created.path.leafNode, at: own, as: role)
    try rules.checkAgainstMembers(created.path.leafNode, tree.index)

    let content = FramedContent(
      groupID: next.groupID, epoch: groupInfo.context.epoch, sender: .newMemberCommit,
      authenticatedData: authenticatedData,
      content: .commit(Commit(proposals: proposals.map(ProposalOrRef.proposal), path: created.path)))
    let signature = try Framing.sign(
      content, as: .publicMessage, context: groupInfo.context.encoded(), key: client.signatureKey,
      crypto: crypto)
    var authentication = ContentAuthentication(signature: signature)
    next.treeHash = tree.rootHash()
    next.confirmedTranscriptHash = Transcript.confirmed(
      interimBefore: Transcript.interim(
        confirmed: groupInfo.context.confirmedTranscriptHash, confirmationTag: groupInfo.confirmationTag,
        crypto: crypto),
      commit: AuthenticatedContent(
        wireFormat: .publicMessage, content: content, authentication: authentication), crypto: crypto)
    let schedule = KeySchedule(
      initSecret: initSecret, commitSecret: created.commitSecret,
      pskSecret: KeySchedule.pskSecret(keys, crypto: crypto), context: next.encoded(), crypto: crypto)
    let tag = crypto.mac(next.confirmedTranscriptHash, key: schedule.secrets.confirmationKey)
    authentication.confirmationTag = tag

    var group = MLSGroup(
      client: client,
      epoch: EpochState(
        context: next, tree: tree, ownLeaf: own, privateKeys: created.privateKeys,
        secrets: schedule.secrets, confirmationTag: tag, crypto: crypto))
    for key in preSharedKeys { group.register(key) }
    for key in resumptionKeys { group.register(key) }
    let commit = MLSMessage.publicMessage(
      PublicMessage(content: content, authentication: authentication, membershipTag: nil))
    group.remember(commit, .own)
    let effect = CommitEffect(
      epoch: next.epoch, committer: own, added: [], removed: old.map { [$0] } ?? [], updated: [],
      hasPath: true, reInit: nil)
    return ExternalJoin(commit: commit, effect: effect, group: group)
  }

  private static func externalPub(
    _ groupInfo: GroupInfo, _ crypto: SuiteCrypto
  ) throws(MLSError) -> [UInt8] {
    guard let data = groupInfo.extensions.data(of: .externalPub) else { throw .welcome(.externalPubMissing) }
    let key: [UInt8]
    do throws(WireError) {
      var reader = ByteReader(data.span)
      key = try reader.opaque()
      try reader.finish()
    } catch { throw .malformed(error) }
    guard crypto.isValidEncryptionKey(key) else { throw .welcome(.externalPubMissing) }
    return key
  }
}
