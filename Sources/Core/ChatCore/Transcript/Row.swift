import PalbeUnits

/// One line of a chat as it is shown: what was sent, and what became of it since.
package struct Row: Equatable, Sendable {
  /// The same from the moment it is made on (S3-7, S3-17).
  package var id: ClientMessageID
  /// Its place among confirmed rows; nil while the server has not taken it.
  package var position: TranscriptPosition?
  /// Who sent it, as MLS authenticated; who did it, for a system row; nil where nobody did.
  package var sender: DeviceName?
  package var kind: RowKind
  /// What is said; nil for files, for what is deleted, and for system rows (S0-48). For content that is not
  /// known its fallback (S3-8).
  package var text: String?
  /// Inside `text`, in UTF-16 code units.
  package var mentions: [Mention]
  package var attachment: AttachmentDescriptor?
  /// The text under a file.
  package var caption: String?
  package var reply: ResolvedReply?
  /// In the order in which each emoji came first.
  package var reactions: [ReactionTally]
  /// Once true, true (S0-68).
  package var isEdited: Bool
  /// Once true, true; nothing of what it said is left (S0-70).
  package var isDeleted: Bool
  /// When it was composed, by the sender's clock.
  package var sentAt: WallTime
  /// When it disappears here by the wall clock; nil for never, or not before it is read.
  package var expiresAt: WallTime?
  package var delivery: Delivery
  /// The MLS epoch it was accepted in; 0 while it is not.
  package var epoch: UInt64
  /// What its sender says it answers.
  var replyReference: ReplyReference?

  /// The server's number; nil while it is not confirmed.
  package var seq: Int64? { position?.seq }

  /// The beginning of what it says; of a file the text under it.
  func excerpt(byteCount: Int) -> String? { (text ?? caption)?.beginning(byteCount: byteCount) }
}

/// What kind of row it is.
package enum RowKind: Equatable, Sendable {
  case text
  case image
  case video
  case file
  case voice
  /// Nothing that anybody said (2.3).
  case system(SystemEvent)
  /// An application's own content (S3-9).
  case custom(type: String, payload: [UInt8])
  /// Content of a newer version, by its field's number (S0-141).
  case unsupported(field: UInt32)
  /// A message that could not be read, here for good.
  case unreadable

  /// Something that somebody said, and so counted as unread, previewed, answered and reacted to.
  package var isBubble: Bool {
    switch self {
    case .system, .unreadable: false
    default: true
    }
  }

  /// The word of a quote (S0-60).
  package var word: String {
    switch self {
    case .text: "text"
    case .image: "image"
    case .video: "video"
    case .file: "file"
    case .voice: "voice"
    case .system: "system"
    case .custom: "custom"
    case .unsupported: "unsupported"
    case .unreadable: "unreadable"
    }
  }
}

/// How far a row of one's own got (S3-15).
package enum Delivery: Hashable, Sendable {
  /// It waits, or is on its way.
  case pending
  /// The server has it; also every row of somebody else.
  case sent
  /// It did not get there and nothing is tried until somebody says so; with a code of requirements 2.2.
  case failed(code: String)
}

/// One emoji on a row, and who set it, in the order in which they did.
package struct ReactionTally: Hashable, Sendable {
  package var emoji: String
  package var users: [UserID]

  package init(emoji: String, users: [UserID]) { (self.emoji, self.users) = (emoji, users) }
}

/// What a row answers, taken from the real message where it is at hand (S0-60, S0-61).
package struct ResolvedReply: Hashable, Sendable {
  package enum State: Hashable, Sendable {
    /// The quote is the message itself; what the answer's sender claims about it is not looked at.
    case resolved
    /// The message is not here. The quote is what the answer's sender says, or nothing where it was here and
    /// is gone.
    case unavailable
  }

  package var parent: MessageRef
  package var state: State
  package var quoteSender: UserID
  package var quoteKind: String
  /// The message's beginning; nil for files without a text and for what is gone.
  package var quoteText: String?

  package init(
    parent: MessageRef, state: State, quoteSender: UserID, quoteKind: String, quoteText: String?
  ) {
    (self.parent, self.state, self.quoteSender) = (parent, state, quoteSender)
    (self.quoteKind, self.quoteText) = (quoteKind, quoteText)
  }
}

/// What the models are told, in order.
///
/// An answer's quote follows its parent without a change of its own: who shows rows reads those with
/// `reply?.parent == id` again when `id` is inserted, updated or removed.
package enum TranscriptChange: Equatable, Sendable {
  case inserted(Row)
  case updated(Row)
  case removed(ClientMessageID)
  /// An incoming message mentions this user; told at most once for a message, ever (S0-80).
  case elevated(ClientMessageID)
}

/// A message out of MLS, as the device's queue brought it.
package struct Incoming: Sendable {
  /// Its place in the server's log.
  package var seq: Int64
  package var sender: DeviceName
  /// The epoch it was sent in.
  package var epoch: UInt64
  /// Now.
  package var receivedAt: ChatTime
  /// When the server took it.
  package var serverAt: WallTime
  package var envelope: Envelope

  package init(
    seq: Int64, sender: DeviceName, epoch: UInt64, receivedAt: ChatTime, serverAt: WallTime,
    envelope: Envelope
  ) {
    (self.seq, self.sender, self.epoch) = (seq, sender, epoch)
    (self.receivedAt, self.serverAt, self.envelope) = (receivedAt, serverAt, envelope)
  }
}
