/// How large the parts of a message may be; held by who writes and by who reads (2.9j).
package enum ContentLimits {
  /// A padded message's bytes, written or read. The server takes 256 KiB of ciphertext.
  package static let plaintextByteCount = 128 << 10
  /// A text's, edit's or caption's bytes of UTF-8.
  package static let textByteCount = 64 << 10
  /// Mentions in a text.
  package static let mentionCount = 100
  /// A quote's bytes of UTF-8.
  package static let quoteByteCount = 512
  /// A quote's kind.
  package static let quoteKindByteCount = 32
  /// An emoji's bytes of UTF-8; it is one grapheme.
  package static let emojiByteCount = 32
  /// The text that stands for an unknown content.
  package static let fallbackByteCount = 1 << 10
  /// A file's name.
  package static let filenameByteCount = 255
  /// A media type.
  package static let mimeTypeByteCount = 127
  /// A thumbnail.
  package static let thumbnailByteCount = 32 << 10
  /// Peaks of a waveform.
  package static let waveformCount = 256
  /// A group's name.
  package static let nameByteCount = 256
  /// The name of a custom content's type.
  package static let customTypeByteCount = 64
  /// A custom content's payload.
  package static let customPayloadByteCount = 64 << 10
  /// Reactions that one user may have on one message; held by the transcript.
  package static let reactionsPerUser = 20
}
