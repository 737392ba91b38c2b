package import PalbeWire

/// Variable-size vectors, RFC 9420 §2.1.2: a 1, 2 or 4-byte length, which must be the shortest form.
extension ByteReader {
  /// Reads a vector's length in bytes, at most 2^30 - 1.
  @_lifetime(self: copy self)
  package mutating func vectorLength() throws(WireError) -> Int {
    let first = try uint8()
    var length = Int(first & 0x3f)
    switch first >> 6 {
    case 0: return length
    case 1:
      length = length << 8 | Int(try uint8())
      guard length >= 1 << 6 else { throw .invalid(field: "vector length", value: UInt64(length)) }
    case 2:
      length = length << 24 | Int(try uint24())
      guard length >= 1 << 14 else { throw .invalid(field: "vector length", value: UInt64(length)) }
    default: throw .invalid(field: "vector length prefix", value: UInt64(first))
    }
    return length
  }

  /// `opaque value<V>`.
  @_lifetime(self: copy self)
  package mutating func opaque() throws(WireError) -> [UInt8] {
    let count = try vectorLength()
    return try array(count)
  }

  /// `T items<V>`; its memory is bounded by the bytes that are there.
  @_lifetime(self: copy self)
  package mutating func vector<T: MLSCodable>(of type: T.Type) throws(WireError) -> [T] {
    let count = try vectorLength()
    var inner = try reader(count)
    var items: [T] = []
    while !inner.isAtEnd { items.append(try T(from: &inner)) }
    return items
  }

  /// `optional<T>`.
  @_lifetime(self: copy self)
  package mutating func optional<T: MLSCodable>(_ type: T.Type) throws(WireError) -> T? {
    switch try uint8() {
    case 0: return nil
    case 1: return try T(from: &self)
    case let value: throw .invalid(field: "optional presence", value: UInt64(value))
    }
  }
}

extension ByteWriter {
  /// Writes a vector's length in its shortest form.
  package mutating func vectorLength(_ length: Int) {
    switch length {
    case ..<(1 << 6): uint8(UInt8(length))
    case ..<(1 << 14): uint16(UInt16(length) | 0x4000)
    default:
      precondition(length < 1 << 30, "a vector of 2^30 bytes cannot be encoded")
      uint32(UInt32(length) | 0x8000_0000)
    }
  }

  /// `opaque value<V>`.
  package mutating func opaque(_ bytes: [UInt8]) {
    vectorLength(bytes.count)
    append(bytes)
  }

  /// `opaque value<V>` of a borrowed value.
  package mutating func opaque(_ bytes: Span<UInt8>) {
    vectorLength(bytes.count)
    append(bytes)
  }

  /// `opaque value<V>` of a text, such as a label.
  package mutating func opaque(utf8 text: String) {
    vectorLength(text.utf8.count)
    append(utf8: text)
  }

  /// `T items<V>`.
  package mutating func vector<T: MLSCodable>(_ items: [T]) {
    nested { writer in
      for item in items { item.encode(into: &writer) }
    }
  }

  /// What `body` writes, as a vector: its length, known only then, is put before it.
  package mutating func nested(_ body: (inout ByteWriter) -> Void) {
    // Most vectors are shorter than 64 bytes, and their length takes one.
    let start = bytes.count
    uint8(0)
    body(&self)
    let length = bytes.count - start - 1
    if length < 1 << 6 {
      bytes[start] = UInt8(length)
    } else {
      var header = ByteWriter(capacity: 4)
      header.vectorLength(length)
      bytes.replaceSubrange(start...start, with: header.bytes)
    }
  }

  /// `optional<T>`.
  package mutating func optional<T: MLSCodable>(_ value: T?) {
    if let value {
      uint8(1)
      value.encode(into: &self)
    } else {
      uint8(0)
    }
  }
}
