import PalbeUnits
import PalbeWire

extension P256 {
  /// ECDH (NIST SP 800-56A §5.7.1.2); the shared secret is the x coordinate.
  public enum KeyAgreement {
    /// A private key, wiped when the value ends.
    public struct PrivateKey: ~Copyable, Sendable {
      private let pair: KeyPair
      /// The key to give to the peer.
      public var publicKey: PublicKey { PublicKey(unchecked: pair.publicBytes) }

      /// A fresh key.
      public init(using random: inout RandomSource) { pair = KeyPair(.p256, using: &random) }

      /// A big-endian scalar of 32 bytes. Throws `wrongLength`, and `invalidPrivateKey` unless it lies
      /// between zero and the group's order.
      public init(rawRepresentation scalar: Span<UInt8>) throws(CryptoError) {
        pair = try KeyPair(.p256, private: scalar)
      }

      /// The scalar, 32 bytes.
      public var rawRepresentation: SymmetricKey { pair.privateBytes() }

      /// The 32-byte shared secret.
      public borrowing func sharedSecret(with peer: PublicKey) throws(CryptoError) -> SymmetricKey {
        try pair.sharedSecret(with: peer.x963Representation.span)
      }
    }

    /// A public key that is a point of the curve.
    public struct PublicKey: Hashable, Sendable {
      /// 65 bytes: 4 | x | y.
      public let x963Representation: [UInt8]

      init(unchecked bytes: [UInt8]) { x963Representation = bytes }

      /// Throws `wrongLength` unless there are 65 bytes, `invalidPoint` unless they are 4 and a point of the
      /// curve.
      public init(x963Representation bytes: Span<UInt8>) throws(CryptoError) {
        _ = try PKey(public: bytes, on: .p256)
        x963Representation = [UInt8](bytes)
      }
    }
  }
}
