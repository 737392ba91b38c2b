import PalbeUnits
import PalbeWire

extension Curve25519 {
  /// X25519 (RFC 7748 §5).
  public enum KeyAgreement {
    /// A private key, wiped when the value ends.
    public struct PrivateKey: ~Copyable, Sendable {
      private let pair: KeyPair
      /// The key to give to the peer.
      public var publicKey: PublicKey { PublicKey(unchecked: pair.publicBytes) }

      /// A fresh key.
      public init(using random: inout RandomSource) { pair = KeyPair(.x25519, using: &random) }

      /// A 32-byte scalar, clamped where it is used (RFC 7748 §5); throws `wrongLength` for another length.
      public init(rawRepresentation scalar: Span<UInt8>) throws(CryptoError) {
        pair = try KeyPair(.x25519, private: scalar)
      }

      /// The 32-byte scalar as it was given.
      public var rawRepresentation: SymmetricKey { pair.privateBytes() }

      /// The 32-byte shared secret. Throws `invalidPoint` when it is zero: a peer's point of small order.
      public borrowing func sharedSecret(with peer: PublicKey) throws(CryptoError) -> SymmetricKey {
        try pair.sharedSecret(with: peer.rawRepresentation.span)
      }
    }

    /// A public key: any 32 bytes are one.
    public struct PublicKey: Hashable, Sendable {
      /// 32 bytes.
      public let rawRepresentation: [UInt8]

      init(unchecked bytes: [UInt8]) { rawRepresentation = bytes }

      /// Throws `wrongLength` unless there are 32 bytes.
      public init(rawRepresentation: [UInt8]) throws(CryptoError) {
        guard rawRepresentation.count == keyByteCount else {
          throw .wrongLength(expected: keyByteCount, got: rawRepresentation.count)
        }
        self.rawRepresentation = rawRepresentation
      }

      /// Throws `wrongLength` unless there are 32 bytes.
      public init(rawRepresentation: Span<UInt8>) throws(CryptoError) {
        try self.init(rawRepresentation: [UInt8](rawRepresentation))
      }
    }
  }
}
