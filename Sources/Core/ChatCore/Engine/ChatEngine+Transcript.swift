import PalbeMLS
import PalbeUnits

/// The transcript of a chat as the engine uses it: it is folded in the transaction of what caused the change.
extension ChatEngine {
  /// The chat's transcript, in memory from now on.
  mutating func load(_ chat: Chat) throws(MLSStorageError) {
    touch(chat)
    guard chat.transcript == nil else { return }
    chat.transcript = try Transcript.load(
      chat.id.bytes, me: device.name, from: storage, limits: configuration.transcript)
    guard chat.transcript != nil else { throw .inconsistent }
  }

  /// Folds a message. A control that its sender's role does not allow is nothing.
  mutating func fold(
    _ incoming: Incoming, in chat: Chat, _ transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    if case .control(.renamed) = incoming.envelope.content {
      let shape = chat.head.shape
      guard !shape.isDirect, shape.isAdmin(incoming.sender.user) else { return [] }
    }
    if case .control(.profile(let profile)) = incoming.envelope.content {
      take(profile, incoming, in: chat, &transaction)
    }
    var changes = try chat.transcript?.apply(incoming, in: &transaction) ?? []
    if case .control(.leaving) = incoming.envelope.content {
      if incoming.sender.user == me {
        // The server tells those who stay; another device of the user's own is told by this.
        end(chat, .left, &transaction)
      } else {
        changes += try depart(
          incoming.sender.user, by: incoming.sender, at: incoming.seq - chat.head.seqBase, chat, &transaction)
      }
    }
    return changes
  }

  /// Somebody tells name and timer to who came in. Nobody gets another name in by this than one that a control gave, or
  /// knows a later one than the log has.
  private func take(
    _ profile: GroupProfile, _ incoming: Incoming, in chat: Chat, _ transaction: inout MLSTransaction
  ) {
    let known = chat.transcript?.summary.profile ?? GroupProfile()
    guard profile.nameVersion.seq < incoming.seq, profile.timerVersion.seq < incoming.seq else { return }
    var profile = profile
    if !chat.head.shape.isAdmin(incoming.sender.user), known != GroupProfile() {
      // A timer is everybody's to set.
      (profile.name, profile.nameVersion) = (known.name, known.nameVersion)
    }
    chat.transcript?.adopt(profile, in: &transaction)
  }

  /// Adds a row for what happened to the chat, at a number of the server's.
  mutating func fold(
    _ event: SystemEvent, by sender: DeviceName?, at seq: Int64, in chat: Chat,
    _ transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    try chat.transcript?.addSystem(
      event, seq: seq + chat.head.seqBase, by: sender, epoch: chat.head.epoch, at: now, in: &transaction)
      ?? []
  }

  /// Gives a chat its name at the server. Under another name than before a new log begins, behind all that was said.
  func bind(_ chat: Chat, to group: GroupID, _ transaction: inout MLSTransaction) {
    if let old = chat.head.group, old != group {
      chat.head.seqBase = max(
        chat.transcript?.summary.lastSeq ?? 0, chat.head.seqBase + chat.head.processedSeq, chat.head.readSeq)
      chat.head.processedSeq = 0
      transaction.put(Progress(seq: 0), RecordKey.progress(chat.id))
      // Bytes lie with a group at the server, and who is in the new one cannot fetch them there.
      wantUploadsAnew(in: chat, &transaction)
    }
    chat.head.group = group
  }

  /// Writes the head, and what of it the list shows.
  func save(_ chat: Chat, _ transaction: inout MLSTransaction) {
    transaction.put(chat.head, RecordKey.chat(chat.id))
    chat.transcript?.updateSummary(in: &transaction) { summary in
      summary.state = chat.head.standing.state
      summary.group = chat.head.group
    }
  }

  /// Tells the models what changed.
  mutating func tell(_ changes: [TranscriptChange], of chat: Chat) {
    if !changes.isEmpty { events.append(.transcript(chat.id, changes)) }
    changed(chat)
    scheduleExpiry(of: chat)
  }

  /// What disappears next while nobody looks (section 3 #30).
  mutating func scheduleExpiry(of chat: Chat) {
    if let transcript = chat.transcript { chat.deadlines = transcript.summary.deadlines }
    timers[.expiry(chat.id)] = chat.deadlines.map { $0.wake(at: now) }.min()
  }

  // MARK: For whoever shows it

  /// The transcript as it is, to read.
  package mutating func transcript(of id: ChatID, at now: ChatTime) throws(EngineError) -> Transcript {
    try perform(at: now) { (engine) throws(EngineError) in
      guard let chat = engine.chats[id] else { throw .chatNotFound }
      do throws(MLSStorageError) { try engine.load(chat) } catch { throw .storage(error) }
      guard let transcript = chat.transcript else { throw .chatNotFound }
      return transcript
    }
  }

  /// Takes a message away on this device alone (S0-71).
  package mutating func hide(
    _ message: ClientMessageID, in id: ChatID, at now: ChatTime
  ) throws(EngineError) {
    try change(id, at: now) { (transcript, transaction) throws(MLSStorageError) in
      try transcript.hide(message, at: now, in: &transaction)
    }
  }

  /// Changes a transcript in a transaction of its own.
  mutating func change(
    _ id: ChatID, at now: ChatTime,
    _ body: (inout Transcript, inout MLSTransaction) throws(MLSStorageError) -> [TranscriptChange]
  ) throws(EngineError) {
    try perform(at: now) { (engine) throws(EngineError) in
      guard let chat = engine.chats[id] else { throw .chatNotFound }
      do throws(MLSStorageError) { try engine.change(chat, body) } catch { throw .storage(error) }
    }
  }

  mutating func change(
    _ chat: Chat,
    _ body: (inout Transcript, inout MLSTransaction) throws(MLSStorageError) -> [TranscriptChange]
  ) throws(MLSStorageError) {
    try load(chat)
    guard var transcript = chat.transcript else { return }
    var transaction = MLSTransaction()
    let changes = try body(&transcript, &transaction)
    chat.transcript = transcript
    guard !transaction.isEmpty || !changes.isEmpty else { return scheduleExpiry(of: chat) }
    if !transaction.isEmpty { try storage.apply(transaction) }
    tell(changes, of: chat)
  }

  /// Messages whose time is over go (section 3 #30).
  mutating func expire(in chat: Chat) throws(MLSStorageError) {
    let at = now
    try change(chat) { (transcript, transaction) throws(MLSStorageError) in
      try transcript.expire(at: at, in: &transaction)
    }
  }
}
