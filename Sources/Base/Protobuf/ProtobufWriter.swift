/// Appends tags and values of a protobuf message.
public struct ProtobufWriter: Sendable {
  /// What was written so far.
  public private(set) var bytes: [UInt8] = []

  /// An empty message.
  public init() {}

  /// Room for a small message.
  mutating func reserve() { bytes.reserveCapacity(48) }

  /// A field's number and wire type.
  public mutating func tag(_ field: UInt32, _ wire: ProtobufWireType) {
    varint(UInt64(field) << 3 | UInt64(wire.rawValue))
  }

  /// A base-128 number.
  public mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  /// Four little-endian bytes.
  public mutating func fixed32(_ value: UInt32) {
    for shift in stride(from: UInt32(0), to: 32, by: 8) {
      bytes.append(UInt8(truncatingIfNeeded: value >> shift))
    }
  }

  /// A length and the bytes.
  public mutating func content(_ content: some Collection<UInt8>) {
    varint(UInt64(content.count))
    bytes.append(contentsOf: content)
  }

  /// Bytes that are already fields.
  mutating func raw(_ fields: [UInt8]) { bytes.append(contentsOf: fields) }

  /// Puts the length of what was written since `start` in front of it.
  mutating func closeContent(from start: Int) {
    var rest = UInt64(bytes.count - start)
    let size = max(1, (64 - rest.leadingZeroBitCount + 6) / 7)
    bytes.insert(contentsOf: repeatElement(0x80, count: size), at: start)
    for index in start..<start + size {
      bytes[index] |= UInt8(truncatingIfNeeded: rest) & 0x7f
      rest >>= 7
    }
    bytes[start + size - 1] &= 0x7f
  }
}
