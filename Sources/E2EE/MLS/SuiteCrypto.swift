import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// The only place that knows which primitives a cipher suite stands for. RFC 9420 §5.1, §5.2, §8, §17.1.
struct SuiteCrypto: Sendable {
  let suite: CipherSuite
  let hpke: HPKE.Ciphersuite
  let aead: AEADContext.Algorithm
  let signatures: SignatureScheme

  init(_ suite: CipherSuite) throws(MLSError) {
    self.suite = suite
    switch suite {
    case .x25519AES128GCM: (hpke, aead, signatures) = Self.make(.x25519, .sha256, .aes128GCM, .ed25519)
    case .p256AES128GCM: (hpke, aead, signatures) = Self.make(.p256, .sha256, .aes128GCM, .ecdsaP256SHA256)
    case .x25519ChaCha20Poly1305:
      (hpke, aead, signatures) = Self.make(.x25519, .sha256, .chaCha20Poly1305, .ed25519)
    case .x448AES256GCM: (hpke, aead, signatures) = Self.make(.x448, .sha512, .aes256GCM, .ed448)
    case .p521AES256GCM: (hpke, aead, signatures) = Self.make(.p521, .sha512, .aes256GCM, .ecdsaP521SHA512)
    case .x448ChaCha20Poly1305:
      (hpke, aead, signatures) = Self.make(.x448, .sha512, .chaCha20Poly1305, .ed448)
    case .p384AES256GCM: (hpke, aead, signatures) = Self.make(.p384, .sha384, .aes256GCM, .ecdsaP384SHA384)
    default: throw .unsupportedSuite(suite)
    }
  }

  private static func make(
    _ kem: HPKE.KEM, _ kdf: HPKE.KDF, _ aead: AEADContext.Algorithm, _ signatures: SignatureScheme
  ) -> (HPKE.Ciphersuite, AEADContext.Algorithm, SignatureScheme) {
    let inner: HPKE.AEAD =
      switch aead {
      case .aes128GCM: .aes128GCM
      case .aes256GCM: .aes256GCM
      case .chaCha20Poly1305: .chaCha20Poly1305
      }
    return (HPKE.Ciphersuite(kem: kem, kdf: kdf, aead: inner), aead, signatures)
  }

  /// KDF.Nh
  var hashByteCount: Int {
    switch hpke.kdf {
    case .sha256: SHA256.byteCount
    case .sha384: SHA384.byteCount
    case .sha512: SHA512.byteCount
    }
  }
  /// AEAD.Nk
  var keyByteCount: Int { aead.keyByteCount }
  /// AEAD.Nn
  var nonceByteCount: Int { aead.nonceByteCount }
  var tagByteCount: Int { aead.tagByteCount }

  // MARK: Hash and KDF

  func hash(_ bytes: [UInt8]) -> [UInt8] {
    switch hpke.kdf {
    case .sha256: SHA256.hash(bytes.span)
    case .sha384: SHA384.hash(bytes.span)
    case .sha512: SHA512.hash(bytes.span)
    }
  }

  func mac(_ message: [UInt8], key: Secret) -> [UInt8] {
    switch hpke.kdf {
    case .sha256: HMAC<SHA256>.authenticationCode(for: message.span, using: key.span)
    case .sha384: HMAC<SHA384>.authenticationCode(for: message.span, using: key.span)
    case .sha512: HMAC<SHA512>.authenticationCode(for: message.span, using: key.span)
    }
  }

  func isValidMAC(_ code: [UInt8], of message: [UInt8], key: Secret) -> Bool {
    let expected = mac(message, key: key)
    return ConstantTime.equal(expected.span, code.span)
  }

  func extract(salt: Secret, _ input: Secret) -> Secret {
    switch hpke.kdf {
    case .sha256: Secret(HKDF<SHA256>.extract(salt: salt.span, inputKeyMaterial: input.span))
    case .sha384: Secret(HKDF<SHA384>.extract(salt: salt.span, inputKeyMaterial: input.span))
    case .sha512: Secret(HKDF<SHA512>.extract(salt: salt.span, inputKeyMaterial: input.span))
    }
  }

  /// `ExpandWithLabel`.
  func expand(_ secret: Secret, label: String, context: [UInt8], byteCount: Int) -> Secret {
    var info = ByteWriter(capacity: 24 + label.utf8.count + context.count)
    info.uint16(UInt16(byteCount))
    info.label(label)
    info.opaque(context)
    return expand(secret, info.bytes, byteCount: byteCount)
  }

  /// `ExpandWithLabel` of a label that need not be UTF-8: an exporter's is any bytes.
  func expand(_ secret: Secret, label: [UInt8], context: [UInt8], byteCount: Int) -> Secret {
    var info = ByteWriter(capacity: 24 + label.count + context.count)
    info.uint16(UInt16(byteCount))
    info.opaque(Array("MLS 1.0 ".utf8) + label)
    info.opaque(context)
    return expand(secret, info.bytes, byteCount: byteCount)
  }

  private func expand(_ secret: Secret, _ bytes: [UInt8], byteCount: Int) -> Secret {
    switch hpke.kdf {
    case .sha256:
      Secret(
        HKDF<SHA256>.expand(pseudoRandomKey: secret.span, info: bytes.span, outputByteCount: byteCount))
    case .sha384:
      Secret(
        HKDF<SHA384>.expand(pseudoRandomKey: secret.span, info: bytes.span, outputByteCount: byteCount))
    case .sha512:
      Secret(
        HKDF<SHA512>.expand(pseudoRandomKey: secret.span, info: bytes.span, outputByteCount: byteCount))
    }
  }

  /// `DeriveSecret`.
  func derive(_ secret: Secret, label: String) -> Secret {
    expand(secret, label: label, context: [], byteCount: hashByteCount)
  }

  /// `DeriveTreeSecret`, RFC 9420 §9.
  func deriveTree(_ secret: Secret, label: String, generation: UInt32, byteCount: Int) -> Secret {
    var context = ByteWriter(capacity: 4)
    context.uint32(generation)
    return expand(secret, label: label, context: context.bytes, byteCount: byteCount)
  }

  /// `RefHash`, RFC 9420 §5.2.
  func refHash(label: String, _ value: [UInt8]) -> [UInt8] {
    var input = ByteWriter(capacity: value.count + 40)
    input.opaque(utf8: label)
    input.opaque(value)
    return hash(input.bytes)
  }

  func reference(to keyPackage: KeyPackage) -> [UInt8] {
    refHash(label: "MLS 1.0 KeyPackage Reference", keyPackage.encoded())
  }

  func reference(to proposal: AuthenticatedContent) -> ProposalRef {
    ProposalRef(bytes: refHash(label: "MLS 1.0 Proposal Reference", proposal.encoded()))
  }

  // MARK: AEAD

  /// Ciphertext and tag.
  func seal(
    _ plaintext: [UInt8], key: Secret, nonce: [UInt8], authenticating aad: [UInt8]
  ) throws(MLSError) -> [UInt8] {
    var buffer = plaintext
    buffer.append(contentsOf: [UInt8](repeating: 0, count: tagByteCount))
    do {
      var context = try AEADContext(aead, key: key.span, direction: .seal)
      var span = buffer.mutableSpan
      try context.seal(in: &span, body: 0..<plaintext.count, authenticating: aad.span, nonce: nonce.span)
    } catch { throw .crypto(error) }
    return buffer
  }

  /// The plaintext; throws `authenticationFailure` for anything that `seal` did not make.
  func open(
    _ ciphertext: [UInt8], key: Secret, nonce: [UInt8], authenticating aad: [UInt8]
  ) throws(MLSError) -> [UInt8] {
    guard ciphertext.count >= tagByteCount else { throw .crypto(.authenticationFailure) }
    var buffer = ciphertext
    let body = 0..<ciphertext.count - tagByteCount
    do {
      var context = try AEADContext(aead, key: key.span, direction: .open)
      var span = buffer.mutableSpan
      try context.open(in: &span, body: body, authenticating: aad.span, nonce: nonce.span)
    } catch { throw .crypto(error) }
    buffer.removeLast(tagByteCount)
    return buffer
  }

  // MARK: Signatures

  private func signContent(label: String, _ content: [UInt8]) -> [UInt8] {
    var input = ByteWriter(capacity: content.count + 48)
    input.label(label)
    input.opaque(content)
    return input.bytes
  }

  /// `SignWithLabel`.
  func sign(_ content: [UInt8], label: String, key: SignatureKey) throws(MLSError) -> [UInt8] {
    do { return try key.key.signature(for: signContent(label: label, content).span) } catch {
      throw .crypto(error)
    }
  }

  /// `VerifyWithLabel`; false also for a key of the wrong length.
  func isValid(_ signature: [UInt8], of content: [UInt8], label: String, key: [UInt8]) -> Bool {
    signatures.isValidSignature(
      signature.span, for: signContent(label: label, content).span, by: key.span)
  }
}

extension ByteWriter {
  /// `opaque label<V>` with the prefix that RFC 9420 puts before every label.
  mutating func label(_ label: String) {
    let prefix: StaticString = "MLS 1.0 "
    vectorLength(prefix.utf8CodeUnitCount + label.utf8.count)
    prefix.withUTF8Buffer { text in
      for index in text.indices { uint8(unsafe text[index]) }
    }
    append(utf8: label)
  }
}

/// A member's signing key, shared by its key packages and groups.
final class SignatureKey: Sendable {
  let key: SignatureScheme.PrivateKey

  init(_ scheme: SignatureScheme, using random: inout RandomSource) {
    key = SignatureScheme.PrivateKey(scheme, using: &random)
  }

  init(_ scheme: SignatureScheme, rawRepresentation: Span<UInt8>) throws(MLSError) {
    do { key = try SignatureScheme.PrivateKey(scheme, rawRepresentation: rawRepresentation) } catch {
      throw .crypto(error)
    }
  }

  var publicKey: [UInt8] { key.publicKey }
}
