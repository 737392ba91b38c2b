import CPalbeOpenSSL
import PalbeUnits
import PalbeWire

/// A private key with its public key's bytes: what every private key type of this module is made of.
struct KeyPair: ~Copyable, Sendable {
  let curve: Curve
  let key: PKey
  /// `curve.publicByteCount` bytes.
  let publicBytes: [UInt8]

  /// From a raw seed or a big-endian scalar. Throws `wrongLength`, and `invalidPrivateKey` for a scalar that
  /// is zero or not below the order of its NIST curve.
  init(_ curve: Curve, private bytes: Span<UInt8>) throws(CryptoError) {
    guard bytes.count == curve.privateByteCount else {
      throw .wrongLength(expected: curve.privateByteCount, got: bytes.count)
    }
    let point: [UInt8]
    let made: OpaquePointer?
    if let group = unsafe curve.group {
      point = try unsafe multiplyGenerator(of: group, by: bytes, byteCount: curve.publicByteCount)
      unsafe made = importEC(curve, point: point, bigEndianScalar: bytes)
    } else {
      unsafe made = withBytes(bytes) {
        unsafe EVP_PKEY_new_raw_private_key_ex(nil, curve.name.cString, nil, $0, $1)
      }
      point = unsafe rawPublicBytes(made, count: curve.publicByteCount)
    }
    guard let made = unsafe made, !point.isEmpty else { throw .fromOpenSSL() }
    self.curve = curve
    self.key = unsafe PKey(owning: made)
    self.publicBytes = point
  }

  /// From a raw seed or a big-endian scalar and the public key that belongs to it, which is not computed again.
  /// Throws `wrongLength`, and `invalidPrivateKey` where OpenSSL refuses them.
  init(_ curve: Curve, private bytes: Span<UInt8>, public point: [UInt8]) throws(CryptoError) {
    guard bytes.count == curve.privateByteCount else {
      throw .wrongLength(expected: curve.privateByteCount, got: bytes.count)
    }
    guard point.count == curve.publicByteCount else {
      throw .wrongLength(expected: curve.publicByteCount, got: point.count)
    }
    let made: OpaquePointer?
    if curve.isNIST {
      unsafe made = importEC(curve, point: point, bigEndianScalar: bytes)
    } else {
      unsafe made = importRaw(curve, public: point.span, private: bytes)
    }
    guard let made = unsafe made else {
      ERR_clear_error()
      throw .invalidPrivateKey
    }
    self.curve = curve
    self.key = unsafe PKey(owning: made)
    self.publicBytes = point
  }

  /// From bytes that are uniform, with the bits that a scalar cannot have cleared. Nil when they are out of
  /// range, and the next ones are due (FIPS 186-4 B.4.2, RFC 9180 §7.1.3).
  init?(_ curve: Curve, masking bytes: Span<UInt8>) {
    let candidate = SymmetricKey(byteCount: bytes.count) { output in
      for index in bytes.indices { output.append(index == 0 ? bytes[0] & curve.firstByteMask : bytes[index]) }
    }
    do throws(CryptoError) {
      try self.init(curve, private: candidate.span)
    } catch {
      return nil
    }
  }

  /// A fresh key. How often a scalar is drawn again tells nothing about the one kept.
  init(_ curve: Curve, using random: inout RandomSource) {
    for _ in 0..<256 {
      let bytes = SymmetricKey(byteCount: curve.privateByteCount, using: &random)
      if let pair = KeyPair(curve, masking: bytes.span) {
        self = pair
        return
      }
    }
    // A sound source fails here less often than once in 2^256 times.
    fatalError("the random source gives no key of \(curve.name)")
  }

  /// The seed, or the scalar in big-endian order: what the key was made from.
  borrowing func privateBytes() -> SymmetricKey {
    let size = curve.privateByteCount
    let isNIST = curve.isNIST
    return SymmetricKey(byteCount: size) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, initialized in
        var count = size
        if isNIST {
          var number: OpaquePointer?
          let got = unsafe EVP_PKEY_get_bn_param(key.pointer, OSSL_PKEY_PARAM_PRIV_KEY, &number)
          precondition(got == 1)
          count = Int(unsafe BN_bn2binpad(number, buffer.baseAddress, Int32(size)))
          unsafe BN_clear_free(number)
        } else {
          let got = unsafe EVP_PKEY_get_raw_private_key(key.pointer, buffer.baseAddress, &count)
          precondition(got == 1)
        }
        precondition(count == size)
        initialized = count
      }
    }
  }

  /// Diffie-Hellman with a peer's public bytes; throws as `PKey(public:on:)` and `PKey.sharedSecret` do.
  borrowing func sharedSecret(with peer: Span<UInt8>) throws(CryptoError) -> SymmetricKey {
    let peer = try PKey(public: peer, on: curve)
    return try key.sharedSecret(with: peer, on: curve)
  }
}

private func importEC(_ curve: Curve, point: [UInt8], bigEndianScalar: Span<UInt8>) -> OpaquePointer? {
  let scalar = SymmetricKey(byteCount: bigEndianScalar.count) { output in
    #if _endian(little)
      for index in bigEndianScalar.indices.reversed() { output.append(bigEndianScalar[index]) }
    #else
      output.append(contentsOf: bigEndianScalar)
    #endif
  }
  return unsafe importEC(curve, public: point.span, private: scalar.span)
}

/// The public bytes of a raw key; none when there are not `count`.
private func rawPublicBytes(_ key: OpaquePointer?, count: Int) -> [UInt8] {
  guard let key = unsafe key else { return [] }
  var bytes = [UInt8](repeating: 0, count: count)
  var length = count
  let got = unsafe bytes.withUnsafeMutableBufferPointer {
    unsafe EVP_PKEY_get_raw_public_key(key, $0.baseAddress, &length)
  }
  return got == 1 && length == count ? bytes : []
}

/// The public point of a big-endian scalar, 4 | x | y. Throws `invalidPrivateKey` unless 0 < scalar < order.
private func multiplyGenerator(
  of group: OpaquePointer, by scalar: Span<UInt8>, byteCount: Int
) throws(CryptoError) -> [UInt8] {
  guard
    let number = unsafe withBytes(scalar, { unsafe BN_bin2bn($0, Int32($1), nil) })
  else { throw .fromOpenSSL() }
  defer { unsafe BN_clear_free(number) }
  unsafe BN_set_flags(number, BN_FLG_CONSTTIME)
  guard unsafe BN_is_zero(number) == 0, unsafe BN_cmp(number, EC_GROUP_get0_order(group)) < 0 else {
    throw .invalidPrivateKey
  }
  guard let point = unsafe EC_POINT_new(group) else { throw .fromOpenSSL() }
  defer { unsafe EC_POINT_free(point) }
  guard unsafe EC_POINT_mul(group, point, number, nil, nil, nil) == 1 else { throw .fromOpenSSL() }
  var bytes = [UInt8](repeating: 0, count: byteCount)
  let written = unsafe bytes.withUnsafeMutableBufferPointer {
    unsafe EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, $0.baseAddress, $0.count, nil)
  }
  guard written == byteCount else { throw .fromOpenSSL() }
  return bytes
}
