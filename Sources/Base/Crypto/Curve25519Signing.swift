import PalbeUnits
import PalbeWire

extension Curve25519 {
  /// Ed25519 (RFC 8032 §5.1). A signature has 64 bytes.
  public enum Signing {
    /// A private key, wiped when the value ends.
    public struct PrivateKey: ~Copyable, Sendable {
      private let pair: KeyPair
      /// The key that verifies what this one signs.
      public var publicKey: PublicKey { PublicKey(unchecked: pair.publicBytes) }

      /// A fresh key.
      public init(using random: inout RandomSource) { pair = KeyPair(.ed25519, using: &random) }

      /// The 32-byte seed of RFC 8032 §5.1.5; throws `wrongLength` for another length.
      public init(rawRepresentation seed: Span<UInt8>) throws(CryptoError) {
        pair = try KeyPair(.ed25519, private: seed)
      }

      /// The 32-byte seed.
      public var rawRepresentation: SymmetricKey { pair.privateBytes() }

      /// The 64-byte signature; the same for the same message.
      public borrowing func signature(for message: Span<UInt8>) throws(CryptoError) -> [UInt8] {
        try pair.key.sign(message, digest: nil, maximum: 64)
      }
    }

    /// A public key. Whether its 32 bytes are a point shows when a signature is checked.
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

      /// True when `signature` is this key's over `message`; false for anything else, also of another length.
      public func isValidSignature(_ signature: Span<UInt8>, for message: Span<UInt8>) -> Bool {
        guard let key = try? PKey(public: rawRepresentation.span, on: .ed25519) else { return false }
        return key.verify(signature, for: message, digest: nil)
      }
    }
  }
}
