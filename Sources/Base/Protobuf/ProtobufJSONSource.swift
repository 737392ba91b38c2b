import PalbeWire

/// The pass that reads JSON. Source: protobuf.dev, "ProtoJSON Format".
final class ProtobufJSONSource {
  private(set) var reader: JSONReader
  private let limits: ProtobufLimits
  private var messagesLeft: Int
  /// The member that is next, whether a call has taken it, and the fields that were read in its object.
  private var key = ""
  private var isTaken = false
  private var seen: [UInt32] = []

  init(_ reader: JSONReader, _ limits: ProtobufLimits) {
    self.reader = reader
    self.limits = limits
    messagesLeft = limits.messages
  }

  // MARK: Messages

  /// Reads the message that is next.
  func message<Value: ProtobufMessage>() throws(ProtobufError) -> Value {
    var message = Value()
    try count()
    if reader.kind() == .string {
      let at = reader.offset
      let isTaken = message.set(jsonText: try parse { reader throws(JSONError) in try reader.string() })
      guard isTaken else { throw .json(.unexpected(at: at)) }
      return message
    }
    try parse { reader throws(JSONError) in try reader.enterObject() }
    let outer = (key, seen)
    seen = []
    while let next = try parse({ reader throws(JSONError) in try reader.nextKey() }) {
      (key, isTaken) = (next, false)
      var fields = ProtobufFields(self)
      try message.fields(&fields)
      if !isTaken { try parse { reader throws(JSONError) in try reader.skipValue() } }
    }
    (key, seen) = outer
    isTaken = true
    return message
  }

  /// Whether the member that is next is this field and has a value: null is as good as absent.
  func isNext(_ number: UInt32, _ name: String) throws(ProtobufError) -> Bool {
    guard !isTaken, ProtobufJSONName.matches(key, name) else { return false }
    isTaken = true
    try refuse(second: seen.contains(number))
    seen.append(number)
    return try !parse { reader throws(JSONError) in try reader.isNull() }
  }

  /// Two members of one object that mean the same field, or two cases of one oneof, are an attempt to be
  /// understood in two ways.
  func refuse(second isSecond: Bool) throws(ProtobufError) {
    if isSecond { throw .json(.duplicate(at: reader.offset)) }
  }

  // MARK: Values

  /// The scalar that is next; nil for an enumeration's name that this version does not know.
  func scalar<Value: ProtobufScalar>() throws(ProtobufError) -> Value? {
    try parse { reader throws(JSONError) in try Value(json: &reader) }
  }

  func append<Value: ProtobufScalar>(to values: inout [Value]) throws(ProtobufError) {
    try parse { reader throws(JSONError) in
      try reader.enterArray()
      while try reader.nextElement() {
        if let value = try Value(json: &reader) { values.append(value) }
      }
    }
  }

  func append<Value: ProtobufMessage>(to values: inout [Value]) throws(ProtobufError) {
    try parse { reader throws(JSONError) in try reader.enterArray() }
    while try parse({ reader throws(JSONError) in try reader.nextElement() }) {
      values.append(try message())
    }
  }

  func insert<Key: ProtobufMapKey, Value: ProtobufScalar>(
    into map: inout [Key: Value]
  ) throws(ProtobufError) {
    try parse { reader throws(JSONError) in try reader.enterObject() }
    while let key: Key = try nextKey(notIn: map) {
      try count()
      map[key] = try scalar()
    }
  }

  func insert<Key: ProtobufMapKey, Value: ProtobufMessage>(
    into map: inout [Key: Value]
  ) throws(ProtobufError) {
    try parse { reader throws(JSONError) in try reader.enterObject() }
    while let key: Key = try nextKey(notIn: map) { map[key] = try message() }
  }

  private func nextKey<Key: ProtobufMapKey, Value>(notIn map: [Key: Value]) throws(ProtobufError) -> Key? {
    guard let text = try parse({ reader throws(JSONError) in try reader.nextKey() }) else { return nil }
    guard let key = Key(jsonKey: text) else { throw .json(.unexpected(at: reader.offset)) }
    try refuse(second: map[key] != nil)
    return key
  }

  /// Messages and the entries of maps count, as on the wire.
  private func count() throws(ProtobufError) {
    guard messagesLeft > 0 else { throw .json(.tooMany(limit: limits.messages)) }
    messagesLeft -= 1
  }

  private func parse<Result>(
    _ body: (inout JSONReader) throws(JSONError) -> Result
  ) throws(ProtobufError) -> Result {
    do throws(JSONError) { return try body(&reader) } catch { throw .json(error) }
  }
}
