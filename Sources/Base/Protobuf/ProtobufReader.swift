import PalbeWire

/// Reads tags and values of one protobuf message from a borrowed span. Every read is bounds-checked.
///
/// A length that the peer claims is compared with the bytes that are there; nothing is allocated for it.
/// Source: protobuf.dev, "Encoding".
public struct ProtobufReader: ~Copyable, ~Escapable {
  let bytes: Span<UInt8>
  /// Bytes read so far.
  public private(set) var offset = 0

  /// Reads `bytes` from their start.
  @_lifetime(copy bytes)
  public init(_ bytes: Span<UInt8>) { self.bytes = bytes }

  /// True when everything was read.
  public var isAtEnd: Bool { offset == bytes.count }

  /// The next field's number and wire type; nil at the end.
  public mutating func tag() throws(ProtobufError) -> (field: UInt32, wire: ProtobufWireType)? {
    if isAtEnd { return nil }
    let key = try varint()
    guard let field = UInt32(exactly: key >> 3), field > 0, field < 1 << 29 else { throw .fieldNumber }
    let code = UInt8(truncatingIfNeeded: key & 7)
    guard let wire = ProtobufWireType(rawValue: code) else { throw .wireType(field: field, got: code) }
    return (field, wire)
  }

  /// A base-128 number.
  public mutating func varint() throws(ProtobufError) -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      guard offset < bytes.count else { throw .truncated(needed: 1, have: 0) }
      let byte = bytes[offset]
      // The tenth byte has room for one bit.
      if shift == 63, byte > 1 { throw .varintTooLong }
      offset += 1
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 { return value }
      shift += 7
    }
  }

  /// Four little-endian bytes.
  public mutating func fixed32() throws(ProtobufError) -> UInt32 {
    let at = try advance(4)
    return (0..<4).reduce(0) { $0 | UInt32(bytes[at + $1]) << (8 * UInt32($1)) }
  }

  /// Eight little-endian bytes.
  public mutating func fixed64() throws(ProtobufError) -> UInt64 {
    let low = try fixed32()
    let high = try fixed32()
    return UInt64(high) << 32 | UInt64(low)
  }

  /// The range of a length-delimited value's content in the span this reader was made over.
  public mutating func contentRange() throws(ProtobufError) -> Range<Int> {
    let length = try varint()
    guard let count = Int(exactly: length) else {
      throw .truncated(needed: .max, have: bytes.count - offset)
    }
    let at = try advance(count)
    return at..<at + count
  }

  /// The content of a length-delimited value, borrowed.
  @_lifetime(copy self)
  public mutating func content() throws(ProtobufError) -> Span<UInt8> {
    let range = try contentRange()
    return bytes.extracting(range)
  }

  /// Steps over the value of a field that is not known.
  public mutating func skip(_ wire: ProtobufWireType) throws(ProtobufError) {
    switch wire {
    case .varint: _ = try varint()
    case .fixed64: _ = try advance(8)
    case .lengthDelimited: _ = try contentRange()
    case .fixed32: _ = try advance(4)
    }
  }

  /// The bytes in `range`, copied; the range came from this reader.
  func copy(_ range: Range<Int>) -> [UInt8] { [UInt8](bytes.extracting(range)) }

  private mutating func advance(_ count: Int) throws(ProtobufError) -> Int {
    guard count <= bytes.count - offset else { throw .truncated(needed: count, have: bytes.count - offset) }
    let start = offset
    offset += count
    return start
  }
}
