public import PalbeMLSMessages
public import PalbeUnits

/// A group that continues another, and what its other members need to join it.
public struct ContinuedGroup: ~Copyable, Sendable {
  /// For the others; nil when there are none.
  public let welcome: MLSMessage?
  /// For the others, where the Welcome does not carry it.
  public let ratchetTree: RatchetTreeExtension?
  private let group: MLSGroup

  init(_ bundle: CommitBundle, _ group: consuming MLSGroup) {
    welcome = bundle.welcome
    ratchetTree = bundle.ratchetTree
    self.group = group
  }

  /// The membership, in epoch 1. Read `welcome` and `ratchetTree` before: this uses the value up.
  public consuming func take() -> MLSGroup { group }
}

/// ReInit and branch, RFC 9420 §11.2 and §11.3.
///
///     try old.commit([.reInit(ReInit(groupID: id, cipherSuite: .p256AES128GCM))], …)        // one member, then all merge
///     let next = try old.reInitialise(as: newClient, with: keyPackages, …)                  // one member
///     try MLSGroup.join(welcome, …, continuing: old.resumptionKey())                        // the others
///     let part = try old.branch(groupID: id, with: keyPackages, …)                          // a group of some of them
extension MLSGroup {
  /// The ReInit that closed the group.
  public var reInit: ReInit? { if case .reInitialised(let parameters) = status { parameters } else { nil } }

  /// Founds the group that the committed ReInit asks for, with key packages of all other members.
  ///
  /// `client` is this member in the new suite. Members who found it at the same time make two: the application says
  /// which one counts. Throws `state(.notReInitialised)`, `state(.clientOfOtherSuite)`,
  /// `welcome(.wrongMembers)` unless the policy matches all members, and what `add` throws.
  public func reInitialise(
    as client: MLSClient, with keyPackages: [KeyPackage], lifetime: Lifetime, at unixTime: UInt64,
    using random: inout RandomSource
  ) throws(MLSError) -> ContinuedGroup {
    guard let reInit, let key = resumptionKey() else { throw .state(.notReInitialised) }
    guard reInit.version == .mls10 else { throw .state(.versionNotSupported(reInit.version)) }
    guard client.cipherSuite == reInit.cipherSuite else { throw .state(.clientOfOtherSuite) }
    return try Self.found(
      reInit.groupID, reInit.extensions, continuing: key, .reInit, client, keyPackages, lifetime, unixTime,
      &random)
  }

  /// Founds a group of some of the members, with the same version and suite.
  ///
  /// `extensions` are this group's by default. Throws `welcome(.wrongMembers)` when a key package is of no member.
  public func branch(
    groupID: [UInt8], with keyPackages: [KeyPackage], extensions: [Extension]? = nil, lifetime: Lifetime,
    at unixTime: UInt64, using random: inout RandomSource
  ) throws(MLSError) -> ContinuedGroup {
    try requireActive()
    guard let key = resumptionKey() else { throw .state(.removed) }
    return try Self.found(
      groupID, extensions ?? context.extensions, continuing: key, .branch, client, keyPackages, lifetime,
      unixTime, &random)
  }

  private static func found(
    _ groupID: [UInt8], _ extensions: [Extension], continuing key: ResumptionKey, _ usage: ResumptionUsage,
    _ client: MLSClient, _ keyPackages: [KeyPackage], _ lifetime: Lifetime, _ unixTime: UInt64,
    _ random: inout RandomSource
  ) throws(MLSError) -> ContinuedGroup {
    var group = try create(
      groupID: groupID, client: client, lifetime: lifetime, extensions: extensions, using: &random)
    group.register(key)
    let id = key.id(usage: usage, nonce: random.bytes(client.crypto.hashByteCount))
    let bundle = try group.commit(
      keyPackages.map(Proposal.add) + [.preSharedKey(id)], path: true, continuing: usage, at: unixTime,
      using: &random)
    try group.mergePendingCommit(at: unixTime)
    group.state.resumptionSecrets = [:]
    try checkMembers(group.members, usage, key, client.configuration.credentialPolicy)
    return ContinuedGroup(bundle, group)
  }

  /// The rules for a Welcome whose secrets name a key of usage reinit or branch.
  static func check(
    _ context: GroupContext, _ tree: RatchetTree, continues key: ResumptionKey, _ usage: ResumptionUsage,
    _ policy: any CredentialPolicy
  ) throws(MLSError) {
    guard context.epoch == 1 else {
      throw .welcome(.continuationNotInFirstEpoch(epoch: context.epoch))
    }
    if usage == .reInit {
      guard let reInit = key.reInit else { throw .welcome(.continuesWithoutReInit) }
      guard
        context.version == reInit.version, context.cipherSuite == reInit.cipherSuite,
        context.groupID == reInit.groupID, context.extensions == reInit.extensions
      else { throw .welcome(.wrongReInitParameters) }
    } else {
      guard context.version == key.version, context.cipherSuite == key.cipherSuite else {
        throw .welcome(.wrongBranchParameters)
      }
    }
    let members = tree.members.compactMap { leaf in tree[leaf].map { Member(leaf, $0) } }
    try checkMembers(members, usage, key, policy)
  }

  /// Each member is one of the old group, by the policy's word; after a ReInit nobody is missing.
  private static func checkMembers(
    _ members: [Member], _ usage: ResumptionUsage, _ key: ResumptionKey, _ policy: any CredentialPolicy
  ) throws(MLSError) {
    guard let old = key.members else { throw .welcome(.membersForgotten) }
    guard usage != .reInit || members.count == old.count else { throw .welcome(.wrongMembers) }
    let byCredential = Dictionary(grouping: old, by: \.credential)
    var taken: Set<LeafIndex> = []
    for member in members {
      func isFree(_ candidate: Member) -> Bool {
        !taken.contains(candidate.leaf) && policy.matches(member, candidate)
      }
      // Nearly always the credential is the same; only where none of those fits, all are tried.
      guard let match = byCredential[member.credential]?.first(where: isFree) ?? old.first(where: isFree)
      else { throw .welcome(.wrongMembers) }
      taken.insert(match.leaf)
    }
  }
}
