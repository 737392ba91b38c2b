/// What a message says or does.
package enum Content: Equatable, Sendable {
  /// A text.
  case text(TextBody)
  /// A file; its bytes lie with the server as ciphertext, its key is in here.
  case attachment(AttachmentBody)
  /// An emoji set on a message, or taken off it (S0-63).
  case reaction(target: MessageRef, emoji: String, isRemoved: Bool)
  /// A new text for one of the sender's own messages; `reply` of the body is not carried (S0-66).
  case edit(target: MessageRef, TextBody)
  /// The sender's own message is gone for everyone (S0-69).
  case delete(target: MessageRef)
  /// Something about the chat itself.
  case control(ControlBody)
  /// How far somebody got. Reserved: today the server tells this.
  case receipt(ReceiptBody)
  /// An application's own content (S3-9).
  case custom(type: String, payload: [UInt8])
  /// A content of a newer version, by its field's number: shown by the envelope's fallback, and never sent.
  case unknown(field: UInt32)

  /// Something said, not something done to what was said or to the chat.
  var isSaid: Bool {
    switch self {
    case .text, .attachment, .custom: true
    case .reaction, .edit, .delete, .control, .receipt, .unknown: false
    }
  }
}

/// What happens to the chat rather than in it. A control's version is the (epoch, sequence) it was delivered under: of
/// two about one thing the later in the server's order holds (section 3 #28).
package enum ControlBody: Equatable, Sendable {
  /// The group has this name now; an empty one takes the name away (S0-29).
  case renamed(String)
  /// Messages from now on disappear after this by default; nil: they stay (S0-81).
  case timer(Expiry?)
  /// This device applied that timer (S0-86).
  case timerAcknowledged(MessageRef)
  /// The sender's user is about to be taken out by somebody's commit.
  case leaving
  /// Name and timer as the sender knows them, for who could not open the sealed profile.
  case profile(GroupProfile)
}

/// How far a user got with the messages of the chat.
package struct ReceiptBody: Hashable, Sendable {
  /// What happened.
  package var kind: ReceiptKind
  /// To which message, and so to all before it.
  package var upTo: MessageRef

  /// `kind` for all messages up to `upTo`.
  package init(kind: ReceiptKind, upTo: MessageRef) { (self.kind, self.upTo) = (kind, upTo) }
}

/// What a receipt tells.
package enum ReceiptKind: UInt8, Hashable, Sendable, CaseIterable {
  /// It came to the device.
  case delivered = 1
  /// It was shown.
  case read = 2
}
