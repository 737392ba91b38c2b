import PalbeMLSMessages
import PalbeWire

/// Where everything else of a group is, and the little that belongs to no epoch.
struct CoreRecord: StoredRecord {
  struct Past: Sendable, Hashable {
    let id: EpochID
    let endedAt: UInt64
  }

  let cipherSuite: CipherSuite
  let signatureKey: [UInt8]
  let status: GroupState.Status
  let epoch: EpochID
  let past: [Past]
  let resumptionKeys: [(epoch: UInt64, key: Secret)]
  let keyPackageReference: [UInt8]?

  init(_ state: GroupState, client: MLSClient) {
    cipherSuite = client.cipherSuite
    signatureKey = client.signaturePublicKey
    status = state.status
    epoch = state.epoch.id
    past = state.past.map { Past(id: $0.id, endedAt: $0.endedAt) }
    resumptionKeys = state.resumptionKeys
    keyPackageReference = state.keyPackageReference
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    cipherSuite = try CipherSuite(from: &reader)
    signatureKey = try reader.opaque()
    switch try reader.uint8() {
    case 0: status = .member
    case 1: status = .removed
    case 2: status = .reInitialised(try ReInit(from: &reader))
    case let value: throw .invalid(field: "group status", value: UInt64(value))
    }
    epoch = try reader.epochID()
    var past: [Past] = []
    for _ in 0..<(try reader.uint32()) {
      past.append(Past(id: try reader.epochID(), endedAt: try reader.uint64()))
    }
    self.past = past
    var keys: [(epoch: UInt64, key: Secret)] = []
    for _ in 0..<(try reader.uint32()) { keys.append((try reader.uint64(), try reader.secret())) }
    resumptionKeys = keys
    keyPackageReference = try reader.flag() ? try reader.opaque() : nil
  }

  func encode(into writer: inout RecordWriter) {
    writer.value(cipherSuite)
    writer.plain.opaque(signatureKey)
    switch status {
    case .member: writer.plain.uint8(0)
    case .removed: writer.plain.uint8(1)
    case .reInitialised(let parameters):
      writer.plain.uint8(2)
      writer.value(parameters)
    }
    writer.epochID(epoch)
    writer.plain.uint32(UInt32(past.count))
    for item in past {
      writer.epochID(item.id)
      writer.plain.uint64(item.endedAt)
    }
    writer.plain.uint32(UInt32(resumptionKeys.count))
    for item in resumptionKeys {
      writer.plain.uint64(item.epoch)
      writer.secret(item.key)
    }
    writer.flag(keyPackageReference != nil)
    if let keyPackageReference { writer.plain.opaque(keyPackageReference) }
  }
}

extension RecordWriter {
  fileprivate mutating func epochID(_ id: EpochID) {
    plain.uint64(id.number)
    plain.uint64(id.branch)
  }

  fileprivate mutating func leaves(_ list: [LeafIndex]) { plain.vector(list) }
}

/// Counts the transactions of a group, so that a second user of its records is noticed.
struct RevisionRecord: StoredRecord {
  let revision: UInt64

  init(_ revision: UInt64) { self.revision = revision }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) { revision = try reader.uint64() }

  func encode(into writer: inout RecordWriter) { writer.plain.uint64(revision) }
}

/// The pre-shared keys that the group knows.
struct PreSharedKeysRecord: StoredRecord {
  let keys: [[UInt8]: Secret]
  let resumption: [GroupEpoch: Secret]

  init(_ state: GroupState) {
    keys = state.preSharedKeys
    resumption = state.resumptionSecrets
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    var keys: [[UInt8]: Secret] = [:]
    for _ in 0..<(try reader.uint32()) { keys[try reader.opaque()] = try reader.secret() }
    self.keys = keys
    var resumption: [GroupEpoch: Secret] = [:]
    if schema >= 3 {
      for _ in 0..<(try reader.uint32()) {
        let epoch = GroupEpoch(groupID: try reader.opaque(), epoch: try reader.uint64())
        resumption[epoch] = try reader.secret()
      }
    }
    self.resumption = resumption
  }

  func encode(into writer: inout RecordWriter) {
    writer.plain.uint32(UInt32(keys.count))
    for (id, key) in keys.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      writer.plain.opaque(id)
      writer.secret(key)
    }
    writer.plain.uint32(UInt32(resumption.count))
    for (id, key) in resumption.sorted(by: { $0.key < $1.key }) {
      writer.plain.opaque(id.groupID)
      writer.plain.uint64(id.epoch)
      writer.secret(key)
    }
  }
}

/// One page of the messages that were processed.
struct SeenPageRecord: StoredRecord {
  let page: SeenMessages.Page

  init(_ page: SeenMessages.Page) { self.page = page }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    page = SeenMessages.Page(number: try reader.uint64(), entries: try reader.opaque())
  }

  func encode(into writer: inout RecordWriter) {
    writer.plain.uint64(page.number)
    writer.plain.opaque(page.entries)
  }
}

/// A commit of our own that an epoch began with, as schemas 1 and 2 kept it.
struct MessageRecord: StoredRecord {
  let message: MLSMessage

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    message = try MLSMessage(from: &reader)
  }

  func encode(into writer: inout RecordWriter) { writer.value(message) }
}

/// A commit of our own that waits; its epoch has records like any other.
struct PendingRecord: StoredRecord {
  let message: MLSMessage
  let epoch: EpochID
  let effect: CommitEffect
  let newClient: ClientRecord?

  init(_ pending: GroupState.PendingCommit) {
    message = pending.message
    epoch = pending.staged.epoch.id
    effect = pending.staged.effect
    newClient = pending.staged.client.map(ClientRecord.init)
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    message = try MLSMessage(from: &reader)
    epoch = try reader.epochID()
    effect = CommitEffect(
      epoch: try reader.uint64(), committer: try LeafIndex(from: &reader),
      added: try reader.vector(of: LeafIndex.self), removed: try reader.vector(of: LeafIndex.self),
      updated: try reader.vector(of: LeafIndex.self), hasPath: try reader.flag(),
      reInit: try reader.optional(ReInit.self),
      applicationProposals: schema >= 3
        ? try reader.vector(of: StoredApplicationProposal.self).map(\.value) : [])
    let hasClient = schema >= 3 ? try reader.flag() : false
    newClient = hasClient ? try ClientRecord(from: &reader, schema: schema) : nil
  }

  func encode(into writer: inout RecordWriter) {
    writer.value(message)
    writer.epochID(epoch)
    writer.plain.uint64(effect.epoch)
    writer.value(effect.committer)
    writer.leaves(effect.added)
    writer.leaves(effect.removed)
    writer.leaves(effect.updated)
    writer.flag(effect.hasPath)
    writer.plain.optional(effect.reInit)
    writer.plain.vector(effect.applicationProposals.map(StoredApplicationProposal.init))
    writer.flag(newClient != nil)
    newClient?.encode(into: &writer)
  }
}

/// A proposal that waits for a commit, and the private key that goes with our own Update.
struct ProposalRecord: StoredRecord {
  let reference: ProposalRef
  let sender: Sender
  let proposal: Proposal
  let updateKey: Secret?
  let newClient: ClientRecord?

  init(_ entry: ProposalQueue.Entry, in queue: ProposalQueue) {
    reference = entry.reference
    sender = entry.sent.sender
    proposal = entry.sent.proposal
    if case .update(let leaf) = proposal {
      updateKey = queue.updateKeys[leaf.encryptionKey]
      newClient = queue.updateClients[leaf.encryptionKey].map(ClientRecord.init)
    } else {
      updateKey = nil
      newClient = nil
    }
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    reference = try ProposalRef(from: &reader)
    sender = try Sender(from: &reader)
    proposal = try Proposal(from: &reader)
    updateKey = try reader.optionalSecret()
    let hasClient = schema >= 3 ? try reader.flag() : false
    newClient = hasClient ? try ClientRecord(from: &reader, schema: schema) : nil
  }

  func encode(into writer: inout RecordWriter) {
    writer.value(reference)
    writer.value(sender)
    writer.value(proposal)
    writer.optional(updateKey)
    writer.flag(newClient != nil)
    newClient?.encode(into: &writer)
  }
}
