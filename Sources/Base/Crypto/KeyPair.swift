import CPalbeOpenSSL
import PalbeUnits

/// An owned EVP_PKEY. OpenSSL lets several threads use one for signing and deriving.
@safe struct PKey: ~Copyable, @unchecked Sendable {
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  /// A key of Curve25519 from its raw bytes.
  init?(rawPrivate bytes: Span<UInt8>, type: StaticString) {
    let made = unsafe type.withName { name in
      unsafe withBytes(bytes) { unsafe EVP_PKEY_new_raw_private_key_ex(nil, name, nil, $0, $1) }
    }
    guard let made = unsafe made else { return nil }
    unsafe pointer = made
  }

  /// A public key of Curve25519 from its raw bytes.
  init?(rawPublic bytes: Span<UInt8>, type: StaticString) {
    let made = unsafe type.withName { name in
      unsafe withBytes(bytes) { unsafe EVP_PKEY_new_raw_public_key_ex(nil, name, nil, $0, $1) }
    }
    guard let made = unsafe made else { return nil }
    unsafe pointer = made
  }

  deinit { unsafe EVP_PKEY_free(pointer) }

  /// The raw public bytes of a Curve25519 key.
  borrowing func rawPublic() -> [UInt8] {
    [UInt8](capacity: 32) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, initialized in
        var count = buffer.count
        let got = unsafe EVP_PKEY_get_raw_public_key(pointer, buffer.baseAddress, &count)
        precondition(got == 1 && count == 32)
        initialized = count
      }
    }
  }

  /// The raw private bytes of a Curve25519 key.
  borrowing func rawPrivate() -> SymmetricKey {
    SymmetricKey(byteCount: 32) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, initialized in
        var count = buffer.count
        let got = unsafe EVP_PKEY_get_raw_private_key(pointer, buffer.baseAddress, &count)
        precondition(got == 1 && count == 32)
        initialized = count
      }
    }
  }

  /// Diffie-Hellman. Throws `invalidPoint` where OpenSSL refuses the peer's point, and for a result of zeros.
  borrowing func sharedSecret(with peer: borrowing PKey, byteCount: Int) throws(CryptoError) -> SymmetricKey {
    guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, pointer, nil) else { throw .fromOpenSSL() }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    guard unsafe EVP_PKEY_derive_init(context) == 1, unsafe EVP_PKEY_derive_set_peer(context, peer.pointer) == 1 else {
      ERR_clear_error()
      throw .invalidPoint
    }
    return try SymmetricKey(byteCount: byteCount) { output throws(CryptoError) in
      try unsafe output.withUnsafeMutableBufferPointer { buffer, initialized throws(CryptoError) in
        var count = buffer.count
        guard unsafe EVP_PKEY_derive(context, buffer.baseAddress, &count) == 1 else {
          ERR_clear_error()
          throw .invalidPoint
        }
        initialized = count
      }
      guard !isAllZeros(output.span) else { throw .invalidPoint }
    }
  }

  /// A signature of at most `maximum` bytes with the key's own hash, or with `digest`.
  borrowing func sign(
    _ message: Span<UInt8>, digest: StaticString?, maximum: Int
  ) throws(CryptoError) -> [UInt8] {
    guard let context = unsafe EVP_MD_CTX_new() else { throw .fromOpenSSL() }
    defer { unsafe EVP_MD_CTX_free(context) }
    let ready =
      if let digest {
        unsafe digest.withName { unsafe EVP_DigestSignInit_ex(context, nil, $0, nil, nil, pointer, nil) }
      } else {
        unsafe EVP_DigestSignInit_ex(context, nil, nil, nil, nil, pointer, nil)
      }
    guard ready == 1 else { throw .fromOpenSSL() }
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
    let ready =
      if let digest {
        unsafe digest.withName { unsafe EVP_DigestVerifyInit_ex(context, nil, $0, nil, nil, pointer, nil) }
      } else {
        unsafe EVP_DigestVerifyInit_ex(context, nil, nil, nil, nil, pointer, nil)
      }
    guard ready == 1 else { return false }
    return unsafe withBytes(signature) { bytes, count in
      unsafe withBytes(message) { unsafe EVP_DigestVerify(context, bytes, count, $0, $1) == 1 }
    }
  }
}

/// The check of RFC 7748 §6.1, an OR over all bytes so that it does not end early.
private func isAllZeros(_ bytes: Span<UInt8>) -> Bool {
  var seen: UInt8 = 0
  for index in bytes.indices { seen |= bytes[index] }
  return seen == 0
}

extension StaticString {
  /// The text as a C string.
  func withName<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    withUTF8Buffer { utf8 in
      unsafe utf8.withMemoryRebound(to: CChar.self) { unsafe body($0.baseAddress!) }
    }
  }
}
