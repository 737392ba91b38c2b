extension Row {
  /// What a record says of itself; what it answers is to be looked for.
  init(_ record: MessageRecord, at position: TranscriptPosition?) {
    id = record.id
    self.position = position
    sender = record.sender
    kind = RowKind(record.shape)
    mentions = []
    reactions = record.isDeleted ? [] : record.reactions.tallies
    isEdited = record.editSeq != 0
    isDeleted = record.isDeleted
    sentAt = record.sentAt
    expiresAt = record.deadline?.wall
    delivery = position == nil ? .pending : .sent
    epoch = record.epoch
    switch record.body {
    case .message(let bytes):
      guard let envelope = try? Envelope(serialized: bytes.span) else {
        kind = .unreadable
        return
      }
      take(envelope)
    case .unsupported(let field, let fallback): (kind, text) = (.unsupported(field: field), fallback)
    case .system(let event): kind = .system(event)
    case .unreadable: kind = .unreadable
    case .deleted: break
    }
  }

  private mutating func take(_ envelope: Envelope) {
    switch envelope.content {
    case .text(let body):
      (kind, text, mentions, replyReference) = (.text, body.text, body.mentions, body.reply)
    case .attachment(let body):
      kind = RowKind(MessageRecord.Shape(body.descriptor.kind))
      (attachment, caption, replyReference) = (body.descriptor, body.caption, body.reply)
    case .custom(let type, let payload):
      (kind, text) = (.custom(type: type, payload: payload), envelope.fallback)
    case .reaction, .edit, .delete, .control, .receipt, .unknown: kind = .unreadable
    }
  }
}

extension RowKind {
  /// The kind of a row whose content is gone, or not read yet.
  init(_ shape: MessageRecord.Shape) {
    switch shape {
    case .text: self = .text
    case .image: self = .image
    case .video: self = .video
    case .file: self = .file
    case .voice: self = .voice
    case .custom: self = .custom(type: "", payload: [])
    case .unsupported: self = .unsupported(field: 0)
    case .system, .unreadable: self = .unreadable
    }
  }
}
