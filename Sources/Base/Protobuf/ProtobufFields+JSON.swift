import PalbeWire

// What the calls of `ProtobufFields` do with JSON. Source: protobuf.dev, "ProtoJSON Format".
extension ProtobufFields {
  @usableFromInline
  func json<Value: ProtobufScalar>(_ number: UInt32, _ name: String, _ value: inout Value)
    throws(ProtobufError)
  {
    if let text {
      if text.style.zeros || !value.isAbsent { text.put(name, value) }
    } else if let source {
      if try source.isNext(number, name) { value = try source.scalar() ?? value }
    }
  }

  @usableFromInline
  func json<Value: ProtobufScalar>(_ number: UInt32, _ name: String, _ value: inout Value?)
    throws(ProtobufError)
  {
    if let text {
      if let value { text.put(name, value) }
    } else if let source {
      if try source.isNext(number, name) { value = try source.scalar() }
    }
  }

  @usableFromInline
  func json<Value: ProtobufScalar>(
    _ number: UInt32, _ name: String, _ values: inout [Value]
  ) throws(ProtobufError) {
    if let text {
      if text.style.zeros || !values.isEmpty { text.put(name, values) }
    } else if let source {
      if try source.isNext(number, name) { try source.append(to: &values) }
    }
  }

  @usableFromInline
  func json<Value: ProtobufMessage>(_ number: UInt32, _ name: String, _ value: inout Value?)
    throws(ProtobufError)
  {
    if let text {
      if text.style.zeros || value != nil { text.put(name, value) }
    } else if let source {
      if try source.isNext(number, name) { value = try source.message() }
    }
  }

  @usableFromInline
  func json<Value: ProtobufMessage>(
    _ number: UInt32, _ name: String, _ values: inout [Value]
  ) throws(ProtobufError) {
    if let text {
      if text.style.zeros || !values.isEmpty { text.put(name, values) }
    } else if let source {
      if try source.isNext(number, name) { try source.append(to: &values) }
    }
  }

  @usableFromInline
  func json<Key: ProtobufMapKey, Value: ProtobufScalar>(
    _ number: UInt32, _ name: String, _ map: inout [Key: Value]
  ) throws(ProtobufError) {
    if let text {
      if text.style.zeros || !map.isEmpty { text.put(name, map) }
    } else if let source {
      if try source.isNext(number, name) { try source.insert(into: &map) }
    }
  }

  @usableFromInline
  func json<Key: ProtobufMapKey, Value: ProtobufMessage>(
    _ number: UInt32, _ name: String, _ map: inout [Key: Value]
  ) throws(ProtobufError) {
    if let text {
      if text.style.zeros || !map.isEmpty { text.put(name, map) }
    } else if let source {
      if try source.isNext(number, name) { try source.insert(into: &map) }
    }
  }

  @usableFromInline
  func json<Oneof, Value: ProtobufScalar>(
    _ number: UInt32, _ name: String, _ oneof: inout Oneof?, _ wrap: (Value) -> Oneof,
    _ unwrap: (Oneof?) -> Value?
  ) throws(ProtobufError) {
    if let text {
      if let value = unwrap(oneof) { text.put(name, value) }
    } else if let source {
      guard try source.isNext(number, name), let value: Value = try source.scalar() else { return }
      try source.refuse(second: oneof != nil)
      oneof = wrap(value)
    }
  }

  @usableFromInline
  func json<Oneof, Value: ProtobufMessage>(
    _ number: UInt32, _ name: String, _ oneof: inout Oneof?, _ wrap: (Value) -> Oneof,
    _ unwrap: (Oneof?) -> Value?
  ) throws(ProtobufError) {
    if let text {
      if let value = unwrap(oneof) { text.put(name, value) }
    } else if let source {
      guard try source.isNext(number, name) else { return }
      try source.refuse(second: oneof != nil)
      oneof = wrap(try source.message())
    }
  }
}
