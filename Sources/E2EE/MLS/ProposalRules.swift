import PalbeMLSMessages

/// A proposal and who made it.
struct SentProposal: Sendable {
  let proposal: Proposal
  let sender: Sender
}

/// The rules of RFC 9420 §12.2 that need no tree: which proposals a commit may hold together.
enum ProposalRules {
  /// RFC 9420 §12.1.8: who may propose what. An external committer's own are checked with its commit.
  static func check(_ type: ProposalType, from sender: Sender) throws(MLSError) {
    let allowed: Bool
    switch sender {
    case .member: allowed = type != .externalInit
    case .external: allowed = type != .update && type != .externalInit
    case .newMemberProposal: allowed = type == .add
    case .newMemberCommit: allowed = true
    }
    guard allowed else {
      throw type == .externalInit
        ? .proposals(.externalInitByMember) : .proposals(.notAllowedForSender(type))
    }
  }

  /// The list as a whole.
  static func check(
    _ list: [SentProposal], committer: Sender, hashByteCount: Int, version: ProtocolVersion
  ) throws(MLSError) {
    for item in list { try check(item.proposal.type, from: item.sender) }
    try checkPreSharedKeys(list, nonceByteCount: hashByteCount)
    if case .member(let leaf) = committer {
      try checkMemberCommit(list, committer: leaf, version: version)
    } else {
      try checkExternalCommit(list)
    }
  }

  private static func checkPreSharedKeys(_ list: [SentProposal], nonceByteCount: Int) throws(MLSError) {
    var seen: Set<PreSharedKeyID> = []
    for case .preSharedKey(let id) in list.map(\.proposal) {
      if case .resumption(let usage, _, _) = id.source, usage != .application {
        throw .proposals(.wrongPreSharedKeyUsage)
      }
      guard id.nonce.count == nonceByteCount else { throw .proposals(.wrongPreSharedKeyNonceLength) }
      guard seen.insert(id).inserted else { throw .proposals(.duplicatePreSharedKey) }
    }
  }

  private static func checkMemberCommit(
    _ list: [SentProposal], committer: LeafIndex, version: ProtocolVersion
  ) throws(MLSError) {
    var changed: Set<LeafIndex> = []
    var extensionLists = 0
    for item in list {
      switch item.proposal {
      case .update:
        guard case .member(let leaf) = item.sender else {
          throw .proposals(.notAllowedForSender(.update))
        }
        guard leaf != committer else { throw .proposals(.updateByCommitter) }
        guard changed.insert(leaf).inserted else { throw .proposals(.severalForLeaf(leaf)) }
      case .remove(let leaf):
        guard leaf != committer else { throw .proposals(.removesCommitter) }
        guard changed.insert(leaf).inserted else { throw .proposals(.severalForLeaf(leaf)) }
      case .groupContextExtensions(let extensions):
        extensionLists += 1
        guard extensionLists == 1 else { throw .proposals(.severalGroupContextExtensions) }
        guard !extensions.hasDuplicates else { throw .proposals(.duplicateExtension) }
      case .reInit(let parameters):
        guard list.count == 1 else { throw .proposals(.reInitWithOthers) }
        guard parameters.version.rawValue >= version.rawValue else {
          throw .proposals(.reInitVersionTooLow)
        }
      case .externalInit: throw .proposals(.externalInitByMember)
      case .add, .preSharedKey: break
      }
    }
  }

  private static func checkExternalCommit(_ list: [SentProposal]) throws(MLSError) {
    var inits = 0
    var removes = 0
    for item in list {
      switch item.proposal {
      case .externalInit: inits += 1
      case .remove: removes += 1
      case .preSharedKey: break
      default: throw .proposals(.notAllowedInExternalCommit(item.proposal.type))
      }
    }
    guard inits == 1 else { throw .proposals(.externalInitCount(inits)) }
    guard removes <= 1 else { throw .proposals(.notAllowedInExternalCommit(.remove)) }
  }

  /// RFC 9420 §12.4: a path may be left out only if all proposals are Adds, pre-shared keys or a ReInit.
  static func needPath(_ list: [SentProposal]) -> Bool {
    list.isEmpty
      || list.contains {
        switch $0.proposal {
        case .update, .remove, .externalInit, .groupContextExtensions: true
        case .add, .preSharedKey, .reInit: false
        }
      }
  }
}
