public import PalbeCrypto
public import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// What an application needs of epochs that are not the current one.
extension MLSGroup {
  /// The GroupInfo of the epoch that our pending commit starts: what a delivery server keeps beside the commit, for those
  /// who join from outside. Throws `state(.noCommitPending)`.
  public func pendingGroupInfo(ratchetTree: Bool = true) throws(MLSError) -> MLSMessage {
    try requireActive()
    guard let pending else { throw .state(.noCommitPending) }
    return .groupInfo(
      try makeGroupInfo(
        of: pending.staged.epoch, ratchetTree: ratchetTree, by: pending.staged.client ?? client))
  }

  /// A secret of the epoch that our pending commit starts, as `exportSecret` gives it once the commit is merged.
  /// Throws `state(.noCommitPending)`, `state(.exportTooLong)`.
  public func exportPendingSecret(
    label: String, context: [UInt8], length: Int
  ) throws(MLSError) -> SymmetricKey {
    try requireActive()
    guard let pending else { throw .state(.noCommitPending) }
    return try exportSecret(
      of: pending.staged.epoch, label: Array(label.utf8), context: context, length: length)
  }

  /// The member that had a leaf in an epoch which is still readable: who sent a message of that epoch.
  public func member(_ leaf: LeafIndex, in epochNumber: UInt64) -> Member? {
    tree(in: epochNumber).flatMap { $0[leaf] }.map { Member(leaf, $0) }
  }

  /// The tree of an epoch that is still readable.
  func tree(in number: UInt64) -> RatchetTree? {
    number == epochNumber ? epoch.tree : past.first { $0.number == number }?.tree
  }

  func makeGroupInfo(
    of epoch: EpochState, ratchetTree: Bool, by client: MLSClient
  ) throws(MLSError) -> GroupInfo {
    var externalPub = ByteWriter(capacity: 72)
    externalPub.opaque(try crypto.deriveKeyPair(epoch.secrets.external).publicKey)
    var extensions = [Extension(type: .externalPub, data: externalPub.bytes)]
    if ratchetTree { extensions.append(Extension(type: .ratchetTree, data: epoch.tree.wire.encoded())) }
    return try makeGroupInfo(epoch, extensions, by: client)
  }
}
