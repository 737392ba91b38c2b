import PalbeMLS
import PalbeUnits

/// A file whose message the server does not have yet.
package struct PendingUpload: Equatable, Sendable {
  /// How far it is.
  package enum Standing: Hashable, Sendable {
    /// The chat has no group at the server yet, or `uploadWanted` was told.
    case waiting
    /// The bytes are with the server; the message waits for its turn, or for its answer.
    case released
    /// Nothing is tried until `retry`.
    case failed(code: String)
  }

  package let chat: ChatID
  package let message: ClientMessageID
  /// The shell's name for the bytes.
  package let spool: String
  /// What the row shows; with `released` its descriptor is the one that is sent.
  package let body: AttachmentBody
  package let standing: Standing
}

/// Files: the row stands at once, then the bytes go up, then the message that names them goes out (S3-13, S3-18).
///
///     sendFile ──▶ uploadWanted ──▶ release ──▶ sent ──▶ uploadOver
///        ▲             │ failUpload               │ refused
///        └── retry ── failed ◀────────────────────┘
///
/// What is said behind a file does not wait for it: a file has its place in the server's order when its message is sent.
extension ChatEngine {
  /// Shows a file in a chat and has its bytes brought up; of a draft this founds it. Durable when it returns.
  /// - Parameters:
  ///   - body: its descriptor stands for the real one: a blob, key and hash of the right lengths.
  ///   - spool: the shell's name for the bytes.
  package mutating func sendFile(
    _ body: AttachmentBody, to id: ChatID, expiry: Expiry? = nil, spool: String, at now: ChatTime
  ) throws(EngineError) -> ClientMessageID {
    try perform(at: now) { (engine) throws(EngineError) in
      guard let chat = engine.chats[id] else { throw .chatNotFound }
      let envelope = Envelope(
        id: ClientMessageID(at: now.wall, using: &engine.random), sentAt: now.wall,
        content: .attachment(body), expiry: expiry)
      try engine.send(envelope, in: chat, spool: spool)
      return envelope.id
    }
  }

  /// Files that the server has no message of, in the order they were made; also after a restart. What bytes the shell keeps
  /// under other names belongs to nothing.
  /// - Parameter id: nil for all chats.
  package func pendingUploads(in id: ChatID? = nil) -> [PendingUpload] {
    let entries = chats.values.filter { id == nil || $0.id == id }.flatMap(\.outbox)
    return entries.sorted { $0.order < $1.order }.compactMap { entry in
      guard let upload = entry.upload, let body = Self.file(in: entry) else { return nil }
      let standing: PendingUpload.Standing =
        if let code = entry.failure { .failed(code: code) } else { upload.isReleased ? .released : .waiting }
      return PendingUpload(
        chat: entry.chat, message: entry.id, spool: upload.spool, body: body, standing: standing)
    }
  }

  /// The bytes are with the server under this descriptor: the row shows it, and the message goes out.
  /// - Parameter group: where they went; when the chat lives elsewhere by now this is nothing, and they are wanted there.
  /// - Throws: `messageNotFound` for a message that waits for no bytes, `content` for a descriptor that cannot be sent.
  package mutating func release(
    _ message: ClientMessageID, in id: ChatID, of group: GroupID? = nil, descriptor: AttachmentDescriptor,
    at now: ChatTime
  ) throws(EngineError) {
    try perform(at: now) { (engine) throws(EngineError) in
      guard let chat = engine.chats[id] else { throw .chatNotFound }
      guard let place = chat.outbox.firstIndex(where: { $0.id == message && $0.upload?.isReleased == false })
      else { throw .messageNotFound }
      if let group, group != chat.head.group { return }
      var entry = chat.outbox[place]
      guard var envelope = try? Envelope.decoded(plaintext: entry.plaintext.span),
        case .attachment(var body) = envelope.content
      else { throw .messageNotFound }
      body.descriptor = descriptor
      envelope.content = .attachment(body)
      do throws(ContentError) { entry.plaintext = try envelope.encoded() } catch { throw .content(error) }
      entry.upload?.isReleased = true
      chat.outbox[place] = entry
      chat.wantedUploads.remove(message)
      do throws(MLSStorageError) {
        try engine.change(chat) { (transcript, transaction) throws(MLSStorageError) in
          transaction.put(entry, entry.key)
          return try transcript.replaceOptimistic(envelope, in: &transaction)
        }
        try engine.advance(chat)
      } catch { throw .storage(error) }
    }
  }

  /// The bytes cannot be brought up: the row says so, and `retry` makes them wanted again.
  /// - Parameter code: of requirements 2.2, such as `blob_too_large`.
  package mutating func failUpload(
    _ message: ClientMessageID, in id: ChatID, code: String, at now: ChatTime
  ) throws(EngineError) {
    try perform(at: now) { (engine) throws(EngineError) in
      guard let chat = engine.chats[id] else { throw .chatNotFound }
      guard let place = chat.outbox.firstIndex(where: { $0.id == message && $0.awaitsUpload }) else {
        throw .messageNotFound
      }
      do throws(MLSStorageError) { try engine.fail(place, in: chat, code: code) } catch {
        throw .storage(error)
      }
    }
  }

  // MARK: Parts

  private static func file(in entry: OutboxEntry) -> AttachmentBody? {
    guard let envelope = try? Envelope.decoded(plaintext: entry.plaintext.span),
      case .attachment(let body) = envelope.content
    else { return nil }
    return body
  }

  /// Tells what is to go up and was not told yet.
  mutating func wantUploads(in chat: Chat) {
    guard isReady, chat.head.standing == .active, let group = chat.head.group else { return }
    for entry in chat.outbox where entry.awaitsUpload && chat.wantedUploads.insert(entry.id).inserted {
      events.append(.uploadWanted(chat.id, group, entry.id))
    }
  }

  /// What went up lies where it cannot be fetched any more.
  func wantUploadsAnew(in chat: Chat, _ transaction: inout MLSTransaction) {
    chat.wantedUploads = []
    for place in chat.outbox.indices where chat.outbox[place].upload?.isReleased == true {
      chat.outbox[place].upload?.isReleased = false
      chat.outbox[place].sealed = nil
      transaction.put(chat.outbox[place], chat.outbox[place].key)
    }
  }

  mutating func uploadIsOver(_ entry: OutboxEntry, in chat: Chat) {
    chat.wantedUploads.remove(entry.id)
    if let upload = entry.upload { events.append(.uploadOver(chat.id, entry.id, spool: upload.spool)) }
  }
}
