import PalbeWire

/// The CRC-32 of ITU V.42, as FINGERPRINT uses it (RFC 8489 §14.7).
enum CRC32 {
  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xedb8_8320 : value >> 1 }
  }

  /// The checksum of `bytes[range]`; the range must lie inside.
  static func checksum(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt32 {
    let table = Self.table
    var value = UInt32.max
    for index in range { value = value >> 8 ^ table[Int(UInt8(truncatingIfNeeded: value) ^ bytes[index])] }
    return ~value
  }
}
