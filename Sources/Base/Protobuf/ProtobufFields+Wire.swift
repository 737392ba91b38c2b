import PalbeWire

// The two passes over the protobuf wire. Source: protobuf.dev, "Encoding".
extension ProtobufFields {
  // MARK: Whole messages

  mutating func encodeAll(of message: some ProtobufMessage) {
    var copy = message
    // A pass that writes reads nothing, so nothing can be wrong with what it reads.
    do { try copy.fields(&self) } catch {}
  }

  mutating func decodeAll(into message: inout some ProtobufMessage) throws(ProtobufError) {
    fieldStart = reader.offset
    while let tag = try reader.tag() {
      (decoding, wire, isTaken) = (tag.field, tag.wire, false)
      try message.fields(&self)
      if !isTaken { try reader.skip(wire) }
      fieldStart = reader.offset
    }
  }

  // MARK: Writing

  @usableFromInline
  mutating func put(_ number: UInt32, _ value: some ProtobufScalar) {
    writer.tag(number, type(of: value).wireType)
    value.write(to: &writer)
  }

  @usableFromInline
  mutating func put(_ number: UInt32, _ value: some ProtobufMessage) {
    writer.tag(number, .lengthDelimited)
    let start = writer.bytes.count
    encodeAll(of: value)
    writer.closeContent(from: start)
  }

  @usableFromInline
  mutating func putRepeated<Value: ProtobufScalar>(_ number: UInt32, _ values: [Value]) {
    if Value.wireType == .lengthDelimited {
      for value in values { put(number, value) }
    } else {
      writer.tag(number, .lengthDelimited)
      let start = writer.bytes.count
      for value in values { value.write(to: &writer) }
      writer.closeContent(from: start)
    }
  }

  @usableFromInline
  mutating func putMap<Key: ProtobufMapKey>(_ number: UInt32, _ map: [Key: some ProtobufScalar]) {
    for (key, value) in map.sorted(by: { $0.key < $1.key }) {
      put(number, ScalarEntry(key: key, value: value))
    }
  }

  @usableFromInline
  mutating func putMap<Key: ProtobufMapKey>(_ number: UInt32, _ map: [Key: some ProtobufMessage]) {
    for (key, value) in map.sorted(by: { $0.key < $1.key }) {
      put(number, MessageEntry(key: key, value: value))
    }
  }

  // MARK: Reading

  /// Whether the field `number` is next in the input.
  @inlinable
  func isNext(_ number: UInt32) -> Bool { number == decoding && !isTaken }

  @usableFromInline
  mutating func take<Value: ProtobufScalar>() throws(ProtobufError) -> Value {
    try expect(Value.wireType)
    return try Value(reading: &reader, field: decoding)
  }

  @usableFromInline
  mutating func take<Value: ProtobufMessage>(mergingInto start: Value) throws(ProtobufError) -> Value {
    try expect(.lengthDelimited)
    guard depth < limits.depth else { throw .tooDeep(limit: limits.depth) }
    guard messagesLeft > 0 else { throw .tooManyMessages(limit: limits.messages) }
    var nested = ProtobufFields(decoding: try reader.content(), limits: limits)
    nested.depth = depth + 1
    nested.messagesLeft = messagesLeft - 1
    var value = start
    try nested.decodeAll(into: &value)
    messagesLeft = nested.messagesLeft
    return value
  }

  @usableFromInline
  mutating func takeRepeated<Value: ProtobufScalar>(_ values: inout [Value]) throws(ProtobufError) {
    if Value.wireType == wire {
      values.append(try take())
      return
    }
    try expect(.lengthDelimited)
    var packed = ProtobufReader(try reader.content())
    while !packed.isAtEnd { values.append(try Value(reading: &packed, field: decoding)) }
  }

  @usableFromInline
  mutating func takeMap<Key: ProtobufMapKey, Value: ProtobufScalar>(_ map: inout [Key: Value])
    throws(ProtobufError)
  {
    let entry = try take(mergingInto: ScalarEntry<Key, Value>())
    map[entry.key] = entry.value
  }

  @usableFromInline
  mutating func takeMap<Key: ProtobufMapKey, Value: ProtobufMessage>(_ map: inout [Key: Value])
    throws(ProtobufError)
  {
    let entry = try take(mergingInto: MessageEntry<Key, Value>())
    map[entry.key] = entry.value
  }

  private mutating func expect(_ expected: ProtobufWireType) throws(ProtobufError) {
    guard wire == expected else { throw .wireType(field: decoding, got: wire.rawValue) }
    isTaken = true
  }
}

/// A map's entry is a message of a key and a value; both are always written, as other writers do.
struct ScalarEntry<Key: ProtobufMapKey, Value: ProtobufScalar>: ProtobufMessage {
  var key = Key.absent
  var value = Value.absent
  init() {}
  init(key: Key, value: Value) { (self.key, self.value) = (key, value) }
  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    // Not `field`, which leaves out what is zero.
    if f.pass == .write {
      f.put(1, key)
      f.put(2, value)
    }
    if f.isNext(1) { key = try f.take() }
    if f.isNext(2) { value = try f.take() }
  }
}

/// As `ScalarEntry`, with a message for its value.
struct MessageEntry<Key: ProtobufMapKey, Value: ProtobufMessage>: ProtobufMessage {
  var key = Key.absent
  var value = Value()
  init() {}
  init(key: Key, value: Value) { (self.key, self.value) = (key, value) }
  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    if f.pass == .write {
      f.put(1, key)
      f.put(2, value)
    }
    if f.isNext(1) { key = try f.take() }
    if f.isNext(2) { value = try f.take(mergingInto: value) }
  }
}
