import PalbeUnits
import PalbeWire

/// Hybrid public key encryption (RFC 9180) in base mode: to a public key, from nobody in particular.
///
///     let (encapsulatedKey, ciphertext) = try HPKE.seal(
///       .x25519SHA256AES128GCM, to: publicKey.span, info: info.span, aad: aad.span, plaintext: secret.span,
///       using: &random)
public enum HPKE {
  /// How a shared secret reaches the recipient (RFC 9180 §7.1).
  public enum KEM: UInt16, Sendable, Hashable, CaseIterable {
    case p256 = 0x0010, p384 = 0x0011, p521 = 0x0012, x25519 = 0x0020, x448 = 0x0021
  }

  /// How keys are derived from it (RFC 9180 §7.2).
  public enum KDF: UInt16, Sendable, Hashable, CaseIterable {
    case sha256 = 0x0001, sha384 = 0x0002, sha512 = 0x0003
  }

  /// How messages are sealed (RFC 9180 §7.3). `exportOnly` seals none.
  public enum AEAD: UInt16, Sendable, Hashable, CaseIterable {
    case aes128GCM = 0x0001, aes256GCM = 0x0002, chaCha20Poly1305 = 0x0003, exportOnly = 0xffff
  }

  /// One algorithm of each kind.
  public struct Ciphersuite: Sendable, Hashable {
    /// The key encapsulation.
    public let kem: KEM
    /// The key derivation.
    public let kdf: KDF
    /// The cipher.
    public let aead: AEAD

    /// Any combination is a suite.
    public init(kem: KEM, kdf: KDF, aead: AEAD) {
      self.kem = kem
      self.kdf = kdf
      self.aead = aead
    }

    /// What MLS suite 1 uses (RFC 9420 §17.1).
    public static let x25519SHA256AES128GCM = Ciphersuite(kem: .x25519, kdf: .sha256, aead: .aes128GCM)
  }

  /// Seals one message: `SealBase` of RFC 9180 §6.1.
  ///
  /// Throws `wrongLength` or `invalidPoint` for a public key that is none. With `exportOnly` there is nothing
  /// to seal with: a programming error, which traps.
  public static func seal(
    _ suite: Ciphersuite, to publicKey: Span<UInt8>, info: Span<UInt8>, aad: Span<UInt8>,
    plaintext: Span<UInt8>, using random: inout RandomSource
  ) throws(CryptoError) -> (encapsulatedKey: [UInt8], ciphertext: [UInt8]) {
    try seal(Info(suite, info), to: publicKey, aad: aad, plaintext: plaintext, using: &random)
  }

  /// As above, under an `info` that was hashed before: for one message to many.
  public static func seal(
    _ info: Info, to publicKey: Span<UInt8>, aad: Span<UInt8>, plaintext: Span<UInt8>,
    using random: inout RandomSource
  ) throws(CryptoError) -> (encapsulatedKey: [UInt8], ciphertext: [UInt8]) {
    var sender = try Sender(info, to: publicKey, using: &random)
    let ciphertext = try sender.seal(plaintext, authenticating: aad)
    return (sender.encapsulatedKey, ciphertext)
  }

  /// Opens one message: `OpenBase` of RFC 9180 §6.1.
  ///
  /// Throws `wrongLength` or `invalidPoint` for an encapsulated key that is none, `authenticationFailure`
  /// when the message was not sealed for this key, info and associated data.
  public static func open(
    _ suite: Ciphersuite, privateKey: borrowing PrivateKey, encapsulatedKey: Span<UInt8>, info: Span<UInt8>,
    aad: Span<UInt8>, ciphertext: Span<UInt8>
  ) throws(CryptoError) -> SymmetricKey {
    var recipient = try Recipient(suite, privateKey: privateKey, encapsulatedKey: encapsulatedKey, info: info)
    return try recipient.open(ciphertext, authenticating: aad)
  }

  /// The key pair that `inputKeyMaterial` stands for: `DeriveKeyPair` of RFC 9180 §7.1.3. The material has at
  /// least as many bits of entropy as the key; the result has the suite's KEM.
  public static func deriveKeyPair(
    _ suite: Ciphersuite, inputKeyMaterial: Span<UInt8>
  ) throws(CryptoError) -> PrivateKey {
    try PrivateKey(suite.kem, derivedFrom: inputKeyMaterial)
  }
}

extension HPKE.AEAD {
  /// The cipher; nil for `exportOnly`.
  var algorithm: AEADContext.Algorithm? {
    switch self {
    case .aes128GCM: .aes128GCM
    case .aes256GCM: .aes256GCM
    case .chaCha20Poly1305: .chaCha20Poly1305
    case .exportOnly: nil
    }
  }
}
