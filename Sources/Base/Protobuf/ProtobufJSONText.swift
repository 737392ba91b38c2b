import PalbeWire

/// The pass that writes JSON. Source: protobuf.dev, "ProtoJSON Format".
final class ProtobufJSONText {
  var writer: JSONWriter
  let style: ProtobufJSONStyle

  /// Writes after what `writer` holds.
  init(_ writer: JSONWriter, _ style: ProtobufJSONStyle) {
    self.writer = writer
    self.style = style
  }

  /// Writes one message as a value.
  func write(_ message: some ProtobufMessage) {
    if let form = message.jsonText {
      writer.string(form)
      return
    }
    writer.beginObject()
    var fields = ProtobufFields(self)
    fields.encodeAll(of: message)
    writer.endObject()
  }

  func put(_ name: String, _ value: some ProtobufScalar) {
    key(name)
    value.write(json: &writer)
  }

  func put(_ name: String, _ value: (some ProtobufMessage)?) {
    key(name)
    if let value { write(value) } else { writer.null() }
  }

  func put(_ name: String, _ values: [some ProtobufScalar]) {
    key(name)
    writer.beginArray()
    for value in values { value.write(json: &writer) }
    writer.endArray()
  }

  func put(_ name: String, _ values: [some ProtobufMessage]) {
    key(name)
    writer.beginArray()
    for value in values { write(value) }
    writer.endArray()
  }

  func put<Key: ProtobufMapKey>(_ name: String, _ map: [Key: some ProtobufScalar]) {
    key(name)
    writer.beginObject()
    for (key, value) in map.sorted(by: { $0.key < $1.key }) {
      writer.key(key.jsonKey)
      value.write(json: &writer)
    }
    writer.endObject()
  }

  func put<Key: ProtobufMapKey>(_ name: String, _ map: [Key: some ProtobufMessage]) {
    key(name)
    writer.beginObject()
    for (key, value) in map.sorted(by: { $0.key < $1.key }) {
      writer.key(key.jsonKey)
      write(value)
    }
    writer.endObject()
  }

  private func key(_ name: String) {
    writer.key(style.names == .camelCase ? ProtobufJSONName.camelCase(name) : name)
  }
}

/// A field's name in JSON.
enum ProtobufJSONName {
  /// `trackSids` for `track_sids`.
  static func camelCase(_ name: String) -> String {
    var bytes = [UInt8]()
    bytes.reserveCapacity(name.utf8.count)
    var isUpper = false
    for byte in name.utf8 {
      if byte != UInt8(ascii: "_") { bytes.append(isUpper ? upper(byte) : byte) }
      isUpper = byte == UInt8(ascii: "_")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Whether `key` is `name` in either spelling.
  static func matches(_ key: String, _ name: String) -> Bool {
    if key == name { return true }
    var rest = key.utf8.makeIterator()
    var isUpper = false
    for byte in name.utf8 {
      if byte != UInt8(ascii: "_"), rest.next() != (isUpper ? upper(byte) : byte) { return false }
      isUpper = byte == UInt8(ascii: "_")
    }
    return rest.next() == nil
  }

  private static func upper(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte - 0x20 : byte
  }
}
