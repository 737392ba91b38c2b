import PalbeMLSMessages

/// All that a member holds of one epoch.
struct EpochState: Sendable {
  let context: GroupContext
  let contextBytes: [UInt8]
  var tree: RatchetTree
  let ownLeaf: LeafIndex
  /// HPKE private keys of our leaf and of nodes above it.
  var privateKeys: [NodeIndex: Secret]
  var secrets: EpochSecrets
  var keys: MessageKeys
  let confirmationTag: [UInt8]
  let interimTranscriptHash: [UInt8]

  init(
    context: GroupContext, tree: RatchetTree, ownLeaf: LeafIndex, privateKeys: [NodeIndex: Secret],
    secrets: EpochSecrets, confirmationTag: [UInt8], crypto: SuiteCrypto
  ) {
    self.context = context
    contextBytes = context.encoded()
    self.tree = tree
    self.ownLeaf = ownLeaf
    // A blanked node's old key must not open anything again.
    self.privateKeys = privateKeys.filter { node, _ in
      Int(node.value) < tree.size.nodeCount && !tree.isBlank(node)
    }
    var secrets = secrets
    keys = MessageKeys(
      senderData: secrets.senderData, encryption: secrets.takeEncryption() ?? .zeros(crypto.hashByteCount),
      size: tree.size)
    self.secrets = secrets
    self.confirmationTag = confirmationTag
    interimTranscriptHash = Transcript.interim(
      confirmed: context.confirmedTranscriptHash, confirmationTag: confirmationTag, crypto: crypto)
  }

  /// The signature key of a member.
  func signatureKey(_ leaf: LeafIndex) throws(MLSError) -> [UInt8] {
    guard let node = tree[leaf] else { throw .message(.unknownSender) }
    return node.signatureKey
  }
}

/// What stays of an epoch so that late application messages can be read.
struct PastEpoch: Sendable {
  let number: UInt64
  let contextBytes: [UInt8]
  let tree: RatchetTree
  var keys: MessageKeys
  /// Unix seconds.
  let endedAt: UInt64
}

/// An epoch that a commit leads to, before anybody moved there.
struct StagedEpoch: Sendable {
  let epoch: EpochState
  let effect: CommitEffect
  /// Who we are from then on, where our signing key changes.
  var client: MLSClient?
}
