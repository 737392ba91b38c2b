package import Palbase
package import PalbeChatCore
package import PalbeCrypto
import PalbeMLS
package import PalbeUnits
import PalbeWire

/// One user's device: owns storage and engine, carries requests over HTTP and the socket, keeps time.
///
///     let shell = try await MessagingShell.open(runtime, user: user, settings: ShellSettings(), sink: sink)
///     await shell.start()
///     let chat = try await shell.directChat(with: peer)
///     let message = try await shell.send(.text(TextBody("hello")), to: chat.id)
///
/// It lives on a thread of its own (`ShellThread`). Whatever waits there is taken in one turn (`turn()`), whose writes are one
/// batch of the storage; only when that is on the medium do callers, requests and events go out. What is told is collected
/// while the main actor is busy (`deliver()`).
package actor MessagingShell {
  /// The engine where a class can own it.
  final class EngineBox {
    var engine: ChatEngine
    init(_ engine: consuming ChatEngine) { self.engine = engine }
  }

  /// Where the shell stands.
  enum Phase: Equatable {
    case opening
    case open
    case ended(ShellEnd)
  }

  typealias Settling = CheckedContinuation<SettledMessage, any Error>

  private nonisolated let thread: ShellThread
  package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  nonisolated let runtime: PalbaseRuntime
  package nonisolated let user: UserID
  nonisolated let settings: ShellSettings
  nonisolated let folder: String
  nonisolated let mailbox = Mailbox()
  nonisolated let carrier: Carrier
  nonisolated let spool: SpoolWorker
  let sink: ShellSink

  var phase = Phase.opening
  var storage: SealedStorage?
  var box: EngineBox?
  var isStarted = false

  // Who waits.
  var settling: [ClientMessageID: [Settling]] = [:]
  var commands: [CommandID: CheckedContinuation<CommandResult, any Error>] = [:]
  var lastCommand: UInt64 = 0
  var enrolling: [CheckedContinuation<Void, any Error>] = []
  var enrolledAt: Instant?

  // What is told.
  var pending: [ShellEvent] = []
  var dirty: Set<ChatID> = []
  /// Run when all that was told before has arrived.
  var afterDelivery: [@Sendable () -> Void] = []
  var isDelivering = false
  var deliveryWait: Task<Void, Never>?
  var receiptsChanged: Set<ChatID> = []

  // What is under way.
  var requests: [RequestID: Task<Void, Never>] = [:]
  var topics: [String: Topic] = [:]
  var uploads: [ClientMessageID: Task<Void, Never>] = [:]
  var waitingUploads: [UploadJob] = []
  var isConnected = false
  /// The last page of the queue was the last: what follows is short, and may come over the socket.
  var isQueueShort = false
  var timer: (deadline: Instant, task: Task<Void, Never>)?
  var pollAt: Instant?
  var pollWait: TimeDelta
  var lastClock: (wall: WallTime, instant: Instant)?
  var followers: [Task<Void, Never>] = []
  var hasRepaired = false
  var lastSession: AuthState?
  /// False: the user does not let others see that they type (S0-101).
  var sharesPresence = true

  private init(
    _ runtime: PalbaseRuntime, _ user: UserID, _ settings: ShellSettings, _ sink: @escaping ShellSink
  ) {
    thread = ShellThread(name: "palbe-chat")
    (self.runtime, self.user, self.settings, self.sink) = (runtime, user, settings, sink)
    folder = settings.folder ?? Self.folder(of: user, in: runtime)
    carrier = Carrier(runtime: runtime, user: user)
    spool = SpoolWorker(folder: "\(folder)/spool", random: runtime.time.randomSource)
    pollWait = settings.firstPoll
  }

  deinit {
    timer?.task.cancel()
    for task in requests.values { task.cancel() }
    for task in followers { task.cancel() }
    for topic in topics.values { topic.task.cancel() }
    for task in uploads.values { task.cancel() }
    thread.end()
  }

  /// Where a user's stores lie: a folder of their own, whose name says nothing.
  package static func folder(of user: UserID, in runtime: PalbaseRuntime) -> String {
    let hash = SHA256.hash(Array("palbe messaging folder".utf8) + user.bytes)
    return "\(runtime.folder)/messaging/\(Hex.encode(Array(hash[..<12])))"
  }

  /// Opens the user's stores; the sink hears of all chats. It takes no network.
  ///
  /// Throws `BackendError`: `accountBusy` while another process has them, `storeUnavailable`.
  package static func open(
    _ runtime: PalbaseRuntime, user: UserID, settings: ShellSettings, sink: @escaping ShellSink
  ) async throws -> MessagingShell {
    let shell = MessagingShell(runtime, user, settings, sink)
    do { try await shell.openStores() } catch {
      await shell.end(.storageFailed, isTold: false)
      throw error
    }
    return shell
  }

  // MARK: Chats

  /// The chat with a user, made here where there is none (S0-13).
  package func directChat(with peer: UserID) async throws -> ChatSnapshot {
    try await perform { (shell, box) throws in
      let id = try shell.engine { (now) throws(EngineError) in try box.engine.directChat(with: peer, at: now)
      }
      return try shell.existing(id)
    }
  }

  /// A new group with these people and the user, only here until its first message (S0-14).
  package func groupChat(title: String?, members: [UserID]) async throws -> ChatSnapshot {
    try await perform { (shell, box) throws in
      let id = try shell.engine { (now) throws(EngineError) in
        try box.engine.groupChat(title: title, members: members, at: now)
      }
      return try shell.existing(id)
    }
  }

  /// A chat as it is now; nil where there is none.
  package func snapshot(_ chat: ChatID) async throws -> ChatSnapshot? {
    try await perform { (shell, _) throws in try shell.makeSnapshot(chat) }
  }

  /// The chat that the server calls so; nil where there is none.
  package func chat(_ group: GroupID) async throws -> ChatID? {
    try await perform { (_, box) throws in box.engine.chat(group) }
  }

  /// Allows or denies who writes there (S3-31).
  package func setConsent(_ consent: PalbeChatCore.ChatConsent, for chat: ChatID) async throws {
    try await perform { (shell, box) throws in
      try shell.engine { (now) throws(EngineError) in try box.engine.setConsent(consent, for: chat, at: now) }
    }
  }

  // MARK: Sending

  /// Sends; returns when the server has it. The row came through the sink before. When it fails, the row stays and can be
  /// tried again.
  package func send(
    _ content: Content, to chat: ChatID, expiry: Expiry? = nil, replyingTo: ClientMessageID? = nil,
    fallback: String? = nil
  ) async throws -> SettledMessage {
    try await settle { (shell, box) throws in
      try shell.send(content, chat, expiry, replyingTo, fallback, box)
    }
  }

  /// Sends without waiting for the server; returns when it is durable (S3-14).
  package func enqueue(
    _ content: Content, to chat: ChatID, expiry: Expiry? = nil, replyingTo: ClientMessageID? = nil,
    fallback: String? = nil
  ) async throws -> ClientMessageID {
    try await perform(isShown: true) { (shell, box) throws in
      try shell.send(content, chat, expiry, replyingTo, fallback, box)
    }
  }

  private func send(
    _ content: Content, _ chat: ChatID, _ expiry: Expiry?, _ reply: ClientMessageID?, _ fallback: String?,
    _ box: EngineBox
  ) throws -> ClientMessageID {
    try engine { (now) throws(EngineError) in
      let content = try content.replying(to: reply, in: chat, box, at: now)
      let expiry = try content.expiry(expiry, in: chat, box, at: now)
      return try box.engine.send(content, to: chat, expiry: expiry, fallback: fallback, at: now)
    }
  }

  /// Tries a message again that failed.
  package func retry(_ message: ClientMessageID, in chat: ChatID) async throws {
    try await perform(isShown: true) { (shell, box) throws in
      try shell.engine { (now) throws(EngineError) in try box.engine.retry(message, in: chat, at: now) }
    }
  }

  /// Waits for a message of ours that is on its way, such as one that was tried again; throws what it fails with.
  package func settled(_ message: ClientMessageID, in chat: ChatID) async throws -> SettledMessage {
    try await withCheckedThrowingContinuation { continuation in
      post(
        .call(
          ShellCall(
            run: { shell in
              guard let box = shell.box else { return nil }
              let row: Row?
              do {
                row = try shell.engine { (now) throws(EngineError) in
                  try box.engine.row(message, in: chat, at: now)
                }
              } catch { return { continuation.resume(throwing: error) } }
              switch row?.delivery {
              case .sent:
                let settled = SettledMessage(id: message, seq: row?.seq ?? 0, epoch: row?.epoch ?? 0)
                return { continuation.resume(returning: settled) }
              case .failed(let code):
                return { continuation.resume(throwing: BackendError.client(FailureCode(rawValue: code))) }
              case .pending:
                shell.settling[message, default: []].append(continuation)
                return nil
              case nil: return { continuation.resume(throwing: BackendError.client(.chatNotFound)) }
              }
            }, refuse: { continuation.resume(throwing: $0) })))
    }
  }

  /// Tries a message again that failed, and waits for the server.
  package func retryAndSettle(
    _ message: ClientMessageID, in chat: ChatID
  ) async throws -> SettledMessage {
    try await settle { (shell, box) throws in
      try shell.engine { (now) throws(EngineError) in try box.engine.retry(message, in: chat, at: now) }
      return message
    }
  }

  /// Gives a message up that did not go out.
  package func cancel(_ message: ClientMessageID, in chat: ChatID) async throws {
    try await perform(isShown: true) { (shell, box) throws in
      try shell.engine { (now) throws(EngineError) in try box.engine.cancel(message, in: chat, at: now) }
      shell.settled(message, .failure(CancellationError()))
    }
  }

  /// Takes a message off this device alone.
  package func hide(_ message: ClientMessageID, in chat: ChatID) async throws {
    try await perform(isShown: true) { (shell, box) throws in
      try shell.engine { (now) throws(EngineError) in try box.engine.hide(message, in: chat, at: now) }
    }
  }

  /// What takes the server's help; a failure is thrown as `BackendError`.
  package func command(_ command: EngineCommand) async throws -> CommandResult {
    try await withCheckedThrowingContinuation { continuation in
      post(
        .call(
          ShellCall(
            run: { shell in
              shell.lastCommand += 1
              let id = CommandID(shell.lastCommand)
              shell.commands[id] = continuation
              shell.box?.engine.handle(.command(id, command), at: shell.now())
              return nil
            }, refuse: { continuation.resume(throwing: $0) })))
    }
  }

  /// The user types there, or no longer.
  package func setTyping(_ isOn: Bool, in chat: ChatID) async {
    _ = try? await perform { (shell, box) throws in
      box.engine.setTyping(isOn && shell.sharesPresence, in: chat, at: shell.now())
    }
  }

  // MARK: Reading

  /// A part of a transcript, the oldest row first; what is pending with the newest.
  package func page(
    of chat: ChatID, before: TranscriptPosition? = nil, limit: Int, isMedia: Bool = false
  ) async throws -> TranscriptPage {
    try await perform { (shell, box) throws in
      try shell.engine { (now) throws(EngineError) in
        try box.engine.page(of: chat, before: before, limit: limit, isMedia: isMedia, at: now)
      }
    }
  }

  /// One row as it is now; nil when it is not here.
  package func row(_ message: ClientMessageID, in chat: ChatID) async throws -> Row? {
    try await perform { (shell, box) throws in
      try shell.engine { (now) throws(EngineError) in try box.engine.row(message, in: chat, at: now) }
    }
  }

  /// How far each other user got.
  package func receipts(in chat: ChatID) async throws -> [ChatReceipt] {
    try await perform { (shell, box) throws in try shell.receipts(in: chat, box) }
  }

  func receipts(in chat: ChatID, _ box: EngineBox) throws -> [ChatReceipt] {
    let transcript = try transcript(chat, box)
    return try box.engine.members(of: chat).map(\.user).filter { $0 != user }.map { user in
      let marks = try Self.stored { () throws(MLSStorageError) in try transcript.watermarks(of: user) }
      return ChatReceipt(user: user, deliveredSeq: marks.delivered, readSeq: marks.read)
    }
  }

  /// Who has applied the chat's timer (S0-86).
  package func disappearingAckedBy(_ chat: ChatID) async throws -> [UserID] {
    try await perform { (shell, box) throws in
      try shell.engine { (now) throws(EngineError) in try box.engine.disappearingAckedBy(chat, at: now) }
    }
  }

  func transcript(_ chat: ChatID, _ box: EngineBox) throws -> Transcript {
    try engine { (now) throws(EngineError) in try box.engine.transcript(of: chat, at: now) }
  }

  static func stored<Value>(_ body: () throws(MLSStorageError) -> Value) throws -> Value {
    do throws(MLSStorageError) { return try body() } catch { throw BackendError(error) }
  }

  /// A secret of the chat's epoch for the media of calls (section 3 #26).
  package func exportSecret(
    label: String, length: Int, of chat: ChatID, epoch: UInt64? = nil
  ) async throws -> SymmetricKey {
    let secret = try await perform { (shell, box) throws in
      try shell.engine { (now) throws(EngineError) in
        AttachmentKey(
          try box.engine.exportSecret(label: label, length: length, of: chat, epoch: epoch, at: now))
      }
    }
    return secret.copy()
  }
}

extension Content {
  /// When it disappears: what was said for it wins over the chat's default (S0-83), which is for what is said alone.
  func expiry(
    _ explicit: Expiry?, in chat: ChatID, _ box: MessagingShell.EngineBox, at now: ChatTime
  ) throws(EngineError) -> Expiry? {
    switch self {
    case .text, .attachment, .custom:
      try box.engine.transcript(of: chat, at: now).expiry(explicit: explicit)
    case .reaction, .edit, .delete, .control, .receipt, .unknown: explicit
    }
  }

  /// The same as an answer to a message; one that cannot be answered leaves it as it is (S0-62).
  func replying(
    to parent: ClientMessageID?, in chat: ChatID, _ box: MessagingShell.EngineBox, at now: ChatTime
  ) throws(EngineError) -> Content {
    guard let parent else { return self }
    let transcript = try box.engine.transcript(of: chat, at: now)
    let quote: ReplyReference?
    do throws(MLSStorageError) { quote = try transcript.quote(of: parent) } catch { throw .storage(error) }
    switch self {
    case .text(var body):
      body.reply = quote
      return .text(body)
    case .attachment(var body):
      body.reply = quote
      return .attachment(body)
    default: return self
    }
  }
}
