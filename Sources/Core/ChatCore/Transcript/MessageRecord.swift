import PalbeUnits
import PalbeWire

/// A confirmed row as it is stored: what was said, and all that was folded into it.
struct MessageRecord: ChatRecord {
  /// What there is to show.
  enum Body: Equatable, Sendable {
    /// An encoded `Envelope`, with the latest edit in it.
    case message([UInt8])
    /// Content of a newer version.
    case unsupported(field: UInt32, fallback: String?)
    case system(SystemEvent)
    /// What it said is gone; it was of this kind, as `Shape` numbers it.
    case deleted
    case unreadable
  }

  /// What a row is without reading its body.
  enum Shape: UInt8, Sendable {
    case text = 1
    case image = 2
    case video = 3
    case file = 4
    case voice = 5
    case custom = 6
    case unsupported = 7
    case system = 8
    case unreadable = 9

    var isBubble: Bool { self != .system && self != .unreadable }
    var isMedia: Bool { rawValue >= 2 && rawValue <= 5 }
  }

  var id: ClientMessageID
  var sender: DeviceName?
  var epoch: UInt64
  var sentAt: WallTime
  var shape: Shape
  var body: Body
  /// The sequence number of the edit that holds; 0: none.
  var editSeq: Int64 = 0
  var reactions = ReactionSet()
  var expiry: Expiry?
  /// Nil with an expiry: it was not read yet.
  var deadline: ChatDeadline?

  var isDeleted: Bool { body == .deleted }
  /// Its time begins when it is read.
  var waitsForReader: Bool { expiry?.start == .read && deadline == nil }

  /// A row for a message; nil where the content is not one.
  init?(_ envelope: Envelope, sender: DeviceName, epoch: UInt64) {
    switch envelope.content {
    case .text: shape = .text
    case .attachment(let body): shape = Shape(body.descriptor.kind)
    case .custom: shape = .custom
    case .unknown where envelope.fallback != nil: shape = .unsupported
    // What has no fallback is nothing to show: newer clients act on rows by more than is known here.
    case .unknown, .reaction, .edit, .delete, .control, .receipt: return nil
    }
    if case .unknown(let field) = envelope.content {
      body = .unsupported(field: field, fallback: envelope.fallback)
    } else if let bytes = try? envelope.serialized() {
      body = .message(bytes)
    } else {
      // Cannot be: what was read can be written.
      body = .unreadable
      shape = .unreadable
    }
    (id, self.sender, self.epoch) = (envelope.id, sender, epoch)
    (sentAt, expiry) = (envelope.sentAt, envelope.expiry)
  }

  /// A row that nobody said.
  init(_ body: Body, shape: Shape, id: ClientMessageID, sender: DeviceName?, epoch: UInt64, sentAt: WallTime)
  {
    (self.body, self.shape, self.id, self.sender) = (body, shape, id, sender)
    (self.epoch, self.sentAt) = (epoch, sentAt)
  }
}

extension MessageRecord.Shape {
  init(_ kind: AttachmentKind) {
    switch kind {
    case .image: self = .image
    case .video: self = .video
    case .file: self = .file
    case .voice: self = .voice
    }
  }
}

extension MessageRecord {
  init(from reader: inout ByteReader) throws(WireError) {
    id = try reader.id()
    sender = try reader.flag() ? try reader.device() : nil
    epoch = try reader.uint64()
    sentAt = WallTime(microseconds: try reader.int64())
    shape = try reader.choice("shape of a row")
    switch try reader.uint8() {
    case 1: body = .message(try reader.counted())
    case 2:
      body = .unsupported(field: try reader.uint32(), fallback: try reader.flag() ? try reader.text() : nil)
    case 3: body = .system(try SystemEvent(from: &reader))
    case 4: body = .deleted
    case 5: body = .unreadable
    case let value: throw .invalid(field: "body of a row", value: UInt64(value))
    }
    editSeq = try reader.int64()
    reactions = try ReactionSet(from: &reader)
    expiry = try reader.flag() ? try reader.expiry() : nil
    deadline = try reader.flag() ? try ChatDeadline(from: &reader) : nil
  }

  func encode(into writer: inout ByteWriter) {
    writer.id(id)
    writer.optional(sender) { $0.device($1) }
    writer.uint64(epoch)
    writer.int64(sentAt.microseconds)
    writer.uint8(shape.rawValue)
    switch body {
    case .message(let bytes):
      writer.uint8(1)
      writer.counted(bytes)
    case .unsupported(let field, let fallback):
      writer.uint8(2)
      writer.uint32(field)
      writer.optional(fallback) { $0.text($1) }
    case .system(let event):
      writer.uint8(3)
      event.encode(into: &writer)
    case .deleted: writer.uint8(4)
    case .unreadable: writer.uint8(5)
    }
    writer.int64(editSeq)
    reactions.encode(into: &writer)
    writer.optional(expiry) { $0.expiry($1) }
    writer.optional(deadline) { $1.encode(into: &$0) }
  }
}

/// What acts on another message: a fold, never a row of its own (S0-64, S3-19, S3-21).
struct MessageAction: Equatable, Sendable {
  enum Effect: Equatable, Sendable {
    case reaction(emoji: String, isRemoved: Bool)
    case edit(TextBody)
    case delete
  }

  var target: MessageRef
  var effect: Effect
  /// Whose; only the message's own user edits and deletes (S0-67, S0-69).
  var user: UserID
  /// The server's order; `Int64.max` while it has none.
  var seq: Int64

  /// Nil where the content acts on nothing.
  init?(_ content: Content, by user: UserID, seq: Int64) {
    switch content {
    case .reaction(let target, let emoji, let isRemoved):
      (self.target, effect) = (target, .reaction(emoji: emoji, isRemoved: isRemoved))
    case .edit(let target, let body): (self.target, effect) = (target, .edit(body))
    case .delete(let target): (self.target, effect) = (target, .delete)
    case .text, .attachment, .control, .receipt, .custom, .unknown: return nil
    }
    (self.user, self.seq) = (user, seq)
  }
}

extension MessageRecord {
  /// Folds an action in. What the message's sender alone may do is ignored from anybody else, whatever it
  /// claims (section 3 #21), and a deleted message takes nothing any more (S0-70).
  mutating func apply(_ action: MessageAction) {
    guard shape.isBubble, !isDeleted else { return }
    switch action.effect {
    case .reaction(let emoji, let isRemoved):
      reactions.set(emoji, by: action.user, isRemoved: isRemoved, seq: action.seq)
    case .edit(let edit):
      guard action.user == sender?.user, shape == .text, action.seq >= editSeq,
        case .message(let bytes) = body, var envelope = try? Envelope(serialized: bytes.span),
        case .text(var text) = envelope.content
      else { return }
      (text.text, text.mentions) = (edit.text, edit.mentions)
      envelope.content = .text(text)
      guard let edited = try? envelope.serialized() else { return }
      (body, editSeq) = (.message(edited), action.seq)
    case .delete:
      guard action.user == sender?.user else { return }
      (body, editSeq, reactions) = (.deleted, 0, ReactionSet())
    }
  }
}
