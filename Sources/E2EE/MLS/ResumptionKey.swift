public import PalbeMLSMessages
public import PalbeUnits

/// The resumption secret of an epoch, RFC 9420 §8.4 and §8.6, with what is checked of a group that it leads to: a
/// member of that epoch proves by it that it was one. Wiped when the last owner lets go.
public final class ResumptionKey: Sendable {
  /// The group.
  public let groupID: [UInt8]
  /// The epoch.
  public let epoch: UInt64
  /// The group's version.
  public let version: ProtocolVersion
  /// The group's suite.
  public let cipherSuite: CipherSuite
  /// The members of the epoch; nil where the tree of a past epoch is forgotten.
  public let members: [Member]?
  /// The ReInit that the epoch began with.
  public let reInit: ReInit?
  let secret: Secret

  init(
    _ context: GroupContext, epoch: UInt64, members: [Member]?, reInit: ReInit?, secret: Secret
  ) {
    groupID = context.groupID
    self.epoch = epoch
    version = context.version
    cipherSuite = context.cipherSuite
    self.members = members
    self.reInit = reInit
    self.secret = secret
  }

  func id(usage: ResumptionUsage, nonce: [UInt8]) -> PreSharedKeyID {
    PreSharedKeyID(source: .resumption(usage: usage, groupID: groupID, epoch: epoch), nonce: nonce)
  }
}

/// Where a join finds the resumption keys that a Welcome names: the client's other groups. An array is one.
///
///     struct Mine: ResumptionKeySource {
///       func resumptionKey(groupID: [UInt8], epoch: UInt64) -> ResumptionKey? {
///         groups[groupID]?.resumptionKey(epoch: epoch)
///       }
///     }
public protocol ResumptionKeySource {
  /// The key of an epoch; nil where the client was no member then, or has forgotten.
  func resumptionKey(groupID: [UInt8], epoch: UInt64) -> ResumptionKey?
}

extension [ResumptionKey]: ResumptionKeySource {
  /// The one with these names.
  public func resumptionKey(groupID: [UInt8], epoch: UInt64) -> ResumptionKey? {
    first { $0.groupID == groupID && $0.epoch == epoch }
  }
}

extension MLSGroup {
  /// The resumption key of an epoch, of the present one by default. The last 16 are kept.
  ///
  /// Nil after a removal and for an epoch that is forgotten.
  public func resumptionKey(epoch number: UInt64? = nil) -> ResumptionKey? {
    let number = number ?? epochNumber
    if case .removed = status { return nil }
    guard let secret = resumptionSecret(number) else { return nil }
    var reInit: ReInit?
    if case .reInitialised(let parameters) = status, number == epochNumber { reInit = parameters }
    return ResumptionKey(
      context, epoch: number,
      members: tree(in: number).map { tree in
        tree.members.compactMap { leaf in tree[leaf].map { Member(leaf, $0) } }
      },
      reInit: reInit, secret: secret)
  }

  func resumptionSecret(_ number: UInt64) -> Secret? {
    number == epochNumber
      ? epoch.secrets.resumption : resumptionKeys.first { $0.epoch == number }?.key
  }

  /// Makes a resumption key of another group known, so that commits can name it.
  public mutating func register(_ key: ResumptionKey) {
    state.resumptionSecrets[GroupEpoch(groupID: key.groupID, epoch: key.epoch)] = key.secret
  }

  /// A proposal to mix the resumption key of an epoch into the next one, with a fresh nonce: of this group, or of one
  /// whose key was registered. All members must know it.
  ///
  /// Throws `proposals(.unknownPreSharedKey)`.
  public func preSharedKeyProposal(
    resumptionOf group: [UInt8]? = nil, epoch number: UInt64, using random: inout RandomSource
  ) throws(MLSError) -> Proposal {
    let source = PreSharedKeyID.Source.resumption(
      usage: .application, groupID: group ?? groupID, epoch: number)
    let id = PreSharedKeyID(source: source, nonce: random.bytes(crypto.hashByteCount))
    _ = try lookUp([id])
    return .preSharedKey(id)
  }
}
