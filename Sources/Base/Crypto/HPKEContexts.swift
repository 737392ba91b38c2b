import PalbeUnits
import PalbeWire

extension HPKE {
  /// What both sides share once the key is encapsulated (RFC 9180 §5.1): key, nonces, exporter secret.
  struct Schedule: ~Copyable {
    let kdf: LabeledKDF
    let key: SymmetricKey
    let exporterSecret: SymmetricKey
    private let baseNonce: SymmetricKey
    private var sequence: UInt64 = 0

    /// KeySchedule in base mode: no pre-shared key.
    init(_ suite: Ciphersuite, sharedSecret: Span<UInt8>, info: Span<UInt8>) {
      let kdf = LabeledKDF(suite)
      let pskIDHash = kdf.extract(salt: Span(), label: "psk_id_hash", inputKeyMaterial: Span())
      let infoHash = kdf.extract(salt: Span(), label: "info_hash", inputKeyMaterial: info)
      var writer = ByteWriter()
      writer.uint8(0)  // mode_base
      writer.append(pskIDHash.span)
      writer.append(infoHash.span)
      let context = writer.bytes
      let secret = kdf.extract(salt: sharedSecret, label: "secret", inputKeyMaterial: Span())
      let keyByteCount = suite.aead.algorithm?.keyByteCount ?? 0
      let nonceByteCount = suite.aead.algorithm?.nonceByteCount ?? 0
      self.kdf = kdf
      key = kdf.expand(secret.span, label: "key", info: context.span, byteCount: keyByteCount)
      baseNonce = kdf.expand(secret.span, label: "base_nonce", info: context.span, byteCount: nonceByteCount)
      exporterSecret = kdf.expand(secret.span, label: "exp", info: context.span, byteCount: kdf.kdf.byteCount)
    }

    /// The keyed cipher; nil when the suite has none.
    func context(for aead: AEAD, direction: AEADContext.Direction) throws(CryptoError) -> AEADContext? {
      guard let algorithm = aead.algorithm else { return nil }
      return try AEADContext(algorithm, key: key.span, direction: direction)
    }

    /// The next message's nonce: the base nonce XOR the sequence number (§5.2). `advance` moves on.
    func nonce() throws(CryptoError) -> [UInt8] {
      // The RFC allows 2^96 - 1 messages; a counter of 64 bits never gets there.
      guard sequence < .max else { throw .messageLimitReached }
      var nonce = [UInt8](baseNonce.span)
      for index in 0..<min(8, nonce.count) {
        nonce[nonce.count - 1 - index] ^= UInt8(truncatingIfNeeded: sequence >> (8 * UInt64(index)))
      }
      return nonce
    }

    mutating func advance() { sequence += 1 }

    func export(_ context: Span<UInt8>, byteCount: Int) -> SymmetricKey {
      kdf.expand(exporterSecret.span, label: "sec", info: context, byteCount: byteCount)
    }
  }

  /// The sealing side of a context (RFC 9180 §5.2).
  public struct Sender: ~Copyable, Sendable {
    /// What the recipient needs to make its side: Nenc bytes.
    public let encapsulatedKey: [UInt8]
    private var schedule: Schedule
    private var context: AEADContext?

    /// SetupBaseS with a fresh ephemeral key. Throws `wrongLength` or `invalidPoint` for no public key.
    public init(
      _ suite: Ciphersuite, to publicKey: Span<UInt8>, info: Span<UInt8>, using random: inout RandomSource
    ) throws(CryptoError) {
      let ephemeral = PrivateKey(suite.kem, using: &random)
      try self.init(suite, to: publicKey, info: info, ephemeral: ephemeral)
    }

    /// As above with a given ephemeral key, for published vectors. One used twice gives up what it sealed.
    package init(
      _ suite: Ciphersuite, to publicKey: Span<UInt8>, info: Span<UInt8>, ephemeral: borrowing PrivateKey
    ) throws(CryptoError) {
      let result = try ephemeral.pair.sharedSecret(with: publicKey)
      let secret = suite.kem.sharedSecret(
        result.span, encapsulatedKey: ephemeral.publicKey, publicKey: [UInt8](publicKey))
      let schedule = Schedule(suite, sharedSecret: secret.span, info: info)
      let context = try schedule.context(for: suite.aead, direction: .seal)
      self.encapsulatedKey = ephemeral.publicKey
      self.schedule = schedule
      self.context = context
    }

    /// The next message: ciphertext and tag. Traps with `exportOnly`.
    public mutating func seal(
      _ plaintext: Span<UInt8>, authenticating aad: Span<UInt8>
    ) throws(CryptoError) -> [UInt8] {
      precondition(context != nil, "an export-only suite seals nothing")
      let nonce = try schedule.nonce()
      let sealed = try context!.sealed(plaintext, authenticating: aad, nonce: nonce.span)
      schedule.advance()
      return sealed
    }

    /// A secret that both sides know (RFC 9180 §5.3), at most 255 times as long as the KDF's hash.
    public borrowing func export(context: Span<UInt8>, outputByteCount: Int) -> SymmetricKey {
      schedule.export(context, byteCount: outputByteCount)
    }
  }

  /// The opening side of a context (RFC 9180 §5.2).
  public struct Recipient: ~Copyable, Sendable {
    private var schedule: Schedule
    private var context: AEADContext?

    /// SetupBaseR. Throws `wrongLength` or `invalidPoint` for an encapsulated key that is none. A private key
    /// of another KEM than the suite's is a programming error and traps.
    public init(
      _ suite: Ciphersuite, privateKey: borrowing PrivateKey, encapsulatedKey: Span<UInt8>, info: Span<UInt8>
    ) throws(CryptoError) {
      precondition(privateKey.kem == suite.kem, "the key is of another KEM")
      let result = try privateKey.pair.sharedSecret(with: encapsulatedKey)
      let secret = suite.kem.sharedSecret(
        result.span, encapsulatedKey: [UInt8](encapsulatedKey), publicKey: privateKey.publicKey)
      let schedule = Schedule(suite, sharedSecret: secret.span, info: info)
      let context = try schedule.context(for: suite.aead, direction: .open)
      self.schedule = schedule
      self.context = context
    }

    /// The next message. Throws `authenticationFailure` for one that is not it, and waits for the same one
    /// again. Traps with `exportOnly`.
    public mutating func open(
      _ ciphertext: Span<UInt8>, authenticating aad: Span<UInt8>
    ) throws(CryptoError) -> SymmetricKey {
      precondition(context != nil, "an export-only suite opens nothing")
      let nonce = try schedule.nonce()
      let opened = try context!.openedSecret(ciphertext, authenticating: aad, nonce: nonce.span)
      schedule.advance()
      return opened
    }

    /// A secret that both sides know (RFC 9180 §5.3), at most 255 times as long as the KDF's hash.
    public borrowing func export(context: Span<UInt8>, outputByteCount: Int) -> SymmetricKey {
      schedule.export(context, byteCount: outputByteCount)
    }
  }
}
