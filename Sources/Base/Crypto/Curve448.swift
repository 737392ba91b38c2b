import PalbeUnits
import PalbeWire

/// X448 key agreement (RFC 7748 §5). Ed448 signatures are `SignatureScheme.ed448`.
public enum Curve448 {
  /// Bytes of every private and public key of X448.
  static var keyByteCount: Int { 56 }

  /// X448 (RFC 7748 §5).
  public enum KeyAgreement {
    /// A private key, wiped when the value ends.
    public struct PrivateKey: ~Copyable, Sendable {
      private let pair: KeyPair
      /// The key to give to the peer.
      public var publicKey: PublicKey { PublicKey(unchecked: pair.publicBytes) }

      /// A fresh key.
      public init(using random: inout RandomSource) { pair = KeyPair(.x448, using: &random) }

      /// A 56-byte scalar, clamped where it is used (RFC 7748 §5); throws `wrongLength` for another length.
      public init(rawRepresentation scalar: Span<UInt8>) throws(CryptoError) {
        pair = try KeyPair(.x448, private: scalar)
      }

      /// The 56-byte scalar as it was given.
      public var rawRepresentation: SymmetricKey { pair.privateBytes() }

      /// The 56-byte shared secret. Throws `invalidPoint` when it is zero: a peer's point of small order.
      public borrowing func sharedSecret(with peer: PublicKey) throws(CryptoError) -> SymmetricKey {
        try pair.sharedSecret(with: peer.rawRepresentation.span)
      }
    }

    /// A public key: any 56 bytes are one.
    public struct PublicKey: Hashable, Sendable {
      /// 56 bytes.
      public let rawRepresentation: [UInt8]

      init(unchecked bytes: [UInt8]) { rawRepresentation = bytes }

      /// Throws `wrongLength` unless there are 56 bytes.
      public init(rawRepresentation: [UInt8]) throws(CryptoError) {
        guard rawRepresentation.count == keyByteCount else {
          throw .wrongLength(expected: keyByteCount, got: rawRepresentation.count)
        }
        self.rawRepresentation = rawRepresentation
      }
    }
  }
}
