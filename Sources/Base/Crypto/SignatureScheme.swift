import PalbeUnits
import PalbeWire

/// A signature algorithm chosen at run time, as a protocol's cipher suite does.
///
///     let key = SignatureScheme.PrivateKey(.ed448, using: &random)
///     let signature = try key.signature(for: message.span)
///     SignatureScheme.ed448.isValidSignature(signature.span, for: message.span, by: key.publicKey.span)
///
/// Public keys are raw bytes on Edwards curves (RFC 8032) and 4 | x | y on NIST curves (SEC 1 §2.3.3), whose
/// signatures are DER (RFC 3279 §2.2.3).
public enum SignatureScheme: Sendable, Hashable, CaseIterable {
  /// Ed25519 and Ed448, pure and with an empty context; ECDSA with the hash of the curve's strength.
  case ed25519, ed448, ecdsaP256SHA256, ecdsaP384SHA384, ecdsaP521SHA512

  var curve: Curve {
    switch self {
    case .ed25519: .ed25519
    case .ed448: .ed448
    case .ecdsaP256SHA256: .p256
    case .ecdsaP384SHA384: .p384
    case .ecdsaP521SHA512: .p521
    }
  }

  /// The hash before signing; nil where the scheme hashes itself.
  var digest: StaticString? {
    switch self {
    case .ed25519, .ed448: nil
    case .ecdsaP256SHA256: "SHA256"
    case .ecdsaP384SHA384: "SHA384"
    case .ecdsaP521SHA512: "SHA512"
    }
  }

  /// The longest signature, in bytes.
  public var maximumSignatureByteCount: Int {
    switch self {
    case .ed25519: 64
    case .ed448: 114
    case .ecdsaP256SHA256: 72
    case .ecdsaP384SHA384: 104
    case .ecdsaP521SHA512: 139
    }
  }

  /// Bytes of a private key: 32, 57, 32, 48 or 66.
  public var privateKeyByteCount: Int { curve.privateByteCount }

  /// Bytes of a public key: 32, 57, 65, 97 or 133.
  public var publicKeyByteCount: Int { curve.publicByteCount }

  /// True when `signature` is over `message` by the key; false for anything else, also for bytes that are no key.
  public func isValidSignature(
    _ signature: Span<UInt8>, for message: Span<UInt8>, by publicKey: Span<UInt8>
  ) -> Bool {
    guard let known = try? KnownPublicKeys.key(publicKey, on: curve) else { return false }
    return known.key.verify(signature, for: message, digest: digest)
  }

  /// A private key, wiped when the value ends.
  public struct PrivateKey: ~Copyable, Sendable {
    /// What the key signs with.
    public let scheme: SignatureScheme
    private let pair: KeyPair

    /// The key that verifies what this one signs: `publicKeyByteCount` bytes.
    public var publicKey: [UInt8] { pair.publicBytes }

    /// The seed, or the big-endian scalar: `privateKeyByteCount` bytes.
    public var rawRepresentation: SymmetricKey { pair.privateBytes() }

    /// A fresh key.
    public init(_ scheme: SignatureScheme, using random: inout RandomSource) {
      self.scheme = scheme
      pair = KeyPair(scheme.curve, using: &random)
    }

    /// From a seed or a big-endian scalar. Throws `wrongLength`, and `invalidPrivateKey` for a scalar that is
    /// not between zero and the group's order.
    public init(_ scheme: SignatureScheme, rawRepresentation: Span<UInt8>) throws(CryptoError) {
      let pair = try KeyPair(scheme.curve, private: rawRepresentation)
      self.scheme = scheme
      self.pair = pair
    }

    /// A signature of at most `maximumSignatureByteCount` bytes. On an Edwards curve the same for the same
    /// message; on a NIST curve another one each time, its nonce from OpenSSL's own generator.
    public borrowing func signature(for message: Span<UInt8>) throws(CryptoError) -> [UInt8] {
      try pair.key.sign(message, digest: scheme.digest, maximum: scheme.maximumSignatureByteCount)
    }
  }
}
