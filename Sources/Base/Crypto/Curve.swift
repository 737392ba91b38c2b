import CPalbeOpenSSL

/// The curves that keys are made on, with the sizes of their encodings.
enum Curve: Sendable {
  case ed25519, ed448, x25519, x448, p256, p384, p521

  /// OpenSSL's name of the key type, or of the group.
  var name: StaticString {
    switch self {
    case .ed25519: "ED25519"
    case .ed448: "ED448"
    case .x25519: "X25519"
    case .x448: "X448"
    case .p256: "P-256"
    case .p384: "P-384"
    case .p521: "P-521"
    }
  }

  /// Bytes of a private key: a seed, or a scalar.
  var privateByteCount: Int {
    switch self {
    case .ed25519, .x25519, .p256: 32
    case .x448: 56
    case .ed448: 57
    case .p384: 48
    case .p521: 66
    }
  }

  /// Bytes of a public key: raw, or 4 | x | y (SEC 1 §2.3.3, uncompressed).
  var publicByteCount: Int { isNIST ? 1 + 2 * privateByteCount : privateByteCount }

  /// True where a public key is a point of a group, false where keys are raw bytes.
  var isNIST: Bool {
    switch self {
    case .ed25519, .ed448, .x25519, .x448: false
    case .p256, .p384, .p521: true
    }
  }

  /// Bytes of a Diffie-Hellman result: the u coordinate, or the x coordinate.
  var sharedSecretByteCount: Int { privateByteCount }

  /// Bits of a scalar's first byte that its group's order leaves.
  var firstByteMask: UInt8 { self == .p521 ? 0x01 : 0xff }

  /// The group of a NIST curve, nil where keys are raw bytes.
  var group: OpaquePointer? {
    switch self {
    case .ed25519, .ed448, .x25519, .x448: nil
    case .p256: unsafe Curve.p256Group
    case .p384: unsafe Curve.p384Group
    case .p521: unsafe Curve.p521Group
    }
  }

  // Read only, hence shared between threads.
  private nonisolated(unsafe) static let p256Group = unsafe EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)
  private nonisolated(unsafe) static let p384Group = unsafe EC_GROUP_new_by_curve_name(NID_secp384r1)
  private nonisolated(unsafe) static let p521Group = unsafe EC_GROUP_new_by_curve_name(NID_secp521r1)
}
