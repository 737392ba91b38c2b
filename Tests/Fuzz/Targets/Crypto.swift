import PalbeCrypto
import PalbeUnits
import PalbeWire

extension FuzzTarget {
  /// A P-256 public key, as SubjectPublicKeyInfo and as X9.63: what parses writes itself again.
  static let p256PublicKey = FuzzTarget(name: "p256-public-key") { bytes in
    if let key = try? P256.Signing.PublicKey(derRepresentation: bytes.span) {
      precondition(key.derRepresentation == bytes)
    }
    if let key = try? P256.Signing.PublicKey(x963Representation: bytes.span) {
      precondition(key.x963Representation == bytes)
      precondition(HPKE.KEM.p256.isValidPublicKey(bytes.span))
    }
  }

  /// Bytes as a DER signature of ECDSA and as one of Ed25519; nobody can guess one that is valid.
  static let signature = FuzzTarget(name: "signature") { bytes in
    var random = RandomSource(seed: 1)
    let message: [UInt8] = [1, 2, 3]
    let p256 = P256.Signing.PrivateKey(using: &random).publicKey
    precondition(!p256.isValidSignature(bytes.span, for: message.span))
    let ed25519 = Curve25519.Signing.PrivateKey(using: &random).publicKey
    precondition(!ed25519.isValidSignature(bytes.span, for: message.span))
  }

  /// An encapsulated key followed by a ciphertext, for X25519 and for P-256.
  static let hpkeOpen = FuzzTarget(name: "hpke-open") { bytes in
    var random = RandomSource(seed: 1)
    for kem in [HPKE.KEM.x25519, .p256] {
      let key = HPKE.PrivateKey(kem, using: &random)
      let suite = HPKE.Ciphersuite(kem: kem, kdf: .sha256, aead: .aes128GCM)
      let cut = min(kem.publicKeyByteCount, bytes.count)
      do throws(CryptoError) {
        let opened = try HPKE.open(
          suite, privateKey: key, encapsulatedKey: bytes.span.extracting(first: cut), info: Span(),
          aad: Span(), ciphertext: bytes.span.extracting(cut...))
        precondition(opened.byteCount == bytes.count - cut - 16)
      } catch {}
    }
  }
}
