import PalbeUnits
import PalbeWire

extension Curve25519 {
  /// X25519 (RFC 7748 §5).
  public enum KeyAgreement {
    /// A private key, wiped when the value ends.
    public struct PrivateKey: ~Copyable, Sendable {
      private let key: PKey
      /// The key to give to the peer.
      public let publicKey: PublicKey

      /// A fresh key.
      public init(using random: inout RandomSource) {
        let scalar = SymmetricKey(byteCount: keyByteCount, using: &random)
        guard let key = PKey(rawPrivate: scalar.span, type: "X25519") else { fatalError("OpenSSL has no X25519") }
        publicKey = PublicKey(unchecked: key.rawPublic())
        self.key = key
      }

      /// A 32-byte scalar, clamped where it is used (RFC 7748 §5); throws `wrongLength` for another length.
      public init(rawRepresentation scalar: Span<UInt8>) throws(CryptoError) {
        guard scalar.count == keyByteCount else { throw .wrongLength(expected: keyByteCount, got: scalar.count) }
        guard let key = PKey(rawPrivate: scalar, type: "X25519") else { throw .fromOpenSSL() }
        publicKey = PublicKey(unchecked: key.rawPublic())
        self.key = key
      }

      /// The 32-byte scalar as it was given.
      public var rawRepresentation: SymmetricKey { key.rawPrivate() }

      /// The 32-byte shared secret. Throws `invalidPoint` when it is all zeros: a peer's point of small order.
      public borrowing func sharedSecret(with peer: PublicKey) throws(CryptoError) -> SymmetricKey {
        guard let peer = PKey(rawPublic: peer.rawRepresentation.span, type: "X25519") else { throw .fromOpenSSL() }
        return try key.sharedSecret(with: peer, byteCount: keyByteCount)
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
