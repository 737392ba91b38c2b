import PalbeCrypto
import PalbeProtobuf
import PalbeWire

/// `Attachment`.
struct AttachmentWire: ProtobufMessage {
  var blob: [UInt8] = []
  var key = AttachmentKeyField.absent
  var cipherHash: [UInt8] = []
  var cipherByteCount: Int64 = 0
  var plainByteCount: Int64 = 0
  var kind: UInt32 = 0
  var filename = ""
  var mimeType = ""
  var thumbnail: [UInt8]?
  var waveform: [UInt8]?
  var durationMs: UInt32?
  var width: UInt32?
  var height: UInt32?
  var reply: ReplyWire?
  var caption: String?

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "blob", &blob)
    try f.field(2, "key", &key)
    try f.field(3, "cipher_sha256", &cipherHash)
    try f.field(4, "cipher_bytes", &cipherByteCount)
    try f.field(5, "plain_bytes", &plainByteCount)
    try f.field(6, "kind", &kind)
    try f.field(7, "filename", &filename)
    try f.field(8, "mime_type", &mimeType)
    try f.field(9, "thumbnail", &thumbnail)
    try f.field(10, "waveform", &waveform)
    try f.field(11, "duration_ms", &durationMs)
    try f.field(12, "width", &width)
    try f.field(13, "height", &height)
    try f.field(14, "reply", &reply)
    try f.field(15, "caption", &caption)
  }
}

/// A key as a field of bytes, read from the wire into memory that is wiped. As JSON it is nothing.
struct AttachmentKeyField: ProtobufScalar {
  static let absent = AttachmentKeyField(AttachmentKey(SymmetricKey(copying: [])))
  static var wireType: ProtobufWireType { .lengthDelimited }

  let key: AttachmentKey

  init(_ key: AttachmentKey) { self.key = key }

  init(reading reader: inout ProtobufReader, field: UInt32) throws(ProtobufError) {
    key = AttachmentKey(SymmetricKey(copying: try reader.content()))
  }

  func write(to writer: inout ProtobufWriter) {
    let secret = key.copy()
    writer.content([UInt8](secret.span))
  }

  init?(json: inout JSONReader) throws(JSONError) {
    try json.skipValue()
    return nil
  }

  func write(json: inout JSONWriter) { json.null() }
}
