import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// Messages of others, and of one's own other devices.
extension ChatEngine {
  /// Decrypts a message, folds it and stores both in one transaction (section 3 #17).
  mutating func receive(
    _ row: ServerLogRow, in chat: Chat, _ group: Chat.Group
  ) throws(MLSStorageError) {
    try load(chat)
    let (at, seconds) = (now, self.seconds)
    var sender: DeviceName?
    var outcome = Received.nothing
    let result = try group.update { group throws(MLSError) in
      let message = try group.process(row.blob, at: seconds)
      if case .application(let data) = message {
        sender = group.member(data.sender, in: data.epoch).flatMap { DeviceName(credential: $0.credential) }
      }
      return message
    } also: { message, transaction throws(MLSStorageError) in
      self.processed(row, of: chat, &transaction)
      if case .application(let data) = message {
        if let sender, let envelope = try? Envelope.decoded(plaintext: data.data.span) {
          let incoming = Incoming(
            seq: row.seq + chat.head.seqBase, sender: sender, epoch: data.epoch, receivedAt: at,
            serverAt: row.at, envelope: envelope)
          outcome = .changes(try self.fold(incoming, in: chat, &transaction), from: sender.user, envelope)
        } else {
          let changes = try chat.transcript?.addUnreadable(
            seq: row.seq + chat.head.seqBase, from: sender, epoch: data.epoch, at: at, in: &transaction)
          outcome = .changes(changes ?? [], from: nil, nil)
        }
      }
    }
    switch result {
    case .success:
      guard case .changes(let changes, let user, let envelope) = outcome else { return }
      if user == nil { events.append(.undecryptable(chat.id, seq: row.seq)) }
      tell(changes, of: chat)
      if let user, let envelope { try received(envelope, from: user, in: chat) }
    case .failure(let error):
      switch error {
      case .message(.staleMessage), .message(.staleProposal), .message(.generationUsed),
        .message(.unknownSender):
        // Before this device came, or a second time.
        try pass(row, in: chat)
      case .state(.removed): try pass(row, in: chat)
      default: try undecryptable(row, in: chat)
      }
    }
  }

  private enum Received {
    case nothing
    case changes([TranscriptChange], from: UserID?, Envelope?)
  }

  /// Notes that a row is done with.
  func pass(_ row: ServerLogRow, in chat: Chat) throws(MLSStorageError) {
    var transaction = MLSTransaction()
    processed(row, of: chat, &transaction)
    try storage.apply(transaction)
  }

  /// Notes in a transaction that a row of the queue is done with.
  func processed(_ row: ServerLogRow, of chat: Chat, _ transaction: inout MLSTransaction) {
    chat.head.processedSeq = max(chat.head.processedSeq, row.seq)
    transaction.put(Progress(seq: chat.head.processedSeq), RecordKey.progress(chat.id))
  }

  /// A row that nobody can read has its place in the transcript and is gone (2.2 `undecryptable`).
  mutating func undecryptable(_ row: ServerLogRow, in chat: Chat) throws(MLSStorageError) {
    try load(chat)
    var transaction = MLSTransaction()
    processed(row, of: chat, &transaction)
    let changes = try chat.transcript?.addUnreadable(
      seq: row.seq + chat.head.seqBase, from: nil, epoch: row.epoch, at: now, in: &transaction)
    try storage.apply(transaction)
    events.append(.undecryptable(chat.id, seq: row.seq))
    tell(changes ?? [], of: chat)
  }

  /// What a message means to the engine, after it was stored.
  mutating func received(
    _ envelope: Envelope, from user: UserID, in chat: Chat
  ) throws(MLSStorageError) {
    if clearTyping(of: user, in: chat) { tellTyping(in: chat) }
    guard case .control(let control) = envelope.content else { return }
    switch control {
    case .leaving: if user == me { try ended(chat, []) } else { tidyLater(chat, isOwn: false) }
    case .timer where user != me:
      // Tells that this device has it (S0-86).
      try sendControl(.timerAcknowledged(envelope.id), in: chat)
    default: break
    }
  }
}
