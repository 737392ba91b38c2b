public import Foundation
import Palbase
import PalbeChatCore
import PalbeUnits

/// Sending. Each call makes a message that shows in `messages` at once, and returns when the server has it; of a draft the
/// first founds the chat (S0-31, S3-13). When it throws, the message stays as `failed` and can be tried again.
///
/// All throw `not_signed_in`, `not_a_member`, `no_key_package`, `rate_limited`, errors of the connection and of the store.
extension Chat {
  /// Sends a text of at most 64 KiB. Throws `message_too_large` for a longer one.
  @discardableResult
  public func send(text: String) async throws -> SentReceipt {
    try await send(try TextBody(checked: text, []))
  }

  /// Sends a text that names people (S0-33). Without any it is a plain text. Throws `invalid_request` for a range that
  /// leaves the text, cuts a character's pair, overlaps another or names no user, and for more than 100.
  @discardableResult
  public func send(text: String, mentions: [MentionRange]) async throws -> SentReceipt {
    try await send(try TextBody(checked: text, mentions))
  }

  /// Sends an answer (S0-34). To nothing, to a system message, and to a message that the app made it is a plain text (S0-62).
  @discardableResult
  public func send(text: String, replyingTo parent: ChatMessage?) async throws -> SentReceipt {
    try await send(try TextBody(checked: text, []), replyingTo: parent)
  }

  /// Sends a text that disappears (S0-35). It wins over the chat's own time (S0-83). Throws `invalid_request` for a time
  /// that is not positive.
  @discardableResult
  public func send(
    text: String, expiresIn ttlSeconds: Int, start: ExpiryStart = .send
  ) async throws -> SentReceipt {
    try await send(
      try TextBody(checked: text, []), expiry: try Expiry(ttlSeconds: ttlSeconds, start: start))
  }

  private func send(
    _ body: TextBody, replyingTo parent: ChatMessage? = nil, expiry: Expiry? = nil
  ) async throws -> SentReceipt {
    try await send(.text(body), replyingTo: parent?.answerable, expiry: expiry)
  }

  /// Sends an app's own content (S3-9); `fallback` is shown by who does not know it.
  /// - Parameters:
  ///   - type: at most 64 bytes, such as `com.example.gift`.
  ///   - payload: at most 64 KiB.
  @discardableResult
  public func send(custom type: String, payload: Data, fallback: String) async throws -> SentReceipt {
    guard payload.count <= ContentLimits.customPayloadByteCount else {
      throw BackendError.client(.messageTooLarge)
    }
    return try await send(.custom(type: type, payload: [UInt8](payload)), fallback: fallback)
  }

  func send(
    _ content: Content, replyingTo parent: ClientMessageID? = nil, expiry: Expiry? = nil,
    fallback: String? = nil
  ) async throws -> SentReceipt {
    let (shell, chat) = try await reach()
    return SentReceipt(
      try await shell.send(content, to: chat, expiry: expiry, replyingTo: parent, fallback: fallback))
  }

  // MARK: Files

  /// Sends a picture with a thumbnail that travels inside the message, so that it shows before it is fetched (S0-36, S0-41).
  /// JPEG and PNG have one; other formats, and a picture that cannot be read, go without. Throws `attachment_too_large`.
  @discardableResult
  public func send(
    image: Data, filename: String, mimeType: String = "image/jpeg"
  ) async throws -> SentReceipt {
    var file = try outgoing(image, .image, filename, mimeType)
    if let thumbnail = await Thumbnail.make(of: image) {
      file.thumbnail = [UInt8](thumbnail.jpeg)
      (file.width, file.height) = (UInt32(thumbnail.width), UInt32(thumbnail.height))
    }
    return try await send(file)
  }

  /// Sends any file; what it is follows from `mimeType` (S0-37, S0-40). It has no thumbnail.
  @discardableResult
  public func send(file: Data, filename: String, mimeType: String) async throws -> SentReceipt {
    try await send(try outgoing(file, AttachmentKind(mimeType: mimeType), filename, mimeType))
  }

  /// Sends a voice message, as `voice.m4a` of type `audio/m4a` (S0-38, S0-42).
  /// - Parameter peaks: of the waveform, 0 to 255, at most 256; more are folded. Nil: they are worked out from sound that
  ///   is WAV; compressed sound takes a decoder, which an app that only chats does not carry, and goes without.
  @discardableResult
  public func send(voice: Data, durationMs: Int, peaks: [Int]? = nil) async throws -> SentReceipt {
    var file = try outgoing(voice, .voice, "voice.m4a", "audio/m4a")
    file.durationMs = try UInt32(milliseconds: durationMs)
    file.waveform = if let peaks { Waveform.folded(peaks) } else { await Waveform.peaks(of: voice) }
    return try await send(file)
  }

  /// Sends a video with a picture to show before it is fetched (S0-43).
  /// - Parameter poster: JPEG or PNG; it is made a thumbnail of.
  @discardableResult
  public func send(
    video: Data, filename: String, mimeType: String = "video/mp4", durationMs: Int, poster: Data? = nil
  ) async throws -> SentReceipt {
    var file = try outgoing(video, .video, filename, mimeType)
    file.durationMs = try UInt32(milliseconds: durationMs)
    if let poster, let thumbnail = await Thumbnail.make(of: poster) {
      file.thumbnail = [UInt8](thumbnail.jpeg)
      (file.width, file.height) = (UInt32(thumbnail.width), UInt32(thumbnail.height))
    }
    return try await send(file)
  }

  private func outgoing(
    _ data: Data, _ kind: AttachmentKind, _ filename: String, _ mimeType: String
  ) throws -> OutgoingFile {
    guard !filename.isEmpty, filename.utf8.count <= ContentLimits.filenameByteCount,
      TextRules.isFilename(filename), mimeType.utf8.count <= ContentLimits.mimeTypeByteCount
    else { throw BackendError.client(.invalidRequest) }
    return OutgoingFile(.bytes([UInt8](data)), kind: kind.core, filename: filename, mimeType: mimeType)
  }

  private func send(_ file: OutgoingFile) async throws -> SentReceipt {
    let (shell, chat) = try await reach()
    return SentReceipt(try await shell.sendFile(file, to: chat))
  }

  // MARK: What failed

  /// Tries a message again that failed; returns when the server has it (S3-18). Of any other, nothing.
  public func retry(_ message: ChatMessage) async throws {
    guard case .failed = message.delivery, let id = message.contents.reference else { return }
    let (shell, chat) = try await reach()
    try await shell.retry(id, in: chat)
    _ = try await shell.settled(id, in: chat)
  }

  /// Gives a message up that is not at the server: it goes from `messages` (S3-18). Of any other, nothing.
  public func cancel(_ message: ChatMessage) async throws {
    guard message.delivery != .sent, let id = message.contents.reference else { return }
    let (shell, chat) = try await reach(talks: false)
    try await shell.cancel(id, in: chat)
  }
}

extension SentReceipt {
  init(_ message: SettledMessage) {
    self.init(messageId: message.id.text, serverSeq: message.seq, epoch: message.epoch)
  }
}

extension TextBody {
  /// Throws `message_too_large` and `invalid_request`.
  init(checked text: String, _ ranges: [MentionRange]) throws {
    guard text.utf8.count <= ContentLimits.textByteCount else { throw BackendError.client(.messageTooLarge) }
    let mentions = ranges.compactMap { range in
      UserID(range.mentionedUserId).map { Mention(start: range.start, length: range.length, user: $0) }
    }
    guard mentions.count == ranges.count, mentions.count <= ContentLimits.mentionCount,
      TextRules.standing(mentions, in: text).count == mentions.count
    else { throw BackendError.client(.invalidRequest) }
    self.init(text, mentions: mentions)
  }
}

extension ChatMessage {
  /// What an answer to it names; nil for what cannot be answered (S0-62).
  var answerable: ClientMessageID? {
    switch kind {
    case .system, .unreadable: nil
    default: contents.reference
    }
  }
}

extension UInt32 {
  /// Throws `invalid_request` for what no recording takes.
  init(milliseconds: Int) throws {
    guard let value = UInt32(exactly: milliseconds) else { throw BackendError.client(.invalidRequest) }
    self = value
  }
}
