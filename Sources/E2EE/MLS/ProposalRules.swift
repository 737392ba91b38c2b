import PalbeMLSMessages

/// A proposal and who made it.
struct SentProposal: Sendable {
  let proposal: Proposal
  let sender: Sender
}

/// The rules of RFC 9420 §12.2 that need no tree: which proposals a commit may hold together.
enum ProposalRules {
  /// RFC 9420 §12.1.8: who may propose what. An external committer's own are checked with its commit.
  static func check(
    _ proposal: Proposal, from sender: Sender, declared: [ApplicationProposalType] = []
  ) throws(MLSError) {
    let type = proposal.type
    if case .application = proposal {
      guard let declaration = declared.declaration(of: type) else {
        throw .proposals(.typeNotSupported(type))
      }
      switch sender {
      case .member: return
      case .external where declaration.isForExternalSenders: return
      case .newMemberCommit: throw .proposals(.notAllowedInExternalCommit(type))
      case .external, .newMemberProposal: throw .proposals(.notAllowedForSender(type))
      }
    }
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
    _ list: [SentProposal], committer: Sender, hashByteCount: Int, version: ProtocolVersion,
    declared: [ApplicationProposalType] = [], continuing: ResumptionUsage? = nil
  ) throws(MLSError) {
    for item in list { try check(item.proposal, from: item.sender, declared: declared) }
    try checkPreSharedKeys(list, nonceByteCount: hashByteCount, continuing: continuing)
    if case .member(let leaf) = committer {
      try checkMemberCommit(list, committer: leaf, version: version)
    } else {
      try checkExternalCommit(list)
    }
  }

  /// `continuing` is the usage that the first commit of a group may also have, RFC 9420 §11.2, §11.3.
  private static func checkPreSharedKeys(
    _ list: [SentProposal], nonceByteCount: Int, continuing: ResumptionUsage?
  ) throws(MLSError) {
    var seen: Set<PreSharedKeyID> = []
    for case .preSharedKey(let id) in list.map(\.proposal) {
      if case .resumption(let usage, _, _) = id.source, usage != .application, usage != continuing {
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
      case .add, .preSharedKey, .application: break
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

  /// RFC 9420 §12.4: a path may be left out only if all proposals are Adds, pre-shared keys, a ReInit, or of types
  /// whose declaration says so.
  static func needPath(_ list: [SentProposal], declared: [ApplicationProposalType] = []) -> Bool {
    list.isEmpty
      || list.contains {
        switch $0.proposal {
        case .update, .remove, .externalInit, .groupContextExtensions: true
        case .add, .preSharedKey, .reInit: false
        case .application(let type, _): declared.declaration(of: type)?.requiresPath ?? true
        }
      }
  }
}
