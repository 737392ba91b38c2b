import PalbeWire

/// The pass over a message's fields: it writes all of them, or reads the one that is next in the input; on the
/// protobuf wire or in JSON.
///
/// When it reads, `ProtobufMessage.fields` runs once for each field in the input, and the call whose number
/// or name matches takes the value. Nothing on the signalling path is hot enough to want more.
///
/// The calls below take a field's number, its name in the protocol's description (`track_sids`), and where its
/// value is kept. `ProtobufFields+Wire.swift` and `ProtobufFields+JSON.swift` do the work.
///
/// They are inlinable because most of them only find out that another field is next. Unspecialized generic code
/// takes longer for that than all else in a decode.
public struct ProtobufFields: ~Copyable, ~Escapable {
  @usableFromInline enum Pass { case write, read, json }

  @usableFromInline let pass: Pass
  /// Where JSON goes to, or where it comes from.
  let text: ProtobufJSONText?
  let source: ProtobufJSONSource?
  var reader: ProtobufReader
  var writer = ProtobufWriter()
  /// The field that is next on the wire.
  @usableFromInline var decoding: UInt32 = 0
  var wire = ProtobufWireType.varint
  var fieldStart = 0
  /// A call has taken it.
  @usableFromInline var isTaken = false
  let limits: ProtobufLimits
  var depth = 0
  /// Counts down over the whole decode.
  var messagesLeft: Int

  /// A pass that writes.
  @_lifetime(immortal)
  init() { self.init(.write, nil, nil) }

  /// A pass that writes JSON.
  @_lifetime(immortal)
  init(_ text: ProtobufJSONText) { self.init(.json, text, nil) }

  /// A pass that reads JSON.
  @_lifetime(immortal)
  init(_ source: ProtobufJSONSource) { self.init(.json, nil, source) }

  /// A pass that reads.
  @_lifetime(copy bytes)
  init(decoding bytes: Span<UInt8>, limits: ProtobufLimits) {
    pass = .read
    (text, source) = (nil, nil)
    reader = ProtobufReader(bytes)
    self.limits = limits
    messagesLeft = limits.messages
  }

  @_lifetime(immortal)
  private init(_ pass: Pass, _ text: ProtobufJSONText?, _ source: ProtobufJSONSource?) {
    self.pass = pass
    (self.text, self.source) = (text, source)
    reader = ProtobufReader(Span())
    limits = ProtobufLimits()
    messagesLeft = 0
  }

  // MARK: Fields

  /// A field whose zero value means absence.
  @inlinable
  public mutating func field<Value: ProtobufScalar>(_ number: UInt32, _ name: String, _ value: inout Value)
    throws(ProtobufError)
  {
    switch pass {
    case .write: if !value.isAbsent { put(number, value) }
    case .read: if isNext(number) { value = try take() }
    case .json: try json(number, name, &value)
    }
  }

  /// A field with presence (proto3 `optional`).
  @inlinable
  public mutating func field<Value: ProtobufScalar>(_ number: UInt32, _ name: String, _ value: inout Value?)
    throws(ProtobufError)
  {
    switch pass {
    case .write: if let value { put(number, value) }
    case .read: if isNext(number) { value = try take() }
    case .json: try json(number, name, &value)
    }
  }

  /// A repeated field; numbers are written packed and read either way.
  @inlinable
  public mutating func field<Value: ProtobufScalar>(
    _ number: UInt32, _ name: String, _ values: inout [Value]
  ) throws(ProtobufError) {
    switch pass {
    case .write: if !values.isEmpty { putRepeated(number, values) }
    case .read: if isNext(number) { try takeRepeated(&values) }
    case .json: try json(number, name, &values)
    }
  }

  /// A message, nil when absent. A second occurrence merges into the first, as the format defines.
  @inlinable
  public mutating func field<Value: ProtobufMessage>(_ number: UInt32, _ name: String, _ value: inout Value?)
    throws(ProtobufError)
  {
    switch pass {
    case .write: if let value { put(number, value) }
    case .read: if isNext(number) { value = try take(mergingInto: value ?? Value()) }
    case .json: try json(number, name, &value)
    }
  }

  /// A repeated message.
  @inlinable
  public mutating func field<Value: ProtobufMessage>(
    _ number: UInt32, _ name: String, _ values: inout [Value]
  ) throws(ProtobufError) {
    switch pass {
    case .write: for value in values { put(number, value) }
    case .read: if isNext(number) { values.append(try take(mergingInto: Value())) }
    case .json: try json(number, name, &values)
    }
  }

  /// A map of scalars. Entries are written in the order of their keys; of a repeated key on the wire the last
  /// value stays.
  @inlinable
  public mutating func field<Key: ProtobufMapKey, Value: ProtobufScalar>(
    _ number: UInt32, _ name: String, _ map: inout [Key: Value]
  ) throws(ProtobufError) {
    switch pass {
    case .write: if !map.isEmpty { putMap(number, map) }
    case .read: if isNext(number) { try takeMap(&map) }
    case .json: try json(number, name, &map)
    }
  }

  /// A map to messages.
  @inlinable
  public mutating func field<Key: ProtobufMapKey, Value: ProtobufMessage>(
    _ number: UInt32, _ name: String, _ map: inout [Key: Value]
  ) throws(ProtobufError) {
    switch pass {
    case .write: if !map.isEmpty { putMap(number, map) }
    case .read: if isNext(number) { try takeMap(&map) }
    case .json: try json(number, name, &map)
    }
  }

  // MARK: Oneofs

  /// A scalar case of a oneof, also when it is zero: how to `wrap` a value, and how to look for one.
  @inlinable
  public mutating func oneof<Oneof, Value: ProtobufScalar>(
    _ number: UInt32, _ name: String, _ oneof: inout Oneof?, _ wrap: (Value) -> Oneof,
    _ unwrap: (Oneof?) -> Value?
  ) throws(ProtobufError) {
    switch pass {
    case .write: if let value = unwrap(oneof) { put(number, value) }
    case .read: if isNext(number) { oneof = wrap(try take()) }
    case .json: try json(number, name, &oneof, wrap, unwrap)
    }
  }

  /// A message case of a oneof: how to `wrap` a value, and how to look for one.
  @inlinable
  public mutating func oneof<Oneof, Value: ProtobufMessage>(
    _ number: UInt32, _ name: String, _ oneof: inout Oneof?, _ wrap: (Value) -> Oneof,
    _ unwrap: (Oneof?) -> Value?
  ) throws(ProtobufError) {
    switch pass {
    case .write: if let value = unwrap(oneof) { put(number, value) }
    case .read: if isNext(number) { oneof = wrap(try take(mergingInto: unwrap(oneof) ?? Value())) }
    case .json: try json(number, name, &oneof, wrap, unwrap)
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
    case .json: break
    }
  }
}
