import PalbeWire

/// The pass over a message's fields: it writes all of them, or reads the one that is next in the input; on the
/// protobuf wire or in JSON.
///
/// When it reads, `ProtobufMessage.fields` runs once for each field in the input, and the call whose number
/// or name matches takes the value. Nothing on the signalling path is hot enough to want more.
///
/// The calls below take a field's number, its name in the protocol's description (`track_sids`), and where its
/// value is kept. `ProtobufFields+Wire.swift`, `ProtobufJSONText` and `ProtobufJSONSource` do the work.
public struct ProtobufFields: ~Copyable, ~Escapable {
  enum Pass {
    case write, read
    case writeJSON(ProtobufJSONText)
    case readJSON(ProtobufJSONSource)
  }

  let pass: Pass
  var reader: ProtobufReader
  var writer = ProtobufWriter()
  /// The field that is next on the wire.
  var decoding: UInt32 = 0
  var wire = ProtobufWireType.varint
  var fieldStart = 0
  /// A call has taken it.
  var isTaken = false
  let limits: ProtobufLimits
  var depth = 0
  /// Counts down over the whole decode.
  var messagesLeft: Int

  /// A pass that writes.
  @_lifetime(immortal)
  init() { self.init(.write) }

  /// A pass that reads.
  @_lifetime(copy bytes)
  init(decoding bytes: Span<UInt8>, limits: ProtobufLimits) {
    pass = .read
    reader = ProtobufReader(bytes)
    self.limits = limits
    messagesLeft = limits.messages
  }

  /// A pass that does not read the wire.
  @_lifetime(immortal)
  init(_ pass: Pass) {
    self.pass = pass
    reader = ProtobufReader(Span())
    limits = ProtobufLimits()
    messagesLeft = 0
  }

  // MARK: Fields

  /// A field whose zero value means absence.
  public mutating func field<Value: ProtobufScalar>(_ number: UInt32, _ name: String, _ value: inout Value)
    throws(ProtobufError)
  {
    switch pass {
    case .write: if !value.isAbsent { put(number, value) }
    case .read: if isNext(number) { value = try take() }
    case .writeJSON(let text): if text.style.zeros || !value.isAbsent { text.put(name, value) }
    case .readJSON(let source): if try source.isNext(number, name) { value = try source.scalar() ?? value }
    }
  }

  /// A field with presence (proto3 `optional`).
  public mutating func field<Value: ProtobufScalar>(_ number: UInt32, _ name: String, _ value: inout Value?)
    throws(ProtobufError)
  {
    switch pass {
    case .write: if let value { put(number, value) }
    case .read: if isNext(number) { value = try take() }
    case .writeJSON(let text): if let value { text.put(name, value) }
    case .readJSON(let source): if try source.isNext(number, name) { value = try source.scalar() }
    }
  }

  /// A repeated field; numbers are written packed and read either way.
  public mutating func field<Value: ProtobufScalar>(
    _ number: UInt32, _ name: String, _ values: inout [Value]
  ) throws(ProtobufError) {
    switch pass {
    case .write: if !values.isEmpty { putRepeated(number, values) }
    case .read: if isNext(number) { try takeRepeated(&values) }
    case .writeJSON(let text): if text.style.zeros || !values.isEmpty { text.put(name, values) }
    case .readJSON(let source): if try source.isNext(number, name) { try source.append(to: &values) }
    }
  }

  /// A message, nil when absent. A second occurrence merges into the first, as the format defines.
  public mutating func field<Value: ProtobufMessage>(_ number: UInt32, _ name: String, _ value: inout Value?)
    throws(ProtobufError)
  {
    switch pass {
    case .write: if let value { put(number, value) }
    case .read: if isNext(number) { value = try take(mergingInto: value ?? Value()) }
    case .writeJSON(let text): if text.style.zeros || value != nil { text.put(name, value) }
    case .readJSON(let source): if try source.isNext(number, name) { value = try source.message() }
    }
  }

  /// A repeated message.
  public mutating func field<Value: ProtobufMessage>(
    _ number: UInt32, _ name: String, _ values: inout [Value]
  ) throws(ProtobufError) {
    switch pass {
    case .write: for value in values { put(number, value) }
    case .read: if isNext(number) { values.append(try take(mergingInto: Value())) }
    case .writeJSON(let text): if text.style.zeros || !values.isEmpty { text.put(name, values) }
    case .readJSON(let source): if try source.isNext(number, name) { try source.append(to: &values) }
    }
  }

  /// A map of scalars. Entries are written in the order of their keys; of a repeated key on the wire the last
  /// value stays.
  public mutating func field<Key: ProtobufMapKey, Value: ProtobufScalar>(
    _ number: UInt32, _ name: String, _ map: inout [Key: Value]
  ) throws(ProtobufError) {
    switch pass {
    case .write:
      for (key, value) in map.sorted(by: { $0.key < $1.key }) {
        put(number, ScalarEntry(key: key, value: value))
      }
    case .read:
      guard isNext(number) else { return }
      let entry = try take(mergingInto: ScalarEntry<Key, Value>())
      map[entry.key] = entry.value
    case .writeJSON(let text): if text.style.zeros || !map.isEmpty { text.put(name, map) }
    case .readJSON(let source): if try source.isNext(number, name) { try source.insert(into: &map) }
    }
  }

  /// A map to messages.
  public mutating func field<Key: ProtobufMapKey, Value: ProtobufMessage>(
    _ number: UInt32, _ name: String, _ map: inout [Key: Value]
  ) throws(ProtobufError) {
    switch pass {
    case .write:
      for (key, value) in map.sorted(by: { $0.key < $1.key }) {
        put(number, MessageEntry(key: key, value: value))
      }
    case .read:
      guard isNext(number) else { return }
      let entry = try take(mergingInto: MessageEntry<Key, Value>())
      map[entry.key] = entry.value
    case .writeJSON(let text): if text.style.zeros || !map.isEmpty { text.put(name, map) }
    case .readJSON(let source): if try source.isNext(number, name) { try source.insert(into: &map) }
    }
  }

  // MARK: Oneofs

  /// A scalar case of a oneof, also when it is zero: how to `wrap` a value, and how to look for one.
  public mutating func oneof<Oneof, Value: ProtobufScalar>(
    _ number: UInt32, _ name: String, _ oneof: inout Oneof?, _ wrap: (Value) -> Oneof,
    _ unwrap: (Oneof) -> Value?
  ) throws(ProtobufError) {
    switch pass {
    case .write: if let value = oneof.flatMap(unwrap) { put(number, value) }
    case .read: if isNext(number) { oneof = wrap(try take()) }
    case .writeJSON(let text): if let value = oneof.flatMap(unwrap) { text.put(name, value) }
    case .readJSON(let source):
      guard try source.isNext(number, name), let value: Value = try source.scalar() else { return }
      try source.refuse(second: oneof != nil)
      oneof = wrap(value)
    }
  }

  /// A message case of a oneof: how to `wrap` a value, and how to look for one.
  public mutating func oneof<Oneof, Value: ProtobufMessage>(
    _ number: UInt32, _ name: String, _ oneof: inout Oneof?, _ wrap: (Value) -> Oneof,
    _ unwrap: (Oneof) -> Value?
  ) throws(ProtobufError) {
    switch pass {
    case .write: if let value = oneof.flatMap(unwrap) { put(number, value) }
    case .read: if isNext(number) { oneof = wrap(try take(mergingInto: oneof.flatMap(unwrap) ?? Value())) }
    case .writeJSON(let text): if let value = oneof.flatMap(unwrap) { text.put(name, value) }
    case .readJSON(let source):
      guard try source.isNext(number, name) else { return }
      try source.refuse(second: oneof != nil)
      oneof = wrap(try source.message())
    }
  }

  /// Keeps the fields that no call before took, as they were on the wire, and writes them again at the end.
  /// JSON cannot carry them.
  public mutating func unknown(_ fields: inout [UInt8]) throws(ProtobufError) {
    switch pass {
    case .write: writer.raw(fields)
    case .read:
      guard !isTaken else { return }
      isTaken = true
      try reader.skip(wire)
      fields += reader.copy(fieldStart..<reader.offset)
    case .writeJSON, .readJSON: break
    }
  }
}
