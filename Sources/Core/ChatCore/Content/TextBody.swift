import PalbeUnits

/// A text with the people it mentions and the message it answers.
package struct TextBody: Equatable, Sendable {
  /// The text; at most 64 KiB of UTF-8.
  package var text: String
  /// In the order they were made; they lie inside the text and do not overlap.
  package var mentions: [Mention]
  /// What it answers.
  package var reply: ReplyReference?

  /// A text.
  package init(_ text: String, mentions: [Mention] = [], reply: ReplyReference? = nil) {
    (self.text, self.mentions, self.reply) = (text, mentions, reply)
  }
}

/// A stretch of a text that names a user, half-open, in UTF-16 code units (S0-73, S0-75).
package struct Mention: Hashable, Sendable {
  /// Where it begins.
  package var start: Int
  /// How long it is.
  package var length: Int
  /// Whom it names.
  package var user: UserID

  /// `length` code units from `start`.
  package init(start: Int, length: Int, user: UserID) {
    (self.start, self.length, self.user) = (start, length, user)
  }
}

/// Which message is answered, and how it looked to who answers.
package struct ReplyReference: Equatable, Sendable {
  /// The message.
  package var parent: MessageRef
  /// Shown only while the parent is not at hand: a sender can claim anything here (S0-61).
  package var quote: ReplyQuote

  /// An answer to `parent`.
  package init(parent: MessageRef, quote: ReplyQuote) { (self.parent, self.quote) = (parent, quote) }
}

/// A short picture of a message (S0-60).
package struct ReplyQuote: Equatable, Sendable {
  /// Who is said to have sent it.
  package var sender: UserID
  /// `text`, `image`, `video`, `file`, `voice`, or a newer word.
  package var kind: String
  /// Its beginning; at most 512 bytes of UTF-8.
  package var text: String?

  /// A quote.
  package init(sender: UserID, kind: String, text: String? = nil) {
    (self.sender, self.kind, self.text) = (sender, kind, text)
  }
}
