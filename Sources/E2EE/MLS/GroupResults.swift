public import PalbeMLSMessages

/// A member as its leaf says.
public struct Member: Sendable, Hashable {
  /// Its leaf, which names it in this group.
  public let leaf: LeafIndex
  /// Who it claims to be; the group's policy accepted it.
  public let credential: Credential
  /// Verifies its messages.
  public let signatureKey: [UInt8]

  init(_ leaf: LeafIndex, _ node: LeafNode) {
    self.leaf = leaf
    credential = node.credential
    signatureKey = node.signatureKey
  }
}

/// What a commit of ours gives: send `commit` to the group, then `mergePendingCommit`; then send `welcome`.
public struct CommitBundle: Sendable {
  /// For the members.
  public let commit: MLSMessage
  /// For the added clients, nil when none was added.
  public let welcome: MLSMessage?
  /// For the added clients, where the Welcome does not carry it.
  public let ratchetTree: RatchetTreeExtension?
  /// What the commit does.
  public let effect: CommitEffect
}

/// What a commit did.
public struct CommitEffect: Sendable, Hashable {
  /// The epoch it started.
  public let epoch: UInt64
  /// Who committed. After an external commit this is the new member, which `added` does not name.
  public let committer: LeafIndex
  /// Members added by proposals.
  public let added: [LeafIndex]
  /// Members who left.
  public let removed: [LeafIndex]
  /// Members whose leaf was replaced by their own Update.
  public let updated: [LeafIndex]
  /// True when the committer replaced its keys.
  public let hasPath: Bool
  /// Set when the group is closed in favour of a new one.
  public let reInit: ReInit?
  /// Proposals of the application's own, in order.
  public let applicationProposals: [ApplicationProposal]

  init(
    epoch: UInt64, committer: LeafIndex, added: [LeafIndex], removed: [LeafIndex], updated: [LeafIndex],
    hasPath: Bool, reInit: ReInit?, applicationProposals: [ApplicationProposal] = []
  ) {
    self.epoch = epoch
    self.committer = committer
    self.added = added
    self.removed = removed
    self.updated = updated
    self.hasPath = hasPath
    self.reInit = reInit
    self.applicationProposals = applicationProposals
  }
}

/// Application data that proved genuine.
public struct ApplicationMessage: Sendable, Hashable {
  /// Who sent it.
  public let sender: LeafIndex
  /// The epoch it was sent in.
  public let epoch: UInt64
  /// What the sender passed to `encrypt`.
  public let data: [UInt8]
  /// Authenticated, never encrypted.
  public let authenticatedData: [UInt8]
}

/// What a message was.
public enum ProcessedMessage: Sendable, Hashable {
  /// Application data.
  case application(ApplicationMessage)
  /// A proposal, which now waits for a commit.
  case proposal(Proposal, reference: ProposalRef, sender: Sender)
  /// A commit; the group is in the next epoch.
  case commit(CommitEffect)
  /// Our own commit came back and was merged.
  case ownCommit(CommitEffect)
  /// A commit removed this client: the keys are wiped and the group is of no more use.
  case removed(CommitEffect)
  /// Another message of our own came back.
  case own
  /// A message that was processed before.
  case duplicate
}
