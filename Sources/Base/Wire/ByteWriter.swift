/// Appends network-order fields. `ByteWriter` grows, `OutputSpan` writes into a caller's buffer.
public struct ByteWriter: Sendable {
  /// What was written so far.
  public var bytes: [UInt8]

  public init(capacity: Int = 64) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  /// One byte.
  public mutating func uint8(_ value: UInt8) { bytes.append(value) }
  /// Two bytes, big-endian.
  public mutating func uint16(_ value: UInt16) { uint(UInt64(value), bytes: 2) }
  /// The low three bytes, big-endian.
  public mutating func uint24(_ value: UInt32) { uint(UInt64(value), bytes: 3) }
  /// Four bytes, big-endian.
  public mutating func uint32(_ value: UInt32) { uint(UInt64(value), bytes: 4) }
  /// Eight bytes, big-endian.
  public mutating func uint64(_ value: UInt64) { uint(value, bytes: 8) }

  /// The low `count` bytes of `value`, big-endian.
  public mutating func uint(_ value: UInt64, bytes count: Int) {
    var shift = UInt64(8 * count)
    while shift > 0 {
      shift -= 8
      bytes.append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }

  /// Copies bytes.
  public mutating func append(_ more: [UInt8]) { bytes.append(contentsOf: more) }
  /// Copies bytes.
  public mutating func append(_ more: Span<UInt8>) {
    unsafe more.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
  }
  /// A string's UTF-8, without a terminator.
  public mutating func append(utf8 text: String) { bytes.append(contentsOf: text.utf8) }
}

extension OutputSpan where Element == UInt8 {
  /// Two bytes, big-endian.
  @inlinable @_lifetime(self: copy self)
  public mutating func append(uint16 value: UInt16) {
    append(UInt8(truncatingIfNeeded: value >> 8))
    append(UInt8(truncatingIfNeeded: value))
  }
  /// The low three bytes, big-endian.
  @inlinable @_lifetime(self: copy self)
  public mutating func append(uint24 value: UInt32) {
    append(UInt8(truncatingIfNeeded: value >> 16))
    append(uint16: UInt16(truncatingIfNeeded: value))
  }
  /// Four bytes, big-endian.
  @inlinable @_lifetime(self: copy self)
  public mutating func append(uint32 value: UInt32) {
    append(uint16: UInt16(truncatingIfNeeded: value >> 16))
    append(uint16: UInt16(truncatingIfNeeded: value))
  }
  /// Eight bytes, big-endian.
  @inlinable @_lifetime(self: copy self)
  public mutating func append(uint64 value: UInt64) {
    append(uint32: UInt32(truncatingIfNeeded: value >> 32))
    append(uint32: UInt32(truncatingIfNeeded: value))
  }
  /// Copies a span.
  @inlinable @_lifetime(self: copy self)
  public mutating func append(contentsOf span: Span<UInt8>) {
    for index in span.indices { append(span[index]) }
  }
}

extension MutableSpan where Element == UInt8 {
  /// Two bytes at `offset`, big-endian; traps outside the span.
  @inlinable @_lifetime(self: copy self)
  public mutating func store(uint16 value: UInt16, at offset: Int) {
    self[offset] = UInt8(truncatingIfNeeded: value >> 8)
    self[offset + 1] = UInt8(truncatingIfNeeded: value)
  }
  /// Four bytes at `offset`, big-endian; traps outside the span.
  @inlinable @_lifetime(self: copy self)
  public mutating func store(uint32 value: UInt32, at offset: Int) {
    store(uint16: UInt16(truncatingIfNeeded: value >> 16), at: offset)
    store(uint16: UInt16(truncatingIfNeeded: value), at: offset + 2)
  }
}

extension Span where Element == UInt8 {
  /// The two bytes at `offset`, big-endian; traps outside the span, so check first.
  @inlinable public func uint16(at offset: Int) -> UInt16 {
    UInt16(self[offset]) << 8 | UInt16(self[offset + 1])
  }
  /// The four bytes at `offset`, big-endian; traps outside the span, so check first.
  @inlinable public func uint32(at offset: Int) -> UInt32 {
    UInt32(uint16(at: offset)) << 16 | UInt32(uint16(at: offset + 2))
  }
}
