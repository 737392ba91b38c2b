import PalbeMLSMessages
import PalbeWire

/// What a member must forget when the epoch ends.
struct EpochRecord: StoredRecord {
  let context: GroupContext
  let ownLeaf: LeafIndex
  let privateKeys: [NodeIndex: Secret]
  let secrets: EpochSecrets
  let confirmationTag: [UInt8]

  init(_ epoch: EpochState) {
    context = epoch.context
    ownLeaf = epoch.ownLeaf
    privateKeys = epoch.privateKeys
    secrets = epoch.secrets
    confirmationTag = epoch.confirmationTag
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    context = try GroupContext(from: &reader)
    ownLeaf = try LeafIndex(from: &reader)
    confirmationTag = try reader.opaque()
    secrets = EpochSecrets(
      senderData: try reader.secret(), exporter: try reader.optionalSecret(), external: try reader.secret(),
      confirmationKey: try reader.secret(), membershipKey: try reader.secret(),
      resumption: try reader.secret(), authenticator: try reader.secret(), initSecret: try reader.secret())
    var keys: [NodeIndex: Secret] = [:]
    for _ in 0..<(try reader.uint32()) {
      let node = NodeIndex(try reader.uint32())
      guard keys.updateValue(try reader.secret(), forKey: node) == nil else {
        throw .invalid(field: "node of a private key", value: UInt64(node.value))
      }
    }
    privateKeys = keys
  }

  func encode(into writer: inout RecordWriter) {
    writer.value(context)
    writer.value(ownLeaf)
    writer.plain.opaque(confirmationTag)
    writer.secret(secrets.senderData)
    writer.optional(secrets.exporter)
    for secret in [
      secrets.external, secrets.confirmationKey, secrets.membershipKey, secrets.resumption,
      secrets.authenticator, secrets.initSecret,
    ] {
      writer.secret(secret)
    }
    writer.plain.uint32(UInt32(privateKeys.count))
    for (node, key) in privateKeys.sorted(by: { $0.key.value < $1.key.value }) {
      writer.plain.uint32(node.value)
      writer.secret(key)
    }
  }
}

/// What messages of the epoch are read with besides its ratchets, also when it is past.
struct MessageKeysRecord: StoredRecord {
  let contextBytes: [UInt8]
  let senderData: Secret
  let leafCount: UInt32

  init(contextBytes: [UInt8], keys: MessageKeys) {
    self.contextBytes = contextBytes
    senderData = keys.senderData
    leafCount = UInt32(keys.tree.size.leafCount)
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    contextBytes = try reader.opaque()
    senderData = try reader.secret()
    leafCount = try reader.uint32()
    guard leafCount.nonzeroBitCount == 1, leafCount <= TreeSize.maximumLeafCount else {
      throw .invalid(field: "leaf count", value: UInt64(leafCount))
    }
  }

  func encode(into writer: inout RecordWriter) {
    writer.plain.opaque(contextBytes)
    writer.secret(senderData)
    writer.plain.uint32(leafCount)
  }
}

struct TreeRecord: StoredRecord {
  let tree: RatchetTreeExtension

  init(_ tree: RatchetTree) { self.tree = tree.wire }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    tree = try RatchetTreeExtension(from: &reader)
  }

  func encode(into writer: inout RecordWriter) { writer.value(tree) }
}

/// The secret of one node of the secret tree.
struct NodeRecord: StoredRecord {
  let secret: Secret

  init(_ secret: Secret) { self.secret = secret }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) { secret = try reader.secret() }

  func encode(into writer: inout RecordWriter) { writer.secret(secret) }
}

struct RatchetRecord: StoredRecord {
  let generation: UInt32
  let secret: Secret

  init(_ ratchet: HashRatchet) {
    generation = ratchet.generation
    secret = ratchet.secret
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    generation = try reader.uint32()
    secret = try reader.secret()
  }

  func encode(into writer: inout RecordWriter) {
    writer.plain.uint32(generation)
    writer.secret(secret)
  }
}

/// The key of a message that was passed over.
struct SkippedKeyRecord: StoredRecord {
  let item: SkippedKey

  init(_ item: SkippedKey) { self.item = item }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    let key = MessageKey(key: try reader.secret(), nonce: try reader.secret())
    item = SkippedKey(key: key, storedAt: schema >= 2 ? try reader.uint64() : 0)
  }

  func encode(into writer: inout RecordWriter) {
    writer.secret(item.key.key)
    writer.secret(item.key.nonce)
    writer.plain.uint64(item.storedAt)
  }
}
