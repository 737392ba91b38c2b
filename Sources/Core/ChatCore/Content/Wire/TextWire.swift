import PalbeProtobuf

/// `Text`.
struct TextWire: ProtobufMessage {
  var text = ""
  var mentions: [MentionWire] = []
  var reply: ReplyWire?

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "text", &text)
    try f.field(2, "mentions", &mentions)
    try f.field(3, "reply", &reply)
  }
}

/// `Edit`: the fields of `Text` behind the target.
struct EditWire: ProtobufMessage {
  var target: [UInt8] = []
  var text = ""
  var mentions: [MentionWire] = []

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "target", &target)
    try f.field(2, "text", &text)
    try f.field(3, "mentions", &mentions)
  }
}

/// `Mention`.
struct MentionWire: ProtobufMessage {
  var start: Int64 = 0
  var length: Int64 = 0
  var user: [UInt8] = []

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "start", &start)
    try f.field(2, "length", &length)
    try f.field(3, "user", &user)
  }
}

/// `Reply`.
struct ReplyWire: ProtobufMessage {
  var parent: [UInt8] = []
  var sender: [UInt8] = []
  var kind = ""
  var text: String?

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "parent", &parent)
    try f.field(2, "quote_sender", &sender)
    try f.field(3, "quote_kind", &kind)
    try f.field(4, "quote_text", &text)
  }
}
