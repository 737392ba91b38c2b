import PalbeUnits
import PalbeWire

extension HPKE {
  /// A suite and an `info`, hashed once for many messages under it (the context of RFC 9180 §5.1, `KeySchedule`).
  public struct Info: Sendable {
    /// The suite of the messages.
    public let suite: Ciphersuite
    let kdf: LabeledKDF
    /// mode_base | psk_id_hash | info_hash
    let context: [UInt8]

    /// Hashes `info`, of any length.
    public init(_ suite: Ciphersuite, _ info: Span<UInt8>) {
      let kdf = LabeledKDF(suite)
      let pskIDHash = kdf.extract(salt: Span(), label: "psk_id_hash", inputKeyMaterial: Span())
      let infoHash = kdf.extract(salt: Span(), label: "info_hash", inputKeyMaterial: info)
      var writer = ByteWriter(capacity: 1 + 2 * kdf.kdf.byteCount)
      writer.uint8(0)
      writer.append(pskIDHash.span)
      writer.append(infoHash.span)
      self.suite = suite
      self.kdf = kdf
      context = writer.bytes
    }

    func expand(_ secret: borrowing SymmetricKey, label: String, byteCount: Int) -> SymmetricKey {
      kdf.expand(secret.span, label: label, info: context.span, byteCount: byteCount)
    }
  }

  /// What both sides share once the key is encapsulated (RFC 9180 §5.1): key, nonces, exporter secret.
  struct Schedule: ~Copyable {
    let info: Info
    let key: SymmetricKey
    /// The exporter secret follows from it when it is asked for.
    private let secret: SymmetricKey
    private let baseNonce: SymmetricKey
    private var sequence: UInt64 = 0

    /// KeySchedule in base mode: no pre-shared key.
    init(_ info: Info, sharedSecret: Span<UInt8>) {
      let secret = info.kdf.extract(salt: sharedSecret, label: "secret", inputKeyMaterial: Span())
      let algorithm = info.suite.aead.algorithm
      key = info.expand(secret, label: "key", byteCount: algorithm?.keyByteCount ?? 0)
      baseNonce = info.expand(secret, label: "base_nonce", byteCount: algorithm?.nonceByteCount ?? 0)
      self.info = info
      self.secret = secret
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
      let kdf = info.kdf
      let exporterSecret = info.expand(secret, label: "exp", byteCount: kdf.kdf.byteCount)
      return kdf.expand(exporterSecret.span, label: "sec", info: context, byteCount: byteCount)
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
      try self.init(Info(suite, info), to: publicKey, using: &random)
    }

    /// As above, under an `info` that was hashed before.
    public init(
      _ info: Info, to publicKey: Span<UInt8>, using random: inout RandomSource
    ) throws(CryptoError) {
      let ephemeral = PrivateKey(info.suite.kem, using: &random)
      try self.init(info, to: publicKey, ephemeral: ephemeral)
    }

    /// As above with a given ephemeral key, for published vectors. One used twice gives up what it sealed.
    package init(
      _ suite: Ciphersuite, to publicKey: Span<UInt8>, info: Span<UInt8>, ephemeral: borrowing PrivateKey
    ) throws(CryptoError) {
      try self.init(Info(suite, info), to: publicKey, ephemeral: ephemeral)
    }

    private init(
      _ info: Info, to publicKey: Span<UInt8>, ephemeral: borrowing PrivateKey
    ) throws(CryptoError) {
      let suite = info.suite
      let result = try ephemeral.pair.sharedSecret(with: publicKey)
      let secret = suite.kem.sharedSecret(
        result.span, encapsulatedKey: ephemeral.publicKey, publicKey: [UInt8](publicKey))
      let schedule = Schedule(info, sharedSecret: secret.span)
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
      let schedule = Schedule(Info(suite, info), sharedSecret: secret.span)
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
