public import PalbeUnits

// What several of the project's own records have in them.

extension ByteWriter {
  /// The 16 bytes of an id.
  @inlinable package mutating func id<Kind>(_ id: Identifier<Kind>) {
    uint64(id.high)
    uint64(id.low)
  }

  /// One byte: 1 or 0.
  @inlinable package mutating func flag(_ value: Bool) { uint8(value ? 1 : 0) }

  /// Eight bytes, big-endian, in two's complement.
  @inlinable package mutating func int64(_ value: Int64) { uint64(UInt64(bitPattern: value)) }

  /// Bytes behind their count, which has four.
  @inlinable package mutating func counted(_ bytes: [UInt8]) {
    uint32(UInt32(bytes.count))
    append(bytes)
  }
}

extension ByteReader {
  /// The 16 bytes of an id.
  @inlinable @_lifetime(self: copy self)
  package mutating func id<Kind>() throws(WireError) -> Identifier<Kind> {
    guard let id = Identifier<Kind>(bytes: try array(16)) else { throw .truncated(needed: 16, have: 0) }
    return id
  }

  /// One byte; throws `invalid` for another than 1 and 0.
  @inlinable @_lifetime(self: copy self)
  package mutating func flag() throws(WireError) -> Bool {
    switch try uint8() {
    case 0: return false
    case 1: return true
    case let value: throw .invalid(field: "flag", value: UInt64(value))
    }
  }

  /// Eight bytes, big-endian, in two's complement.
  @inlinable @_lifetime(self: copy self)
  package mutating func int64() throws(WireError) -> Int64 { Int64(bitPattern: try uint64()) }

  /// Bytes behind their count, which has four.
  @inlinable @_lifetime(self: copy self)
  package mutating func counted() throws(WireError) -> [UInt8] { try array(Int(try uint32())) }

  /// One byte that is one of a few; throws `invalid` of `field` for another.
  @inlinable @_lifetime(self: copy self)
  package mutating func choice<Value: RawRepresentable<UInt8>>(
    _ field: StaticField
  ) throws(WireError) -> Value {
    let number = try uint8()
    guard let value = Value(rawValue: number) else { throw .invalid(field: field, value: UInt64(number)) }
    return value
  }
}
