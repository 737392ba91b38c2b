import PalbeUnits
import PalbeWire

/// ECDSA and ECDH on NIST P-256 (secp256r1, FIPS 186-4 D.1.2.3). Public keys are 65 bytes, 4 | x | y (X9.63).
public enum P256 {
  /// ECDSA with SHA-256. Signatures are DER (RFC 3279 §2.2.3), at most 72 bytes.
  public enum Signing {
    /// A private key, wiped when the value ends.
    public struct PrivateKey: ~Copyable, Sendable {
      let pair: KeyPair
      /// The key that verifies what this one signs.
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

      /// A DER signature, another one at every call: its nonce comes from OpenSSL's own generator.
      public borrowing func signature(for message: Span<UInt8>) throws(CryptoError) -> [UInt8] {
        try pair.key.sign(message, digest: "SHA256", maximum: 72)
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

      /// From a SubjectPublicKeyInfo (RFC 5480 §2) with the named curve and an uncompressed point, 91 bytes.
      /// Throws `invalidEncoding` for anything else, `invalidPoint` for a point that is not on the curve.
      public init(derRepresentation bytes: Span<UInt8>) throws(CryptoError) {
        let prefix = subjectPublicKeyInfoPrefix
        guard bytes.count == prefix.count + 65 else { throw .invalidEncoding }
        for index in prefix.indices where bytes[index] != prefix[index] { throw .invalidEncoding }
        try self.init(x963Representation: bytes.extracting(prefix.count...))
      }

      /// The SubjectPublicKeyInfo, 91 bytes.
      public var derRepresentation: [UInt8] { subjectPublicKeyInfoPrefix + x963Representation }

      /// True when `signature` is DER and this key's over `message`; false for anything else.
      public func isValidSignature(_ signature: Span<UInt8>, for message: Span<UInt8>) -> Bool {
        guard let key = try? PKey(public: x963Representation.span, on: .p256) else { return false }
        return key.verify(signature, for: message, digest: "SHA256")
      }

      /// True when `signature` is r | s of 32 bytes each (IEEE P1363, as JWS has it) and this key's over `message`; false
      /// for anything else.
      public func isValidRawSignature(_ signature: Span<UInt8>, for message: Span<UInt8>) -> Bool {
        guard signature.count == 64 else { return false }
        let numbers = derInteger(signature.extracting(..<32)) + derInteger(signature.extracting(32...))
        let sequence = [0x30, UInt8(numbers.count)] + numbers
        return isValidSignature(sequence.span, for: message)
      }
    }
  }
}

/// All of a P-256 SubjectPublicKeyInfo in front of the point: sequence { sequence { id-ecPublicKey,
/// prime256v1 }, bits }.
private let subjectPublicKeyInfoPrefix: [UInt8] = [
  0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
  0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
]

/// A positive number of at most 32 big-endian bytes as a DER INTEGER.
private func derInteger(_ number: Span<UInt8>) -> [UInt8] {
  var bytes = [UInt8](number)
  while bytes.count > 1, bytes[0] == 0 { bytes.removeFirst() }
  if bytes[0] & 0x80 != 0 { bytes.insert(0, at: 0) }
  return [0x02, UInt8(bytes.count)] + bytes
}
