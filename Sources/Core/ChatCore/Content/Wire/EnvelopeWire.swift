import PalbeProtobuf

// The messages of docs/wire-format.md, field for field. Presence and limits are looked at when they become contents.

/// `Envelope`. Of the contents one is there; which fields may be contents of newer versions is fixed.
struct EnvelopeWire: ProtobufMessage {
  static let contents: ClosedRange<UInt32> = 16...63

  var version: UInt32 = 0
  var id: [UInt8] = []
  var sentAtMs: Int64 = 0
  var expiry: ExpiryWire?
  var fallback: String?
  var text: TextWire?
  var attachment: AttachmentWire?
  var reaction: ReactionWire?
  var edit: EditWire?
  var delete: TargetWire?
  var control: ControlWire?
  var receipt: ReceiptWire?
  var custom: CustomWire?
  var unknownFields: [UInt8] = []

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "version", &version)
    try f.field(2, "id", &id)
    try f.field(3, "sent_at_ms", &sentAtMs)
    try f.field(4, "expiry", &expiry)
    try f.field(5, "fallback", &fallback)
    try f.field(16, "text", &text)
    try f.field(17, "attachment", &attachment)
    try f.field(18, "reaction", &reaction)
    try f.field(19, "edit", &edit)
    try f.field(20, "delete", &delete)
    try f.field(21, "control", &control)
    try f.field(22, "receipt", &receipt)
    try f.field(23, "custom", &custom)
    try f.unknown(&unknownFields)
  }
}

/// `Expiry`.
struct ExpiryWire: ProtobufMessage {
  var seconds: UInt32 = 0
  var start: UInt32 = 0

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "seconds", &seconds)
    try f.field(2, "start", &start)
  }
}

/// `Reaction`.
struct ReactionWire: ProtobufMessage {
  var target: [UInt8] = []
  var emoji = ""
  var isRemoved = false

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "target", &target)
    try f.field(2, "emoji", &emoji)
    try f.field(3, "removed", &isRemoved)
  }
}

/// `Target`: a message by its id.
struct TargetWire: ProtobufMessage {
  var target: [UInt8] = []

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "target", &target)
  }
}

/// `Receipt`.
struct ReceiptWire: ProtobufMessage {
  var kind: UInt32 = 0
  var upTo: [UInt8] = []

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "kind", &kind)
    try f.field(2, "up_to", &upTo)
  }
}

/// `Custom`.
struct CustomWire: ProtobufMessage {
  var type = ""
  var payload: [UInt8] = []

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "type", &type)
    try f.field(2, "payload", &payload)
  }
}
