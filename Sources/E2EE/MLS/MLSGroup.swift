public import PalbeCrypto
public import PalbeMLSMessages
public import PalbeUnits
import PalbeWire

/// One client's membership in a group, RFC 9420.
///
/// It has one owner and cannot be copied: two copies would use the same keys twice. Every operation either succeeds
/// or leaves the group as it was.
///
///     var alices = try MLSGroup.create(groupID: id, client: alice, lifetime: lifetime, using: &random)
///     let bundle = try alices.add([bobsKeyPackage], at: now, using: &random)
///     try alices.mergePendingCommit(at: now)                      // once the server took bundle.commit
///     var bobs = try MLSGroup.join(bundle.welcome!, keyPackages: [bobsBundle], client: bob)
///     let key = try bobs.exportSecret(label: "palbe call media key", context: [], length: 32)
///
/// A commit waits as pending until it is merged or cleared: a server may take another member's first.
public struct MLSGroup: ~Copyable, Sendable {
  let crypto: SuiteCrypto
  let founder: MLSClient
  /// All that changes, as one value: a snapshot of it costs no copy until the group changes.
  var state: GroupState

  init(client: MLSClient, epoch: EpochState) { self.init(client: client, state: GroupState(epoch)) }

  init(client: MLSClient, state: GroupState) {
    crypto = client.crypto
    founder = client
    self.state = state
  }

  /// Who we are in the group: another than it was made for once our signing key was replaced.
  public var client: MLSClient { state.newClient ?? founder }

  /// A new group with one member, in epoch 0. `lifetime` is that of the creator's leaf.
  ///
  /// Throws `leafNode` when `extensions` require what the client does not support.
  public static func create(
    groupID: [UInt8], client: MLSClient, lifetime: Lifetime, extensions: [Extension] = [],
    using random: inout RandomSource
  ) throws(MLSError) -> MLSGroup {
    let crypto = client.crypto
    let (leaf, key) = try client.makeLeaf(source: .keyPackage(lifetime), using: &random)
    var tree = RatchetTree(leaf, crypto: crypto)
    let rules = try LeafValidation(
      crypto: crypto, policy: client.configuration.credentialPolicy, groupID: groupID,
      extensions: extensions)
    try rules.check(leaf, at: LeafIndex(0))
    try rules.checkExternalSenders()
    let context = GroupContext(
      cipherSuite: crypto.suite, groupID: groupID, epoch: 0, treeHash: tree.rootHash(),
      confirmedTranscriptHash: [], extensions: extensions)
    let secrets = EpochSecrets(
      epochSecret: Secret(byteCount: crypto.hashByteCount, using: &random), crypto: crypto)
    return MLSGroup(
      client: client,
      epoch: EpochState(
        context: context, tree: tree, ownLeaf: LeafIndex(0), privateKeys: [NodeIndex(LeafIndex(0)): key],
        secrets: secrets, confirmationTag: crypto.mac([], key: secrets.confirmationKey), crypto: crypto))
  }

  // MARK: Reading

  /// The group's identifier.
  public var groupID: [UInt8] { epoch.context.groupID }
  /// Counts the commits, from 0.
  public var epochNumber: UInt64 { epoch.context.epoch }
  /// What all members agree on.
  public var context: GroupContext { epoch.context }
  /// Our own leaf.
  public var ownLeaf: LeafIndex { epoch.ownLeaf }
  /// The members, by leaf.
  public var members: [Member] {
    epoch.tree.members.compactMap { index in
      epoch.tree[index].map { Member(index, $0) }
    }
  }
  /// False once this client was removed or the group was closed.
  public var isActive: Bool { if case .member = status { true } else { false } }
  /// True while a commit of ours waits.
  public var hasPendingCommit: Bool { pending != nil }
  /// Proposals that wait for a commit.
  public var pendingProposals: [Proposal] { proposals.forOwnCommits.map(\.sent.proposal) }

  /// The same at all members of an epoch and at nobody else, RFC 9420 §8.7. Not secret to members. Of no meaning once
  /// this client was removed (`isActive` is false).
  public var epochAuthenticator: [UInt8] { [UInt8](epoch.secrets.authenticator.span) }

  /// The public tree, for a Welcome that does not carry it.
  public var ratchetTree: RatchetTreeExtension { epoch.tree.wire }

  /// A secret of this epoch for a purpose of the application, RFC 9420 §8.5.
  ///
  /// `length` is 0 to 255 hashes: 8,160 bytes in suites of SHA-256. Throws `state(.removed)` after a removal,
  /// `state(.exportTooLong)`, `state(.exporterWiped)`.
  public func exportSecret(
    label: String, context: [UInt8], length: Int
  ) throws(MLSError) -> SymmetricKey {
    try exportSecret(label: Array(label.utf8), context: context, length: length)
  }

  /// The same for a label of any bytes, UTF-8 or not.
  public func exportSecret(
    label: [UInt8], context: [UInt8], length: Int
  ) throws(MLSError) -> SymmetricKey {
    try requireActive()
    return try exportSecret(of: epoch, label: label, context: context, length: length)
  }

  func exportSecret(
    of epoch: EpochState, label: [UInt8], context: [UInt8], length: Int
  ) throws(MLSError) -> SymmetricKey {
    guard (0...255 * crypto.hashByteCount).contains(length) else { throw .state(.exportTooLong) }
    guard
      let secret = epoch.secrets.export(
        label: label, context: context, byteCount: length, crypto: crypto)
    else { throw .state(.exporterWiped) }
    return secret.key.copy()
  }

  /// Wipes the exporter secret of this epoch, once all that is needed of it was exported: who takes the device later
  /// cannot export it again. `exportSecret` throws `state(.exporterWiped)` until the next epoch.
  public mutating func wipeExporterSecret() { epoch.secrets.wipeExporter() }

  /// True once the exporter secret of this epoch was wiped.
  public var isExporterWiped: Bool { epoch.secrets.exporter == nil }

  /// Makes a pre-shared key known, so that commits can name it.
  public mutating func register(_ key: PreSharedKey) { preSharedKeys[key.id] = key.secret }

  func requireActive() throws(MLSError) {
    switch status {
    case .member: break
    case .removed: throw .state(.removed)
    case .reInitialised: throw .state(.reInitialised)
    }
  }

  // MARK: Moving on

  /// Moves to the epoch of our own pending commit. Throws `state(.noCommitPending)`.
  ///
  /// `unixTime` is when the old epoch ended, for how long its messages stay readable.
  @discardableResult
  public mutating func mergePendingCommit(at unixTime: UInt64) throws(MLSError) -> CommitEffect {
    try requireActive()
    guard let pending else { throw .state(.noCommitPending) }
    enter(pending.staged, at: unixTime)
    remember(pending.message, .own)
    return pending.staged.effect
  }

  /// Forgets our own pending commit, for instance because the server refused it. Always possible.
  public mutating func clearPendingCommit() { pending = nil }

  /// Leaves the proposals that wait out of our own commits. They are not forgotten before the epoch ends: another member
  /// may commit them, and their messages could not be read again.
  public mutating func clearPendingProposals() { proposals.setAllAside() }

  mutating func enter(_ staged: StagedEpoch, at unixTime: UInt64) {
    past.append(
      PastEpoch(
        id: epoch.id, contextBytes: epoch.contextBytes, tree: epoch.tree, keys: epoch.keys,
        endedAt: unixTime))
    resumptionKeys.append((epoch.context.epoch, epoch.secrets.resumption))
    epoch = staged.epoch
    pending = nil
    proposals = ProposalQueue()
    if let client = staged.client { state.newClient = client }
    if let reInit = staged.effect.reInit { status = .reInitialised(reInit) }
    dropOld(at: unixTime)
  }

  mutating func dropOld(at unixTime: UInt64) {
    let configuration = client.configuration
    past.removeAll { unixTime > $0.endedAt && unixTime - $0.endedAt > configuration.pastEpochSeconds }
    if past.count > configuration.maximumPastEpochs {
      past.removeFirst(past.count - configuration.maximumPastEpochs)
    }
    // Only where there is something to drop: a change would cost a copy of what a snapshot holds.
    let seconds = configuration.ratchetLimits.maximumSkippedSeconds
    let start = unixTime > seconds ? unixTime - seconds : 0
    if epoch.keys.hasSkipped(before: start) { epoch.keys.dropSkipped(before: start, now: unixTime) }
    for place in past.indices where past[place].keys.hasSkipped(before: start) {
      past[place].keys.dropSkipped(before: start, now: unixTime)
    }
    if resumptionKeys.count > 16 { resumptionKeys.removeFirst(resumptionKeys.count - 16) }
  }

  /// Wipes every secret of a group that this client is no longer in.
  mutating func wipe() {
    status = .removed
    past = []
    pending = nil
    proposals = ProposalQueue()
    resumptionKeys = []
    preSharedKeys = [:]
    state.resumptionSecrets = [:]
    state.seen = SeenMessages()
    let nothing = EpochSecrets(epochSecret: .zeros(crypto.hashByteCount), crypto: crypto)
    epoch = EpochState(
      context: epoch.context, tree: epoch.tree, ownLeaf: epoch.ownLeaf, privateKeys: [:],
      secrets: nothing, confirmationTag: [], crypto: crypto)
  }

  func lookUp(_ ids: [PreSharedKeyID]) throws(MLSError) -> [(id: PreSharedKeyID, key: Secret)] {
    var keys: [(id: PreSharedKeyID, key: Secret)] = []
    for id in ids {
      let key: Secret?
      switch id.source {
      case .external(let name): key = preSharedKeys[name]
      case .resumption(_, let group, let number):
        key =
          state.resumptionSecrets[GroupEpoch(groupID: group, epoch: number)]
          ?? (group == groupID ? resumptionSecret(number) : nil)
      }
      guard let key else { throw .proposals(.unknownPreSharedKey) }
      keys.append((id, key))
    }
    return keys
  }
}
