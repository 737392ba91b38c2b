import PalbeMLS
import PalbeUnits

/// How far the user has read, and the server's counts.
extension ChatEngine {
  mutating func markRead(_ id: ChatID, upTo seq: Int64, _ command: CommandID) throws(EngineError) {
    guard let chat = chats[id] else { throw .chatNotFound }
    do throws(MLSStorageError) {
      try readElsewhere(chat, upTo: seq)
    } catch { throw .storage(error) }
    events.append(.finished(command, .done))
    tellRead(in: chat)
  }

  /// The user has read up to here, on whatever device; it never falls (S0-96).
  mutating func readElsewhere(_ chat: Chat, upTo seq: Int64) throws(MLSStorageError) {
    guard seq > chat.head.readSeq else { return }
    chat.head.readSeq = seq
    let head = chat.head
    let at = now
    try change(chat) { (transcript, transaction) throws(MLSStorageError) in
      transaction.put(head, RecordKey.chat(head.id))
      return try transcript.markRead(upTo: seq, at: at, in: &transaction)
    }
  }

  /// Tells the server what it does not know of it.
  mutating func tellRead(in chat: Chat) {
    let seq = chat.head.readSeq
    guard isReady, chat.head.standing == .active, !chat.isTellingRead,
      seq > max(chat.head.toldReadSeq, chat.head.seqBase),
      let group = chat.head.group
    else { return }
    chat.isTellingRead = true
    ask(.markRead(group, seq - chat.head.seqBase), for: .read(chat.id, seq))
  }

  mutating func toldRead(
    _ seq: Int64, in id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let chat = chats[id] else { return }
    chat.isTellingRead = false
    guard case .success = result else { return }
    chat.head.toldReadSeq = max(chat.head.toldReadSeq, seq)
    try store(chat)
    tellRead(in: chat)
  }

  // MARK: The server's counts

  mutating func gotUnread(
    of id: ChatID, _ command: CommandID?, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let chat = chats[id] else { return }
    switch result {
    case .success(.unread(let unread)):
      if let command { events.append(.finished(command, .unread(unread))) }
      let read = unread.lastReadSeq + chat.head.seqBase
      chat.head.toldReadSeq = max(chat.head.toldReadSeq, read)
      try change(chat) { (transcript, transaction) throws(MLSStorageError) in
        transcript.updateSummary(in: &transaction) { $0.serverUnread = unread }
        return []
      }
      try readElsewhere(chat, upTo: read)
    // Nobody waits for an answer that was another one.
    case .success: if let command { events.append(.finished(command, .failed(code: "internal"))) }
    case .failure(let refusal):
      if let command { events.append(.finished(command, .failed(code: refusal.code))) }
    }
  }

  mutating func gotScope(
    of id: ChatID, _ command: CommandID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let chat = chats[id] else { return }
    switch result {
    case .success(.notifyScope(let scope)):
      events.append(.finished(command, .notifyScope(scope)))
      try change(chat) { (transcript, transaction) throws(MLSStorageError) in
        transcript.updateSummary(in: &transaction) { $0.notifyScope = scope }
        return []
      }
    case .success: events.append(.finished(command, .failed(code: "internal")))
    case .failure(let refusal): events.append(.finished(command, .failed(code: refusal.code)))
    }
  }
}
