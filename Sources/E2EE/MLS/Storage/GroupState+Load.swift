import PalbeMLSMessages
import PalbeWire

/// A group's state from its records.
extension GroupState {
  /// Nil when the group is not stored.
  init?(
    _ names: RecordNames, client: MLSClient, from storage: any MLSStorage
  ) throws(MLSStorageError) {
    let reader = StateReader(names: names, client: client, storage: storage)
    guard let record = try storage.read(names.core) else { return nil }
    let core = try CoreRecord(record)
    let newClient = try storage.read(names.newClient).map { record throws(MLSStorageError) in
      try MLSClient(stored: record, configuration: client.configuration)
    }
    // An application that replaced its signing key may name itself by the old or by the new one.
    guard core.cipherSuite == client.cipherSuite,
      client.signaturePublicKey == core.signatureKey
        || client.signaturePublicKey == newClient?.signaturePublicKey
    else { throw .wrongClient }
    self.init(try reader.epoch(core.epoch))
    for item in core.past { past.append(try reader.past(item)) }
    status = core.status
    resumptionKeys = core.resumptionKeys
    keyPackageReference = core.keyPackageReference
    self.newClient = newClient
    let keys = try PreSharedKeysRecord(try reader.required(names.preSharedKeys))
    preSharedKeys = keys.keys
    resumptionSecrets = keys.resumption
    seen = try reader.seen()
    if let record = try storage.read(names.pending) {
      let record = try PendingRecord(record)
      pending = PendingCommit(
        message: record.message,
        staged: StagedEpoch(
          epoch: try reader.epoch(record.epoch), effect: record.effect,
          client: try reader.newClient(record.newClient)))
    }
    for key in try storage.keys(under: names.proposals) {
      let record = try ProposalRecord(try reader.required(key))
      do {
        try proposals.insert(
          SentProposal(proposal: record.proposal, sender: record.sender), record.reference, limit: .max)
      } catch { throw .inconsistent }
      if case .update(let leaf) = record.proposal, let key = record.updateKey {
        proposals.keep(key, try reader.newClient(record.newClient), forUpdate: leaf.encryptionKey)
      }
    }
  }
}

/// Reads the epochs of one group.
private struct StateReader {
  let names: RecordNames
  let client: MLSClient
  let storage: any MLSStorage

  func required(_ key: MLSRecordKey) throws(MLSStorageError) -> MLSRecord {
    guard let record = try storage.read(key) else { throw .inconsistent }
    return record
  }

  func newClient(_ record: ClientRecord?) throws(MLSStorageError) -> MLSClient? {
    guard let record else { return nil }
    return try MLSClient(record, configuration: client.configuration)
  }

  func seen() throws(MLSStorageError) -> SeenMessages {
    var pages: [SeenMessages.Page] = []
    for key in try storage.keys(under: names.seen) {
      pages.append(try SeenPageRecord(try required(key)).page)
    }
    pages.sort { $0.number < $1.number }
    guard var seen = SeenMessages(pages: pages) else { throw .inconsistent }
    if pages.isEmpty, let record = try storage.read(names.ownCommit) {
      let message = try MessageRecord(record).message
      seen.insert(SeenMessages.digest(of: message, client.crypto), .own)
    }
    return seen
  }

  func epoch(_ id: EpochID) throws(MLSStorageError) -> EpochState {
    let names = names.epoch(id)
    let record = try EpochRecord(try required(names.secrets))
    var tree = try tree(names)
    let epoch = EpochState(
      context: record.context, tree: tree, ownLeaf: record.ownLeaf, privateKeys: record.privateKeys,
      secrets: record.secrets, keys: try keys(names, tree).keys, confirmationTag: record.confirmationTag,
      crypto: client.crypto)
    // The tree is the largest record and the one that is not written by every commit alone.
    guard epoch.id == id, record.context.groupID == names.group, tree.rootHash() == record.context.treeHash,
      record.context.cipherSuite == client.cipherSuite, tree[record.ownLeaf] != nil,
      record.privateKeys.keys.allSatisfy({ Int($0.value) < tree.size.nodeCount }),
      hasHashLength(record.secrets)
    else { throw .inconsistent }
    return epoch.with(tree)
  }

  func past(_ item: CoreRecord.Past) throws(MLSStorageError) -> PastEpoch {
    let names = names.epoch(item.id)
    let tree = try tree(names)
    let (keys, contextBytes) = try keys(names, tree)
    return PastEpoch(
      id: item.id, contextBytes: contextBytes, tree: tree, keys: keys, endedAt: item.endedAt)
  }

  private func tree(_ names: RecordNames.EpochNames) throws(MLSStorageError) -> RatchetTree {
    let record = try TreeRecord(try required(names.tree))
    do { return try RatchetTree(record.tree, crypto: client.crypto) } catch { throw .inconsistent }
  }

  /// Secrets of another length would be refused far from here, or not at all.
  private func hasHashLength(_ secrets: EpochSecrets) -> Bool {
    let all = [
      secrets.senderData, secrets.external, secrets.confirmationKey, secrets.membershipKey,
      secrets.resumption, secrets.authenticator, secrets.initSecret, secrets.exporter ?? secrets.initSecret,
    ]
    return all.allSatisfy { $0.byteCount == client.crypto.hashByteCount }
  }

  private func keys(
    _ names: RecordNames.EpochNames, _ tree: RatchetTree
  ) throws(MLSStorageError) -> (keys: MessageKeys, contextBytes: [UInt8]) {
    let record = try MessageKeysRecord(try required(names.messageKeys))
    guard Int(record.leafCount) == tree.size.leafCount else { throw .inconsistent }
    let crypto = client.crypto
    var nodes: [NodeIndex: Secret] = [:]
    for key in try storage.keys(under: names.nodes) {
      let node = NodeIndex(try index(names, key) { reader throws(WireError) in try reader.uint32() })
      let secret = try NodeRecord(try required(key)).secret
      guard Int(node.value) < tree.size.nodeCount, secret.byteCount == crypto.hashByteCount else {
        throw .inconsistent
      }
      nodes[node] = secret
    }
    var skipped: [RatchetID: [UInt32: SkippedKey]] = [:]
    for key in try storage.keys(under: names.skipped) {
      let (id, generation) = try index(names, key) { reader throws(WireError) in
        (try RatchetID(from: &reader), try reader.uint32())
      }
      let item = try SkippedKeyRecord(try required(key)).item
      guard item.key.key.byteCount == crypto.keyByteCount,
        item.key.nonce.byteCount == crypto.nonceByteCount
      else { throw .inconsistent }
      skipped[id, default: [:]][generation] = item
    }
    var single: [RatchetID: HashRatchet] = [:]
    for key in try storage.keys(under: names.ratchets) {
      let id = try index(names, key) { reader throws(WireError) in try RatchetID(from: &reader) }
      let record = try RatchetRecord(try required(key))
      guard tree.size.contains(id.leaf), record.secret.byteCount == crypto.hashByteCount else {
        throw .inconsistent
      }
      single[id] = HashRatchet(record.secret, at: record.generation, skipped: skipped[id] ?? [:])
    }
    var ratchets: [LeafIndex: SecretTree.Ratchets] = [:]
    for (id, application) in single where id.isApplication {
      guard let handshake = single[RatchetID(leaf: id.leaf, isApplication: false)] else {
        throw .inconsistent
      }
      ratchets[id.leaf] = SecretTree.Ratchets(handshake: handshake, application: application)
    }
    return (
      MessageKeys(
        senderData: record.senderData,
        tree: SecretTree(size: tree.size, nodes: nodes, ratchets: ratchets)),
      record.contextBytes
    )
  }

  private func index<Index>(
    _ names: RecordNames.EpochNames, _ key: MLSRecordKey,
    _ read: (inout ByteReader) throws(WireError) -> Index
  ) throws(MLSStorageError) -> Index {
    let bytes = names.index(of: key)
    do throws(WireError) {
      var reader = ByteReader(bytes.span)
      let index = try read(&reader)
      try reader.finish()
      return index
    } catch { throw .corrupted(error) }
  }
}

extension EpochState {
  /// The same epoch with the hashes of its tree computed.
  fileprivate consuming func with(_ hashed: RatchetTree) -> EpochState {
    tree = hashed
    return self
  }
}
