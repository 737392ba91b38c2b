package import Palbase
package import PalbeChatCore
package import PalbeCrypto
package import PalbeUnits

/// One user's device: owns storage and engine, carries requests over HTTP and the socket, keeps time.
///
///     let shell = try await MessagingShell.open(runtime, user: user, settings: ShellSettings(), sink: sink)
///     await shell.start()
///     let chat = try await shell.directChat(with: peer)
///     let message = try await shell.send(.text(TextBody("hello")), to: chat.id)
package actor MessagingShell {
  /// Opens the user's stores; the sink hears of all chats. It takes no network.
  ///
  /// Throws `BackendError`: `accountBusy` while another process has them, `storeUnavailable`.
  package static func open(
    _ runtime: PalbaseRuntime, user: UserID, settings: ShellSettings, sink: @escaping ShellSink
  ) async throws -> MessagingShell {
    throw BackendError.storeUnavailable(.system(-1))
  }

  private init() {}

  private func missing() -> BackendError { .storeUnavailable(.system(-1)) }

  /// Begins to talk: enrols, connects, fetches. Harmless twice; waits for nothing.
  package func start() async {}

  /// Returns when the server knows this device. Throws `not_signed_in`, `device_revoked`, and what the server says of the
  /// enrolment; goes on waiting while there is no connection.
  package func waitUntilEnrolled() async throws { throw missing() }

  /// Lets go of the file; who waits gets an error, and nothing is lost. Harmless twice.
  package func close() async {}

  // MARK: Chats

  /// The chat with a user, made here where there is none (S0-13).
  package func directChat(with peer: UserID) async throws -> ChatSnapshot { throw missing() }

  /// A new group with these people and the user, only here until its first message (S0-14).
  package func groupChat(title: String?, members: [UserID]) async throws -> ChatSnapshot { throw missing() }

  /// A chat as it is now; nil where there is none.
  package func snapshot(_ chat: ChatID) async throws -> ChatSnapshot? { throw missing() }

  /// The chat that the server calls so; nil where there is none.
  package func chat(_ group: GroupID) async throws -> ChatID? { throw missing() }

  /// Allows or denies who writes there (S3-31).
  package func setConsent(_ consent: PalbeChatCore.ChatConsent, for chat: ChatID) async throws {
    throw missing()
  }

  // MARK: Sending

  /// Sends; returns when the server has it. The row came through the sink before. When it fails, the row stays and can be
  /// tried again.
  package func send(
    _ content: Content, to chat: ChatID, expiry: Expiry? = nil, replyingTo: ClientMessageID? = nil,
    fallback: String? = nil
  ) async throws -> SettledMessage { throw missing() }

  /// Sends without waiting for the server; returns when it is durable (S3-14).
  package func enqueue(
    _ content: Content, to chat: ChatID, expiry: Expiry? = nil, replyingTo: ClientMessageID? = nil,
    fallback: String? = nil
  ) async throws -> ClientMessageID { throw missing() }

  /// Sends a file; returns when the server has it and its message.
  package func sendFile(
    _ file: OutgoingFile, to chat: ChatID, replyingTo: ClientMessageID? = nil, expiry: Expiry? = nil
  ) async throws -> SettledMessage { throw missing() }

  /// Sends a file without waiting for the server; returns when its bytes are sealed here and its row is durable.
  package func enqueueFile(
    _ file: OutgoingFile, to chat: ChatID, replyingTo: ClientMessageID? = nil, expiry: Expiry? = nil
  ) async throws -> ClientMessageID { throw missing() }

  /// Tries a message again that failed.
  package func retry(_ message: ClientMessageID, in chat: ChatID) async throws { throw missing() }

  /// Waits for a message that is on its way, such as one that was tried again; throws what it fails with.
  package func settled(_ message: ClientMessageID, in chat: ChatID) async throws -> SettledMessage {
    throw missing()
  }

  /// Gives a message up that did not go out.
  package func cancel(_ message: ClientMessageID, in chat: ChatID) async throws { throw missing() }

  /// Takes a message off this device alone.
  package func hide(_ message: ClientMessageID, in chat: ChatID) async throws { throw missing() }

  /// What takes the server's help; a failure is thrown as `BackendError`.
  package func command(_ command: EngineCommand) async throws -> CommandResult { throw missing() }

  /// The user types there, or no longer.
  package func setTyping(_ isOn: Bool, in chat: ChatID) async {}

  // MARK: Reading

  /// A part of a transcript, the oldest row first; what is pending with the newest.
  package func page(
    of chat: ChatID, before: TranscriptPosition? = nil, limit: Int, isMedia: Bool = false
  ) async throws -> TranscriptPage { throw missing() }

  /// One row as it is now; nil when it is not here.
  package func row(_ message: ClientMessageID, in chat: ChatID) async throws -> Row? { throw missing() }

  /// How far each other user got.
  package func receipts(in chat: ChatID) async throws -> [ChatReceipt] { throw missing() }

  /// Who has applied the chat's timer (S0-86).
  package func disappearingAckedBy(_ chat: ChatID) async throws -> [UserID] { throw missing() }

  // MARK: Trust

  /// A member's devices as the group authenticates them, also the user's own.
  package func safetyDevices(of user: UserID, in chat: ChatID) async throws -> [PalbeChatCore.DeviceMaterial]
  {
    throw missing()
  }

  /// Remembers that the user compared the safety number (S0-109). Throws `integrity_failed` when the member's devices are
  /// not, or no longer, those of the hash.
  package func verify(_ user: UserID, deviceSetHash: [UInt8], in chat: ChatID) async throws {
    throw missing()
  }

  /// Whether somebody's devices are those that were compared.
  package func trust(of user: UserID) async throws -> StoredTrust { throw missing() }

  // MARK: What others see

  /// What the user lets others see, asked of the server.
  package func commsPrefs() async throws -> StoredCommsPrefs { throw missing() }

  /// Changes what is not nil.
  package func setCommsPrefs(
    sharePresence: Bool? = nil, shareReceipts: Bool? = nil
  ) async throws -> StoredCommsPrefs { throw missing() }

  // MARK: Files

  /// A file's bytes, in pieces of at most 64 KiB: its ciphertext is fetched and its hash checked before the first. A file
  /// of ours that waits comes from this device.
  /// - Parameter progress: bytes fetched and bytes in all; called from any thread.
  package nonisolated func download(
    _ descriptor: AttachmentDescriptor, of message: ClientMessageID? = nil, in chat: ChatID? = nil,
    progress: @escaping @Sendable (Int64, Int64) -> Void = { _, _ in }
  ) -> AsyncThrowingStream<[UInt8], any Error> {
    AsyncThrowingStream { $0.finish(throwing: BackendError.storeUnavailable(.system(-1))) }
  }

  /// A secret of the chat's epoch for the media of calls (section 3 #26).
  package func exportSecret(
    label: String, length: Int, of chat: ChatID, epoch: UInt64? = nil
  ) async throws -> SymmetricKey { throw missing() }
}
