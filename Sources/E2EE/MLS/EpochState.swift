import PalbeMLSMessages

/// Tells epochs apart that storage keeps at once: several commits can lead to the same number.
struct EpochID: Hashable, Sendable {
  let number: UInt64
  /// The first bytes of the confirmation tag.
  let branch: UInt64

  init(number: UInt64, branch: UInt64) {
    self.number = number
    self.branch = branch
  }

  init(number: UInt64, confirmationTag: [UInt8]) {
    self.number = number
    branch = confirmationTag.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}

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

  /// From storage; `tree` and `keys` fit the context.
  init(
    context: GroupContext, tree: RatchetTree, ownLeaf: LeafIndex, privateKeys: [NodeIndex: Secret],
    secrets: EpochSecrets, keys: MessageKeys, confirmationTag: [UInt8], crypto: SuiteCrypto
  ) {
    self.context = context
    contextBytes = context.encoded()
    self.tree = tree
    self.ownLeaf = ownLeaf
    self.privateKeys = privateKeys
    self.secrets = secrets
    self.keys = keys
    self.confirmationTag = confirmationTag
    interimTranscriptHash = Transcript.interim(
      confirmed: context.confirmedTranscriptHash, confirmationTag: confirmationTag, crypto: crypto)
  }

  var id: EpochID { EpochID(number: context.epoch, confirmationTag: confirmationTag) }

  /// The signature key of a member.
  func signatureKey(_ leaf: LeafIndex) throws(MLSError) -> [UInt8] {
    guard let node = tree[leaf] else { throw .message(.unknownSender) }
    return node.signatureKey
  }
}

/// What stays of an epoch so that late application messages can be read.
struct PastEpoch: Sendable {
  let id: EpochID
  let contextBytes: [UInt8]
  let tree: RatchetTree
  var keys: MessageKeys
  /// Unix seconds.
  let endedAt: UInt64

  var number: UInt64 { id.number }
}

/// An epoch that a commit leads to, before anybody moved there.
struct StagedEpoch: Sendable {
  var epoch: EpochState
  let effect: CommitEffect
  /// Who we are from then on, where our signing key changes.
  var client: MLSClient?
}
