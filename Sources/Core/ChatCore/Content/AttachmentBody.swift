import PalbeUnits

/// A file in a chat.
package struct AttachmentBody: Equatable, Sendable {
  /// What is needed to fetch and open it.
  package var descriptor: AttachmentDescriptor
  /// What it answers.
  package var reply: ReplyReference?
  /// A text under it.
  package var caption: String?

  /// A file.
  package init(_ descriptor: AttachmentDescriptor, reply: ReplyReference? = nil, caption: String? = nil) {
    (self.descriptor, self.reply, self.caption) = (descriptor, reply, caption)
  }
}

/// What kind of file it is (S0-40).
package enum AttachmentKind: UInt8, Hashable, Sendable, CaseIterable {
  case image = 1
  case video = 2
  /// Anything; also a kind of a newer version.
  case file = 3
  case voice = 4
}

/// Where a file's ciphertext lies, how to open it, and what to show before it is fetched (S0-44, S0-46, S0-56).
package struct AttachmentDescriptor: Equatable, Sendable {
  /// The ciphertext's name at the server.
  package var blob: BlobID
  /// The key of this ciphertext and of no other.
  package var key: AttachmentKey
  /// SHA-256 of the ciphertext, 32 bytes; checked before anything is decrypted.
  package var cipherHash: [UInt8]
  /// Bytes of the ciphertext; `AttachmentLayout` gives it for every `plainByteCount`.
  package var cipherByteCount: Int64
  /// Bytes of the file.
  package var plainByteCount: Int64
  /// What it is.
  package var kind: AttachmentKind
  /// What it was called; a name without a path.
  package var filename: String
  /// Its media type, such as `image/jpeg`.
  package var mimeType: String
  /// A small picture of it, at most 32 KiB.
  package var thumbnail: [UInt8]?
  /// Peaks of a voice message, at most 256.
  package var waveform: [UInt8]?
  /// How long it plays.
  package var durationMs: UInt32?
  /// Pixels across.
  package var width: UInt32?
  /// Pixels down.
  package var height: UInt32?

  /// What is known of any file; the rest is set afterwards.
  package init(
    blob: BlobID, key: AttachmentKey, cipherHash: [UInt8], cipherByteCount: Int64, plainByteCount: Int64,
    kind: AttachmentKind, filename: String, mimeType: String
  ) {
    (self.blob, self.key, self.cipherHash) = (blob, key, cipherHash)
    (self.cipherByteCount, self.plainByteCount) = (cipherByteCount, plainByteCount)
    (self.kind, self.filename, self.mimeType) = (kind, filename, mimeType)
  }
}
