import PalbeUnits
import PalbeWire

extension HPKE {
  /// A recipient's private key, wiped when the value ends.
  public struct PrivateKey: ~Copyable, Sendable {
    /// What the key is for.
    public let kem: KEM
    let pair: KeyPair

    /// The public key as the KEM serializes it: 32 or 56 raw bytes, or 4 | x | y.
    public var publicKey: [UInt8] { pair.publicBytes }

    /// The private key as the KEM serializes it: raw bytes, or a big-endian scalar.
    public var rawRepresentation: SymmetricKey { pair.privateBytes() }

    /// A fresh key.
    public init(_ kem: KEM, using random: inout RandomSource) {
      self.kem = kem
      pair = KeyPair(kem.curve, using: &random)
    }

    /// From its serialized form. Throws `wrongLength`, and `invalidPrivateKey` for a scalar out of range.
    public init(_ kem: KEM, rawRepresentation: Span<UInt8>) throws(CryptoError) {
      let pair = try KeyPair(kem.curve, private: rawRepresentation)
      self.kem = kem
      self.pair = pair
    }

    /// From its serialized form and its public key, which is taken at its word: it is not multiplied again. With the
    /// wrong one nothing opens. Throws `wrongLength`, and `invalidPrivateKey` where OpenSSL refuses the pair.
    public init(
      _ kem: KEM, rawRepresentation: Span<UInt8>, publicKey: [UInt8]
    ) throws(CryptoError) {
      let pair = try KeyPair(kem.curve, private: rawRepresentation, public: publicKey)
      self.kem = kem
      self.pair = pair
    }

    /// DeriveKeyPair (RFC 9180 §7.1.3).
    init(_ kem: KEM, derivedFrom inputKeyMaterial: Span<UInt8>) throws(CryptoError) {
      let kdf = LabeledKDF(kem)
      let key = kdf.extract(salt: Span(), label: "dkp_prk", inputKeyMaterial: inputKeyMaterial)
      let pair =
        try kem.curve.isNIST
        ? PrivateKey.firstCandidate(kem, kdf, key.span) : PrivateKey.expanded(kem, kdf, key.span)
      self.kem = kem
      self.pair = pair
    }

    private static func expanded(
      _ kem: KEM, _ kdf: LabeledKDF, _ key: Span<UInt8>
    ) throws(CryptoError) -> KeyPair {
      let secret = kdf.expand(key, label: "sk", info: Span(), byteCount: kem.curve.privateByteCount)
      return try KeyPair(kem.curve, private: secret.span)
    }

    /// The first of at most 256 candidates that is a scalar of the group.
    private static func firstCandidate(
      _ kem: KEM, _ kdf: LabeledKDF, _ key: Span<UInt8>
    ) throws(CryptoError) -> KeyPair {
      for counter in UInt8.min...UInt8.max {
        let number: [1 of UInt8] = [counter]
        let candidate = kdf.expand(
          key, label: "candidate", info: number.span, byteCount: kem.curve.privateByteCount)
        if let pair = KeyPair(kem.curve, masking: candidate.span) { return pair }
      }
      throw .invalidPrivateKey
    }
  }
}

extension HPKE.KEM {
  var curve: Curve {
    switch self {
    case .p256: .p256
    case .p384: .p384
    case .p521: .p521
    case .x25519: .x25519
    case .x448: .x448
    }
  }

  /// The KDF within the KEM, whatever the suite's own is (RFC 9180 §7.1).
  var kdf: HPKE.KDF {
    switch self {
    case .p256, .x25519: .sha256
    case .p384: .sha384
    case .p521, .x448: .sha512
    }
  }

  /// Npk and Nenc, bytes of a public key and of an encapsulated key: 65, 97, 133, 32 or 56.
  public var publicKeyByteCount: Int { curve.publicByteCount }

  /// Nsk, bytes of a private key: 32, 48, 66, 32 or 56.
  public var privateKeyByteCount: Int { curve.privateByteCount }

  /// True for bytes that a message can be sealed to: of the right length and, on a NIST curve, a point of it
  /// (RFC 9180 §7.1.4). On Curve25519 and Curve448 the points of small order are none, since every secret shared
  /// with them is zero.
  public func isValidPublicKey(_ bytes: Span<UInt8>) -> Bool {
    if !curve.isNIST { return bytes.count == curve.publicByteCount && !curve.hasSmallOrder(bytes) }
    do throws(CryptoError) {
      _ = try PKey(public: bytes, on: curve)
      return true
    } catch {
      return false
    }
  }

  /// The shared secret of a Diffie-Hellman result (RFC 9180 §4.1, ExtractAndExpand).
  func sharedSecret(_ result: Span<UInt8>, encapsulatedKey: [UInt8], publicKey: [UInt8]) -> SymmetricKey {
    let labeled = HPKE.LabeledKDF(self)
    let key = labeled.extract(salt: Span(), label: "eae_prk", inputKeyMaterial: result)
    let context = encapsulatedKey + publicKey
    return labeled.expand(key.span, label: "shared_secret", info: context.span, byteCount: kdf.byteCount)
  }
}
