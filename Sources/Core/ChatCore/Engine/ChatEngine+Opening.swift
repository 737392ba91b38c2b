import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// Accepts leaves that name a user and a device, and no change of that name. Whether the key behind the name is the right
/// one is what safety numbers are for.
struct NamedDevices: CredentialPolicy {
  func accepts(_ credential: Credential, signatureKey: [UInt8]) -> Bool {
    DeviceName(credential: credential) != nil
  }
}

extension ChatEngine {
  /// Opens what is stored, or begins. A new device gets its key and its name here, before any server hears of it. Of a chat
  /// two small records are read, and what waits in it; messages whose time is over meanwhile go (section 3 #30).
  /// - Parameter summaries: of all chats, where the caller has read them already.
  package static func open(
    _ configuration: EngineConfiguration, storage: any MLSStorage, summaries: [ChatSummary]? = nil,
    random: RandomSource, at now: ChatTime
  ) throws(EngineError) -> ChatEngine {
    var settings = MLSConfiguration()
    settings.extensionTypes = [GroupShape.extensionType]
    settings.credentialPolicy = NamedDevices()
    let record: DeviceRecord?
    var client: MLSClient?
    do throws(MLSStorageError) {
      record = try storage.read(RecordKey.device).map { (record) throws(MLSStorageError) in
        try DeviceRecord(record)
      }
      client = try storage.loadClient(configuration: settings)
    } catch { throw .storage(error) }
    guard let record, let client else {
      guard record == nil else { throw .storage(.inconsistent) }
      return try begin(configuration, storage, random, settings, now)
    }
    guard record.name.user == configuration.me else { throw .wrongUser }
    var engine = ChatEngine(configuration, storage, random, client, record, now)
    do throws(MLSStorageError) {
      try engine.load()
      // One that cannot be read shows when the chat is opened.
      if let summaries {
        try engine.expire(by: summaries)
      } else {
        try engine.expire(by: try ChatSummary.survey(in: storage).chats)
      }
    } catch { throw .storage(error) }
    return engine
  }

  private static func begin(
    _ configuration: EngineConfiguration, _ storage: any MLSStorage, _ random: RandomSource,
    _ settings: MLSConfiguration, _ now: ChatTime
  ) throws(EngineError) -> ChatEngine {
    var random = random
    let name = DeviceName(user: configuration.me, device: DeviceID(at: now.wall, using: &random))
    let client: MLSClient
    do throws(MLSError) {
      client = try MLSClient(credential: name.credential, configuration: settings, using: &random)
    } catch { throw .mls(error) }
    let device = DeviceRecord(name: name, lastResortAt: now.wall)
    do throws(MLSStorageError) {
      var transaction = MLSTransaction()
      transaction.write(client)
      transaction.put(device, RecordKey.device)
      try storage.apply(transaction)
    } catch { throw .storage(error) }
    return ChatEngine(configuration, storage, random, client, device, now)
  }

  /// One row a chat, and what waits.
  private mutating func load() throws(MLSStorageError) {
    for key in try storage.keys(under: RecordKey.chats) {
      guard let record = try storage.read(key) else { continue }
      index(Chat(try ChatHead(record)))
    }
    for key in try storage.keys(under: RecordKey.progress) {
      guard let record = try storage.read(key), let id = ChatID(bytes: Array(key.name.dropFirst(2))) else {
        continue
      }
      chats[id]?.head.processedSeq = try Progress(record).seq
    }
    for key in try storage.keys(under: RecordKey.outbox) {
      guard let record = try storage.read(key) else { continue }
      let entry = try OutboxEntry(record)
      chats[entry.chat]?.outbox.append(entry)
      nextOrder = max(nextOrder, entry.order + 1)
    }
    for key in try storage.keys(under: RecordKey.operations) {
      guard let record = try storage.read(key) else { continue }
      let operation = try GroupOperation(record)
      chats[operation.chat]?.operations.append(operation)
      nextOrder = max(nextOrder, operation.order + 1)
    }
    try dropSecrets()
  }

  /// Takes away what is over by now, and notes when more will be.
  private mutating func expire(by summaries: [ChatSummary]) throws(MLSStorageError) {
    for summary in summaries {
      guard let id = ChatID(bytes: summary.chat), let chat = chats[id] else { continue }
      chat.deadlines = summary.deadlines
      if chat.deadlines.contains(where: { $0.isDue(at: now) }) { try expireUnseen(in: chat) }
      scheduleExpiry(of: chat)
    }
  }

  /// Nobody has seen the rows yet: that the chat changed is all that is told.
  private mutating func expireUnseen(in chat: Chat) throws(MLSStorageError) {
    try load(chat)
    guard var transcript = chat.transcript else { return }
    var transaction = MLSTransaction()
    _ = try transcript.expire(at: now, in: &transaction)
    if !transaction.isEmpty { try storage.apply(transaction) }
    chat.transcript = transcript
    changed(chat)
  }

  mutating func takeOrder() -> UInt64 {
    defer { nextOrder += 1 }
    return nextOrder
  }
}
