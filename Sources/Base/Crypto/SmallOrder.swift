import PalbeWire

extension Curve {
  /// True for an encoding of a point whose order divides the cofactor, on the curve or its twist (RFC 7748 §6):
  /// X25519 and X448 take every such point to zero. Compared with a list, which costs nothing beside a
  /// multiplication. `bytes` have the curve's length; false on other curves.
  func hasSmallOrder(_ bytes: Span<UInt8>) -> Bool {
    switch self {
    case .x25519:
      // The highest bit does not count (RFC 7748 §5).
      return Curve.smallOrder25519.contains { point in
        Curve.equal(bytes, point) { $1 == 31 ? $0 & 0x7f : $0 }
      }
    case .x448: return Curve.smallOrder448.contains { point in Curve.equal(bytes, point) { byte, _ in byte } }
    case .ed25519, .ed448, .p256, .p384, .p521: return false
    }
  }

  private static func equal(
    _ bytes: Span<UInt8>, _ point: [UInt8], _ masked: (UInt8, Int) -> UInt8
  ) -> Bool {
    guard bytes.count == point.count else { return false }
    for index in bytes.indices where masked(bytes[index], index) != point[index] { return false }
    return true
  }

  /// Little-endian: the first byte, the bytes between, the last.
  private static func little(_ first: UInt8, _ between: UInt8, _ last: UInt8, count: Int) -> [UInt8] {
    [first] + [UInt8](repeating: between, count: count - 2) + [last]
  }

  /// 0, 1, the two of order 8, and p - 1, p, p + 1 for p = 2^255 - 19.
  private static let smallOrder25519: [[UInt8]] = [
    little(0x00, 0x00, 0x00, count: 32), little(0x01, 0x00, 0x00, count: 32),
    [
      0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
      0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ],
    [
      0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b,
      0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
    ],
    little(0xec, 0xff, 0x7f, count: 32), little(0xed, 0xff, 0x7f, count: 32),
    little(0xee, 0xff, 0x7f, count: 32),
  ]

  /// 0, 1, and p - 1, p, p + 1 for p = 2^448 - 2^224 - 1.
  private static let smallOrder448: [[UInt8]] = {
    let ones = [UInt8](repeating: 0xff, count: 28)
    let zeros = [UInt8](repeating: 0, count: 28)
    let high = [0xfe] + [UInt8](repeating: 0xff, count: 27)
    return [
      zeros + zeros, [1] + zeros.dropLast() + zeros, [0xfe] + ones.dropLast() + high, ones + high,
      zeros + ones,
    ]
  }()
}
