import PalbeWire

/// The pass over a message's fields: it writes all of them, or reads the one that is on the wire now.
///
/// When it reads, `ProtobufMessage.fields` runs once for each field on the wire, and the call whose number
/// matches takes the value. Nothing on the signalling path is hot enough to want more.
public struct ProtobufFields: ~Copyable, ~Escapable {
  /// The number of the field on the wire, or 0 when the pass writes.
  public private(set) var decoding: UInt32 = 0

  var reader: ProtobufReader
  var writer = ProtobufWriter()
  private var wire = ProtobufWireType.varint
  private var fieldStart = 0
  private var isTaken = false
  private var limits: ProtobufLimits
  private var depth = 0
  /// Counts down over the whole decode.
  private var messagesLeft: Int

  /// A pass that writes.
  @_lifetime(immortal)
  init() {
    reader = ProtobufReader(Span())
    limits = ProtobufLimits()
    messagesLeft = 0
  }

  /// A pass that reads.
  @_lifetime(copy bytes)
  init(decoding bytes: Span<UInt8>, limits: ProtobufLimits) {
    reader = ProtobufReader(bytes)
    self.limits = limits
    messagesLeft = limits.messages
  }

  // MARK: Fields

  /// A field whose zero value means absence.
  public mutating func field<Value: ProtobufScalar>(_ number: UInt32, _ value: inout Value)
    throws(ProtobufError)
  {
    if decoding == number {
      value = try take()
    } else if decoding == 0, value != .absent {
      put(number, value)
    }
  }

  /// A field with presence (proto3 `optional`).
  public mutating func field<Value: ProtobufScalar>(_ number: UInt32, _ value: inout Value?)
    throws(ProtobufError)
  {
    if decoding == number {
      value = try take()
    } else if decoding == 0, let value {
      put(number, value)
    }
  }

  /// A repeated field; numbers are written packed and read either way.
  public mutating func field<Value: ProtobufScalar>(_ number: UInt32, _ values: inout [Value])
    throws(ProtobufError)
  {
    if decoding == number {
      try takeRepeated(&values)
    } else if decoding == 0, !values.isEmpty {
      if Value.wireType == .lengthDelimited {
        for value in values { put(number, value) }
      } else {
        writer.tag(number, .lengthDelimited)
        let start = writer.bytes.count
        for value in values { value.write(to: &writer) }
        writer.closeContent(from: start)
      }
    }
  }

  /// A message, nil when absent. A second occurrence merges into the first, as the format defines.
  public mutating func field<Value: ProtobufMessage>(_ number: UInt32, _ value: inout Value?)
    throws(ProtobufError)
  {
    if decoding == number {
      value = try take(mergingInto: value ?? Value())
    } else if decoding == 0, let value {
      put(number, value)
    }
  }

  /// A repeated message.
  public mutating func field<Value: ProtobufMessage>(_ number: UInt32, _ values: inout [Value])
    throws(ProtobufError)
  {
    if decoding == number {
      values.append(try take())
    } else if decoding == 0 {
      for value in values { put(number, value) }
    }
  }

  /// A map of scalars. Entries are written in the order of their keys; a repeated key keeps the last value.
  public mutating func field<Key: ProtobufScalar & Hashable & Comparable, Value: ProtobufScalar>(
    _ number: UInt32, _ map: inout [Key: Value]
  ) throws(ProtobufError) {
    if decoding == number {
      let entry: ScalarEntry<Key, Value> = try take()
      map[entry.key] = entry.value
    } else if decoding == 0 {
      for (key, value) in map.sorted(by: { $0.key < $1.key }) {
        put(number, ScalarEntry(key: key, value: value))
      }
    }
  }

  /// A map to messages.
  public mutating func field<Key: ProtobufScalar & Hashable & Comparable, Value: ProtobufMessage>(
    _ number: UInt32, _ map: inout [Key: Value]
  ) throws(ProtobufError) {
    if decoding == number {
      let entry: MessageEntry<Key, Value> = try take()
      map[entry.key] = entry.value
    } else if decoding == 0 {
      for (key, value) in map.sorted(by: { $0.key < $1.key }) {
        put(number, MessageEntry(key: key, value: value))
      }
    }
  }

  /// Keeps the fields that no call before took, as they were on the wire, and writes them again at the end.
  public mutating func unknown(_ fields: inout [UInt8]) throws(ProtobufError) {
    if decoding == 0 {
      writer.raw(fields)
    } else if !isTaken {
      isTaken = true
      try reader.skip(wire)
      fields += reader.copy(fieldStart..<reader.offset)
    }
  }

  // MARK: Cases of a oneof: `switch f.decoding`, then `take` for the number or `put` for the case.

  /// The scalar on the wire now.
  public mutating func take<Value: ProtobufScalar>() throws(ProtobufError) -> Value {
    try expect(Value.wireType)
    return try Value(reading: &reader, field: decoding)
  }

  /// The message on the wire now.
  public mutating func take<Value: ProtobufMessage>() throws(ProtobufError) -> Value {
    try take(mergingInto: Value())
  }

  /// Writes a scalar, also when it is zero.
  public mutating func put(_ number: UInt32, _ value: some ProtobufScalar) {
    writer.tag(number, type(of: value).wireType)
    value.write(to: &writer)
  }

  /// Writes a message, also when it is empty.
  public mutating func put(_ number: UInt32, _ value: some ProtobufMessage) {
    writer.tag(number, .lengthDelimited)
    let start = writer.bytes.count
    encodeAll(of: value)
    writer.closeContent(from: start)
  }

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

  private mutating func take<Value: ProtobufMessage>(mergingInto start: Value) throws(ProtobufError) -> Value
  {
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

  private mutating func takeRepeated<Value: ProtobufScalar>(_ values: inout [Value]) throws(ProtobufError) {
    if Value.wireType == wire {
      values.append(try take())
      return
    }
    try expect(.lengthDelimited)
    var packed = ProtobufReader(try reader.content())
    while !packed.isAtEnd { values.append(try Value(reading: &packed, field: decoding)) }
  }

  private mutating func expect(_ expected: ProtobufWireType) throws(ProtobufError) {
    guard wire == expected else { throw .wireType(field: decoding, got: wire.rawValue) }
    isTaken = true
  }
}

/// A map's entry is a message of a key and a value; both are always written, as other writers do.
private struct ScalarEntry<Key: ProtobufScalar, Value: ProtobufScalar>: ProtobufMessage {
  var key = Key.absent
  var value = Value.absent
  init() {}
  init(key: Key, value: Value) { (self.key, self.value) = (key, value) }
  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    switch f.decoding {
    case 0:
      f.put(1, key)
      f.put(2, value)
    case 1: key = try f.take()
    case 2: value = try f.take()
    default: break
    }
  }
}

private struct MessageEntry<Key: ProtobufScalar, Value: ProtobufMessage>: ProtobufMessage {
  var key = Key.absent
  var value = Value()
  init() {}
  init(key: Key, value: Value) { (self.key, self.value) = (key, value) }
  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    switch f.decoding {
    case 0:
      f.put(1, key)
      f.put(2, value)
    case 1: key = try f.take()
    case 2: value = try f.take()
    default: break
    }
  }
}
