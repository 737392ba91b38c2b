import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// What is kept of an epoch that ended: secrets by label, sealed like every record, for as long as frames and names of it
/// may still come (section 3 #26).
struct KeptSecrets: ChatRecord {
  var secrets: [String: [UInt8]] = [:]
  /// When the epoch ended here.
  var endedAt: WallTime

  init(endedAt: WallTime) { self.endedAt = endedAt }

  init(from reader: inout ByteReader) throws(WireError) {
    endedAt = WallTime(microseconds: try reader.int64())
    for _ in 0..<(try reader.listCount()) { secrets[try reader.text()] = try reader.counted() }
  }

  func encode(into writer: inout ByteWriter) {
    writer.int64(endedAt.microseconds)
    writer.list(secrets.sorted { $0.key < $1.key }) {
      $0.text($1.key)
      $0.counted($1.value)
    }
  }
}

extension ChatEngine {
  /// The secrets that outlive an epoch, before it ends.
  struct Keeping {
    let key: MLSRecordKey
    let secrets: KeptSecrets

    func write(_ transaction: inout MLSTransaction) {
      if !secrets.secrets.isEmpty { transaction.put(secrets, key) }
    }
  }

  func keep(_ group: borrowing MLSGroup, of chat: Chat) -> Keeping {
    var secrets = KeptSecrets(endedAt: now.wall)
    let labels = configuration.keptLabels + (chat.head.wantsView ? [SealedProfile.exporterLabel] : [])
    for label in labels {
      if let secret = try? group.exportSecret(label: label, context: [], length: 32) {
        secrets.secrets[label] = [UInt8](secret.span)
      }
    }
    return Keeping(key: RecordKey.secrets(chat.id, group.epochNumber), secrets: secrets)
  }

  /// A secret of the chat's epoch, or of one that ended no longer ago than `secretLifetime`. Throws `chatIsDraft`,
  /// `notAMember`.
  package mutating func exportSecret(
    label: String, length: Int, of id: ChatID, epoch: UInt64? = nil, at now: ChatTime
  ) throws(EngineError) -> SymmetricKey {
    guard !isStopped else { throw .stopped }
    self.now = now
    let chat = try activeChat(id)
    do throws(MLSStorageError) {
      if let key = try secret(label, length, of: chat, epoch: epoch ?? chat.head.epoch) { return key }
    } catch {
      stop(error)
      throw .storage(error)
    }
    throw .notAMember
  }

  mutating func secret(
    _ label: String, _ length: Int, of chat: Chat, epoch: UInt64
  ) throws(MLSStorageError) -> SymmetricKey? {
    if epoch == chat.head.epoch {
      guard let group = try group(of: chat) else { return nil }
      return try? group.stored.group.exportSecret(label: label, context: [], length: length)
    }
    guard let record = try storage.read(RecordKey.secrets(chat.id, epoch)) else { return nil }
    return try KeptSecrets(record).secrets[label].map { SymmetricKey(copying: $0) }
  }

  mutating func scheduleSecrets(of chat: Chat) {
    if timers[.secrets(chat.id)] == nil {
      timers[.secrets(chat.id)] = now.instant + configuration.secretLifetime
    }
  }

  /// Erases what is over. A clock that was set back keeps nothing longer than one that was not.
  mutating func dropSecrets(of chat: Chat) throws(MLSStorageError) {
    try dropSecrets(under: RecordKey.secrets(chat.id))
  }

  /// What an ended process left.
  mutating func dropSecrets() throws(MLSStorageError) { try dropSecrets(under: RecordKey.secrets) }

  /// All, also those whose time has not come.
  mutating func dropAllSecrets() throws(MLSStorageError) {
    var transaction = MLSTransaction()
    transaction.eraseAll(under: RecordKey.secrets)
    try storage.apply(transaction)
  }

  private mutating func dropSecrets(under prefix: MLSRecordKey) throws(MLSStorageError) {
    var transaction = MLSTransaction()
    for key in try storage.keys(under: prefix) {
      guard let record = try storage.read(key),
        let chat = ChatID(bytes: Array(key.name.dropFirst(2).prefix(16)))
      else { continue }
      let endedAt = try KeptSecrets(record).endedAt
      if chats[chat]?.head.wantsView == true || now.wall < endedAt + configuration.secretLifetime,
        now.wall >= endedAt
      {
        timers[.secrets(chat)] = now.instant + configuration.secretLifetime
      } else {
        transaction.erase(key)
      }
    }
    if !transaction.isEmpty { try storage.apply(transaction) }
  }
}
