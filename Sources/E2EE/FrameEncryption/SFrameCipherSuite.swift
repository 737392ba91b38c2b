import PalbeCrypto

/// The SFrame cipher suites that we seal with: the two AES-GCM ones (RFC 9605 §4.5). The AES-CTR-HMAC suites shorten
/// the tag for tiny audio frames and cost a second pass; we do not need them.
public enum SFrameCipherSuite: UInt16, CaseIterable, Sendable {
  /// AES_128_GCM_SHA256_128.
  case aes128GCM = 4
  /// AES_256_GCM_SHA512_128, what calls use.
  case aes256GCM = 5

  /// Nk: bytes of the cipher's key.
  public var keyByteCount: Int { self == .aes128GCM ? 16 : 32 }
  /// Nh: bytes of the hash.
  public var hashByteCount: Int { self == .aes128GCM ? 32 : 64 }
  /// Nn: bytes of the nonce.
  public static let nonceByteCount = 12
  /// Nt: bytes of the tag.
  public static let tagByteCount = 16

  var algorithm: AEADContext.Algorithm { self == .aes128GCM ? .aes128GCM : .aes256GCM }

  func extract(_ inputKeyMaterial: Span<UInt8>) -> SymmetricKey {
    let empty = [UInt8]()
    return switch self {
    case .aes128GCM: HKDF<SHA256>.extract(salt: empty.span, inputKeyMaterial: inputKeyMaterial)
    case .aes256GCM: HKDF<SHA512>.extract(salt: empty.span, inputKeyMaterial: inputKeyMaterial)
    }
  }

  func expand(_ secret: borrowing SymmetricKey, info: [UInt8], byteCount: Int) -> SymmetricKey {
    switch self {
    case .aes128GCM:
      HKDF<SHA256>.expand(pseudoRandomKey: secret.span, info: info.span, outputByteCount: byteCount)
    case .aes256GCM:
      HKDF<SHA512>.expand(pseudoRandomKey: secret.span, info: info.span, outputByteCount: byteCount)
    }
  }
}
