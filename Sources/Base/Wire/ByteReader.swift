/// Reads network-order fields from a borrowed span; every read is bounds-checked and throws instead of trapping.
public struct ByteReader: ~Copyable, ~Escapable {
  @usableFromInline let bytes: Span<UInt8>
  /// Bytes read so far.
  public private(set) var offset: Int

  @inlinable @_lifetime(copy bytes)
  public init(_ bytes: Span<UInt8>) {
    self.init(bytes, from: 0)
  }

  @usableFromInline @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, from offset: Int) {
    self.bytes = bytes
    self.offset = offset
  }

  /// Bytes not read yet.
  public var remaining: Int { bytes.count - offset }
  /// True when everything was read.
  public var isAtEnd: Bool { offset == bytes.count }

  @_lifetime(self: copy self)
  private mutating func advance(_ count: Int) throws(WireError) -> Int {
    guard count >= 0, count <= bytes.count - offset else {
      throw .truncated(needed: count, have: bytes.count - offset)
    }
    let start = offset
    offset += count
    return start
  }

  /// One byte.
  @_lifetime(self: copy self)
  public mutating func uint8() throws(WireError) -> UInt8 { bytes[try advance(1)] }

  /// Two bytes, big-endian.
  @_lifetime(self: copy self)
  public mutating func uint16() throws(WireError) -> UInt16 {
    let at = try advance(2)
    return UInt16(bytes[at]) << 8 | UInt16(bytes[at + 1])
  }

  /// Three bytes, big-endian.
  @_lifetime(self: copy self)
  public mutating func uint24() throws(WireError) -> UInt32 {
    let at = try advance(3)
    return UInt32(bytes[at]) << 16 | UInt32(bytes[at + 1]) << 8 | UInt32(bytes[at + 2])
  }

  /// Four bytes, big-endian.
  @_lifetime(self: copy self)
  public mutating func uint32() throws(WireError) -> UInt32 {
    let at = try advance(4)
    return UInt32(bytes[at]) << 24 | UInt32(bytes[at + 1]) << 16 | UInt32(bytes[at + 2]) << 8
      | UInt32(bytes[at + 3])
  }

  /// Eight bytes, big-endian.
  @_lifetime(self: copy self)
  public mutating func uint64() throws(WireError) -> UInt64 {
    let high = try uint32()
    let low = try uint32()
    return UInt64(high) << 32 | UInt64(low)
  }

  /// An unsigned big-endian number of `count` bytes, 1 to 8.
  @_lifetime(self: copy self)
  public mutating func uint(bytes count: Int) throws(WireError) -> UInt64 {
    precondition((0...8).contains(count))
    let at = try advance(count)
    var value: UInt64 = 0
    for index in 0..<count { value = value << 8 | UInt64(bytes[at + index]) }
    return value
  }

  /// The next `count` bytes, borrowed.
  @_lifetime(copy self) @_lifetime(self: copy self)
  public mutating func span(_ count: Int) throws(WireError) -> Span<UInt8> {
    let at = try advance(count)
    return bytes.extracting(at..<at + count)
  }

  /// The next `count` bytes, copied.
  @_lifetime(self: copy self)
  public mutating func array(_ count: Int) throws(WireError) -> [UInt8] {
    let at = try advance(count)
    return [UInt8](bytes.extracting(at..<at + count))
  }

  /// Passes over `count` bytes.
  @_lifetime(self: copy self)
  public mutating func skip(_ count: Int) throws(WireError) { _ = try advance(count) }

  /// A reader over the next `count` bytes alone, for a nested structure.
  @_lifetime(copy self) @_lifetime(self: copy self)
  public mutating func reader(_ count: Int) throws(WireError) -> ByteReader {
    let at = try advance(count)
    return ByteReader(bytes.extracting(at..<at + count), from: 0)
  }

  /// Refuses bytes after the last field.
  public func finish() throws(WireError) {
    guard isAtEnd else { throw .trailing(count: remaining) }
  }
}

extension Array where Element == UInt8 {
  /// Copies a span.
  public init(_ span: Span<UInt8>) {
    self = unsafe span.withUnsafeBufferPointer { unsafe Array($0) }
  }
}
