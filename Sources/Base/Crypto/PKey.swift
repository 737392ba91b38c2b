import CPalbeOpenSSL

/// An owned EVP_PKEY: one private or public key. OpenSSL lets several threads use one for signing and
/// deriving.
@safe struct PKey: ~Copyable, @unchecked Sendable {
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  deinit { unsafe EVP_PKEY_free(pointer) }

  /// A public key. Throws `wrongLength`, or `invalidPoint` for bytes that are no point of a NIST curve; raw
  /// keys of Curve25519 and Curve448 are not looked at.
  init(public bytes: Span<UInt8>, on curve: Curve) throws(CryptoError) {
    guard bytes.count == curve.publicByteCount else {
      throw .wrongLength(expected: curve.publicByteCount, got: bytes.count)
    }
    let made: OpaquePointer?
    if !curve.isNIST {
      unsafe made = withBytes(bytes) {
        unsafe EVP_PKEY_new_raw_public_key_ex(nil, curve.name.cString, nil, $0, $1)
      }
    } else {
      guard bytes[0] == 4 else { throw .invalidPoint }
      unsafe made = importEC(curve, public: bytes)
    }
    guard let made = unsafe made else {
      ERR_clear_error()
      throw .invalidPoint
    }
    unsafe self.init(owning: made)
  }

  /// Diffie-Hellman. Throws `invalidPoint` where OpenSSL refuses the peer's point, and on a curve of raw
  /// keys for a result of zeros.
  borrowing func sharedSecret(
    with peer: borrowing PKey, on curve: Curve
  ) throws(CryptoError) -> SymmetricKey {
    guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, pointer, nil) else { throw .fromOpenSSL() }
    defer {
      unsafe EVP_PKEY_CTX_free(context)
      ERR_clear_error()
    }
    // Without OpenSSL's own check of the peer: it multiplies by the group's order, which tells nothing new of
    // a point that is on the curve already, since the cofactor is 1 (NIST SP 800-56A §5.6.2.3.4).
    guard
      unsafe EVP_PKEY_derive_init(context) == 1,
      unsafe EVP_PKEY_derive_set_peer_ex(context, peer.pointer, 0) == 1
    else { throw .invalidPoint }
    return try SymmetricKey(byteCount: curve.sharedSecretByteCount) { output throws(CryptoError) in
      try unsafe output.withUnsafeMutableBufferPointer { buffer, initialized throws(CryptoError) in
        var count = buffer.count
        guard unsafe EVP_PKEY_derive(context, buffer.baseAddress, &count) == 1 else { throw .invalidPoint }
        initialized = count
      }
      // RFC 7748 §6.1. On a NIST curve there is a point with x = 0, as good as any other.
      guard curve.isNIST || !isAllZeros(output.span) else { throw .invalidPoint }
    }
  }

  /// A signature of at most `maximum` bytes over `message`, hashed with `digest` unless the scheme hashes
  /// itself.
  borrowing func sign(
    _ message: Span<UInt8>, digest: StaticString?, maximum: Int
  ) throws(CryptoError) -> [UInt8] {
    guard let context = unsafe EVP_MD_CTX_new() else { throw .fromOpenSSL() }
    defer { unsafe EVP_MD_CTX_free(context) }
    guard unsafe EVP_DigestSignInit_ex(context, nil, digest?.cString, nil, nil, pointer, nil) == 1 else {
      throw .fromOpenSSL()
    }
    var signature = [UInt8](repeating: 0, count: maximum)
    var count = maximum
    let signed = unsafe withBytes(message) { bytes, length in
      unsafe signature.withUnsafeMutableBufferPointer {
        unsafe EVP_DigestSign(context, $0.baseAddress, &count, bytes, length)
      }
    }
    guard signed == 1 else { throw .fromOpenSSL() }
    signature.removeLast(maximum - count)
    return signature
  }

  /// False for every signature that does not verify, whatever the reason.
  borrowing func verify(_ signature: Span<UInt8>, for message: Span<UInt8>, digest: StaticString?) -> Bool {
    guard let context = unsafe EVP_MD_CTX_new() else { return false }
    defer {
      unsafe EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    guard unsafe EVP_DigestVerifyInit_ex(context, nil, digest?.cString, nil, nil, pointer, nil) == 1 else {
      return false
    }
    return unsafe withBytes(signature) { bytes, count in
      unsafe withBytes(message) { unsafe EVP_DigestVerify(context, bytes, count, $0, $1) == 1 }
    }
  }
}

/// A key of a NIST curve; nil when OpenSSL refuses it. `private` is the scalar in this machine's byte order,
/// empty for a public key.
func importEC(
  _ curve: Curve, public point: Span<UInt8>, private scalar: Span<UInt8> = Span()
) -> OpaquePointer? {
  guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
  defer { unsafe EVP_PKEY_CTX_free(context) }
  guard unsafe EVP_PKEY_fromdata_init(context) == 1 else { return nil }
  let name = unsafe UnsafeMutablePointer(mutating: curve.name.cString)
  let group = unsafe OSSL_PARAM_construct_utf8_string(groupKey.cString, name, 0)
  return unsafe withBytes(point) { bytes, count in
    let start = unsafe UnsafeMutableRawPointer(mutating: bytes)
    let key = unsafe OSSL_PARAM_construct_octet_string(publicKey.cString, start, count)
    if scalar.isEmpty {
      return unsafe make(context, palbe_pkey_public_key, [group, key, OSSL_PARAM_construct_end()])
    }
    return unsafe withBytes(scalar) { secret, count in
      let start = unsafe UnsafeMutablePointer(mutating: secret)
      let number = unsafe OSSL_PARAM_construct_BN(privateKey.cString, start, count)
      return unsafe make(context, palbe_pkey_key_pair, [group, key, number, OSSL_PARAM_construct_end()])
    }
  }
}

/// A key pair of raw bytes as they are; nil when OpenSSL refuses it.
func importRaw(_ curve: Curve, public point: Span<UInt8>, private secret: Span<UInt8>) -> OpaquePointer? {
  guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, curve.name.cString, nil) else { return nil }
  defer { unsafe EVP_PKEY_CTX_free(context) }
  guard unsafe EVP_PKEY_fromdata_init(context) == 1 else { return nil }
  return unsafe withBytes(point) { bytes, count in
    let start = unsafe UnsafeMutableRawPointer(mutating: bytes)
    let key = unsafe OSSL_PARAM_construct_octet_string(publicKey.cString, start, count)
    return unsafe withBytes(secret) { bytes, count in
      let start = unsafe UnsafeMutableRawPointer(mutating: bytes)
      let number = unsafe OSSL_PARAM_construct_octet_string(privateKey.cString, start, count)
      return unsafe make(context, palbe_pkey_key_pair, [key, number, OSSL_PARAM_construct_end()])
    }
  }
}

// OSSL_PKEY_PARAM_…, which Swift imports as strings; a parameter keeps a pointer to its name.
private let groupKey: StaticString = "group"
private let publicKey: StaticString = "pub"
private let privateKey: StaticString = "priv"

private func make(_ context: OpaquePointer, _ selection: Int32, _ parameters: [OSSL_PARAM]) -> OpaquePointer?
{
  var parameters = unsafe parameters
  var made: OpaquePointer?
  let status = unsafe parameters.withUnsafeMutableBufferPointer {
    unsafe EVP_PKEY_fromdata(context, &made, selection, $0.baseAddress)
  }
  guard status == 1 else {
    unsafe EVP_PKEY_free(made)
    return nil
  }
  return unsafe made
}

/// An OR over all bytes, so that it does not end early.
private func isAllZeros(_ bytes: Span<UInt8>) -> Bool {
  var seen: UInt8 = 0
  for index in bytes.indices { seen |= bytes[index] }
  return seen == 0
}

extension StaticString {
  /// The text as a C string that lives as long as the process.
  var cString: UnsafePointer<CChar> { unsafe UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self) }
}
