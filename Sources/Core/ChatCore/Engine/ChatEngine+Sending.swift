import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// The queue of what is to be sent: durable, in order, encrypted when its turn comes (S3-13, S3-17, section 3 #7).
extension ChatEngine {
  /// Sends content to a chat: it stands in the transcript at once, and goes out when it can. Of a draft this founds it.
  @discardableResult
  package mutating func send(
    _ content: Content, to id: ChatID, expiry: Expiry? = nil, fallback: String? = nil, at now: ChatTime
  ) throws(EngineError) -> ClientMessageID {
    try perform(at: now) { (engine) throws(EngineError) in
      guard let chat = engine.chats[id] else { throw .chatNotFound }
      if case .control(.renamed) = content {
        guard !chat.head.shape.isDirect else { throw .chatIsDirect }
        guard chat.head.shape.isAdmin(engine.me) else { throw .forbidden }
      }
      let envelope = Envelope(
        id: ClientMessageID(at: now.wall, using: &engine.random), sentAt: now.wall, content: content,
        fallback: fallback, expiry: expiry)
      try engine.send(envelope, in: chat)
      return envelope.id
    }
  }

  /// - Parameters:
  ///   - intent: an operation that is wanted with it, in one transaction.
  ///   - spool: what a file's bytes are called that go up before.
  mutating func send(
    _ envelope: Envelope, in chat: Chat, spool: String? = nil, with intent: GroupOperation.Intent? = nil,
    _ command: CommandID? = nil
  ) throws(EngineError) {
    let mustFound = try mustFound(chat)
    let plaintext: [UInt8]
    do throws(ContentError) { plaintext = try envelope.encoded() } catch { throw .content(error) }
    do throws(MLSStorageError) {
      try load(chat)
      chat.peerWait?.until = now.instant
      var entry = OutboxEntry(
        chat: chat.id, order: takeOrder(), id: envelope.id, plaintext: plaintext,
        wakes: envelope.content.wakes)
      entry.upload = spool.map { OutboxEntry.Upload(spool: $0) }
      if spool == nil, try sendAtOnce(&entry, envelope, in: chat, with: intent, command) {
        return try advance(chat)
      }
      var transaction = MLSTransaction()
      chat.outbox.append(entry)
      transaction.put(entry, entry.key)
      let changes = try chat.transcript?.insertOptimistic(envelope, at: now, in: &transaction) ?? []
      if mustFound { beginFounding(chat, &transaction) }
      if let intent {
        let order = put(intent, for: chat, &transaction)
        if let command { chat.commands[order] = command }
      }
      try storage.apply(transaction)
      tell(changes, of: chat)
      try advance(chat)
    } catch { throw .storage(error) }
  }

  /// What has nothing before it is encrypted in the transaction that shows it: one wait for the medium until it goes out.
  /// False: it must wait, and nothing has changed.
  private mutating func sendAtOnce(
    _ entry: inout OutboxEntry, _ envelope: Envelope, in chat: Chat, with intent: GroupOperation.Intent?,
    _ command: CommandID?
  ) throws(MLSStorageError) -> Bool {
    guard isReady, chat.head.standing == .active, chat.sending == .idle, let name = chat.head.group,
      !chat.outbox.contains(where: \.isDue), !isAlone(chat), let group = try group(of: chat)
    else { return false }
    var random = self.random
    var changes: [TranscriptChange] = []
    var sealing = entry
    let result = try group.update { group throws(MLSError) in
      let message = try group.encrypt(sealing.plaintext, using: &random)
      return OutboxEntry.Sealed(epoch: group.epochNumber, blob: message.encoded())
    } also: { (sealed: OutboxEntry.Sealed, transaction) throws(MLSStorageError) in
      sealing.sealed = sealed
      transaction.put(sealing, sealing.key)
      changes = try chat.transcript?.insertOptimistic(envelope, at: self.now, in: &transaction) ?? []
      if let intent {
        let order = self.put(intent, for: chat, &transaction)
        if let command { chat.commands[order] = command }
      }
    }
    self.random = random
    guard case .success(let sealed) = result else { return false }
    entry = sealing
    chat.outbox.append(entry)
    chat.sending = .underway(entry.id)
    tell(changes, of: chat)
    ask(
      .send(name, ServerMessage(epoch: sealed.epoch, id: entry.id, blob: sealed.blob, wakes: entry.wakes)),
      for: .send(chat.id, entry.id))
    return true
  }

  /// The other of a direct chat left: nobody would hear anything.
  private func isAlone(_ chat: Chat) -> Bool {
    chat.head.shape.isDirect && chat.peer(of: me).map { chat.head.departed.contains($0) } ?? false
  }

  /// Says something of the engine's own; where it cannot be said nobody waits for it.
  mutating func sendControl(_ control: ControlBody, in chat: Chat) throws(MLSStorageError) {
    let envelope = Envelope(
      id: ClientMessageID(at: now.wall, using: &random), sentAt: now.wall, content: .control(control))
    do throws(EngineError) { try send(envelope, in: chat) } catch {
      if case .storage(let fault) = error { throw fault }
    }
  }

  /// Whether a message to a chat must found it first: a draft, or a direct chat that the user left.
  private func mustFound(_ chat: Chat) throws(EngineError) -> Bool {
    switch chat.head.standing {
    case .draft: return true
    case .founding, .adopting, .resetting, .diverged, .active: return false
    case .left:
      guard chat.head.shape.isDirect else { throw .notAMember }
      return true
    case .removed: throw .notAMember
    }
  }

  /// Encrypts the first message that waits, and sends it. The bytes are stored before they go: the same ones go again
  /// until there is an answer.
  mutating func advanceSending(in chat: Chat) throws(MLSStorageError) {
    guard isReady, chat.head.standing == .active, let name = chat.head.group else { return }
    switch chat.sending {
    case .underway: return
    case .unclear(let until): guard until <= now.instant else { return }
    case .behind(let epoch): guard chat.head.epoch >= epoch else { return }
    case .idle: break
    }
    chat.sending = .idle
    guard let place = chat.outbox.firstIndex(where: \.isDue) else { return }
    if chat.outbox[place].sealed == nil {
      if isAlone(chat) {
        // The pair begins again.
        try load(chat)
        var transaction = MLSTransaction()
        beginFounding(chat, &transaction)
        try storage.apply(transaction)
        return try advanceOperations(of: chat)
      }
      guard try seal(place, in: chat) else { return }
    }
    let entry = chat.outbox[place]
    guard let sealed = entry.sealed else { return }
    chat.sending = .underway(entry.id)
    ask(
      .send(name, ServerMessage(epoch: sealed.epoch, id: entry.id, blob: sealed.blob, wakes: entry.wakes)),
      for: .send(chat.id, entry.id))
  }

  private mutating func seal(_ place: Int, in chat: Chat) throws(MLSStorageError) -> Bool {
    guard let group = try group(of: chat) else { return false }
    var random = self.random
    defer { self.random = random }
    var entry = chat.outbox[place]
    let result = try group.update { group throws(MLSError) in
      let message = try group.encrypt(entry.plaintext, using: &random)
      return OutboxEntry.Sealed(epoch: group.epochNumber, blob: message.encoded())
    } also: { (sealed: OutboxEntry.Sealed, transaction) throws(MLSStorageError) in
      entry.sealed = sealed
      transaction.put(entry, entry.key)
    }
    guard case .success = result else { return false }
    chat.outbox[place] = entry
    return true
  }

  mutating func sent(
    _ id: ClientMessageID, in chatID: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let chat = chats[chatID], chat.sending == .underway(id),
      let place = chat.outbox.firstIndex(where: { $0.id == id })
    else { return }
    chat.sending = .idle
    switch result {
    case .success(.accepted(let seq, let epoch)): try confirm(place, in: chat, seq: seq, epoch: epoch)
    case .success: break
    case .failure(let refusal): try refused(place, in: chat, refusal)
    }
    try advance(chat)
  }

  private mutating func confirm(
    _ place: Int, in chat: Chat, seq: Int64, epoch: UInt64
  ) throws(MLSStorageError) {
    let entry = chat.outbox.remove(at: place)
    try load(chat)
    var transaction = MLSTransaction()
    transaction.erase(entry.key)
    let changes =
      try chat.transcript?.confirm(
        entry.id, seq: seq + chat.head.seqBase, epoch: epoch, at: now, in: &transaction) ?? []
    try storage.apply(transaction)
    chat.refusedOnce.remove(entry.id)
    tell(changes, of: chat)
    events.append(.settled(chat.id, entry.id, seq: seq + chat.head.seqBase, epoch: epoch))
    uploadIsOver(entry, in: chat)
    // Who came in since cannot read it.
    guard epoch < chat.head.epoch, chat.head.standing == .active, let transcript = chat.transcript else {
      return
    }
    let profile = transcript.summary.profile
    if profile.nameVersion.control == entry.id || profile.timerVersion.control == entry.id {
      try sendControl(.profile(profile), in: chat)
    }
  }

  private mutating func refused(
    _ place: Int, in chat: Chat, _ refusal: ServerRefusal
  ) throws(MLSStorageError) {
    let id = chat.outbox[place].id
    switch refusal {
    case .staleEpoch(let head):
      try unseal(place, in: chat)
      if head > chat.head.epoch { chat.sending = .behind(head) }
      fetchQueue()
    case .other("invalid_request") where chat.refusedOnce.insert(id).inserted,
      .forbidden where chat.refusedOnce.insert(id).inserted:
      // The group was founded anew, or this device's leaf is being replaced: the queue tells.
      try unseal(place, in: chat)
      chat.sending = .unclear(until: now.instant + .seconds(2))
      timers[.retry(chat.id)] = now.instant + .seconds(2)
      fetchQueue()
    default:
      try fail(place, in: chat, code: refusal.code)
      if refusal.saysOut { fetchQueue() }
    }
  }

  private func unseal(_ place: Int, in chat: Chat) throws(MLSStorageError) {
    chat.outbox[place].sealed = nil
    var transaction = MLSTransaction()
    transaction.put(chat.outbox[place], chat.outbox[place].key)
    try storage.apply(transaction)
  }

  mutating func retryUnclear(in chat: Chat) throws(MLSStorageError) {
    if case .unclear = chat.sending { chat.sending = .idle }
    try advanceSending(in: chat)
  }

  // MARK: Failure

  /// A message goes no further until the user says so (S3-18).
  mutating func fail(_ place: Int, in chat: Chat, code: String) throws(MLSStorageError) {
    chat.outbox[place].failure = code
    chat.outbox[place].sealed = nil
    let entry = chat.outbox[place]
    try change(chat) { (transcript, transaction) throws(MLSStorageError) in
      transaction.put(entry, entry.key)
      return try transcript.fail(entry.id, code: code, in: &transaction)
    }
    chat.wantedUploads.remove(entry.id)
    events.append(.failed(chat.id, entry.id, code: code))
  }

  /// All that waits fails.
  mutating func failAll(in chat: Chat, code: String) throws(MLSStorageError) {
    forget { purpose in
      if case .send(chat.id, _) = purpose { true } else { false }
    }
    chat.sending = .idle
    for place in chat.outbox.indices where chat.outbox[place].failure == nil {
      try fail(place, in: chat, code: code)
    }
  }

  /// Tries a message again that failed, or that waits for a peer without a device.
  package mutating func retry(
    _ message: ClientMessageID, in id: ChatID, at now: ChatTime
  ) throws(EngineError) {
    try perform(at: now) { (engine) throws(EngineError) in
      guard let chat = engine.chats[id] else { throw .chatNotFound }
      guard let place = chat.outbox.firstIndex(where: { $0.id == message }) else { throw .messageNotFound }
      if chat.outbox[place].failure == nil {
        guard chat.peerWait != nil else { throw .messageNotFound }
        do throws(MLSStorageError) { return try engine.askForPeer(chat) } catch { throw .storage(error) }
      }
      let mustFound = try engine.mustFound(chat)
      do throws(MLSStorageError) {
        chat.outbox[place].failure = nil
        let entry = chat.outbox[place]
        try engine.change(chat) { (transcript, transaction) throws(MLSStorageError) in
          transaction.put(entry, entry.key)
          return try transcript.retry(message, in: &transaction)
        }
        if mustFound {
          var transaction = MLSTransaction()
          engine.beginFounding(chat, &transaction)
          try engine.storage.apply(transaction)
        }
        try engine.advance(chat)
      } catch { throw .storage(error) }
    }
  }

  /// Gives a message up that has not gone out. Once its bytes may lie with the server it cannot be.
  package mutating func cancel(
    _ message: ClientMessageID, in id: ChatID, at now: ChatTime
  ) throws(EngineError) {
    try perform(at: now) { (engine) throws(EngineError) in
      guard let chat = engine.chats[id] else { throw .chatNotFound }
      guard let place = chat.outbox.firstIndex(where: { $0.id == message && $0.sealed == nil }) else {
        throw .messageNotFound
      }
      do throws(MLSStorageError) {
        let entry = chat.outbox.remove(at: place)
        try engine.change(chat) { (transcript, transaction) throws(MLSStorageError) in
          transaction.erase(entry.key)
          return try transcript.cancel(message, in: &transaction)
        }
        engine.uploadIsOver(entry, in: chat)
        // Nothing is left that a peer without a device is asked for.
        if chat.peerWait != nil, !chat.outbox.contains(where: { $0.failure == nil }) {
          try engine.foundingFailed(chat, code: ServerRefusal.noKeyPackage(engine.me).code)
        }
      } catch { throw .storage(error) }
    }
  }

  /// How many messages the server has not answered for, those that failed apart.
  package func waitingCount(in id: ChatID) -> Int {
    chats[id]?.outbox.count { $0.failure == nil } ?? 0
  }
}

extension Content {
  /// Whether it may wake devices (S0-64, S0-69).
  var wakes: Bool { isSaid }
}
