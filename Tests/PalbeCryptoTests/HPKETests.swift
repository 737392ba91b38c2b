import PalbeCrypto
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@Suite("HPKE")
struct HPKETests {
  struct Vector: Decodable, Sendable {
    struct Encryption: Decodable, Sendable { let aad, ct, nonce, pt: HexBytes }
    struct Export: Decodable, Sendable {
      let exporter_context, exported_value: HexBytes
      let L: Int
    }
    let mode: Int
    let kem_id, kdf_id, aead_id: UInt16
    let info, ikmR, ikmE, skRm, pkRm, skEm, pkEm, enc, base_nonce: HexBytes
    let encryptions: [Encryption]
    let exports: [Export]

    var suite: HPKE.Ciphersuite? {
      guard
        let kem = HPKE.KEM(rawValue: kem_id), let kdf = HPKE.KDF(rawValue: kdf_id),
        let aead = HPKE.AEAD(rawValue: aead_id)
      else { return nil }
      return HPKE.Ciphersuite(kem: kem, kdf: kdf, aead: aead)
    }
  }

  func run(_ vector: Vector) throws {
    let suite = try #require(vector.suite)
    #expect(vector.mode == 0)
    let recipientKey = try HPKE.deriveKeyPair(suite, inputKeyMaterial: vector.ikmR.bytes.span)
    #expect(bytes(recipientKey.rawRepresentation) == vector.skRm.bytes)
    #expect(recipientKey.publicKey == vector.pkRm.bytes)
    let ephemeral = try HPKE.deriveKeyPair(suite, inputKeyMaterial: vector.ikmE.bytes.span)
    #expect(bytes(ephemeral.rawRepresentation) == vector.skEm.bytes)

    let info = vector.info.bytes
    let publicKey = vector.pkRm.bytes
    var sender = try HPKE.Sender(suite, to: publicKey.span, info: info.span, ephemeral: ephemeral)
    #expect(sender.encapsulatedKey == vector.enc.bytes)
    let given = try HPKE.PrivateKey(suite.kem, rawRepresentation: vector.skRm.bytes.span)
    var recipient = try HPKE.Recipient(
      suite, privateKey: given, encapsulatedKey: vector.enc.bytes.span, info: info.span)

    var sequence = 0
    for encryption in vector.encryptions {
      // The vectors skip messages; the nonce tells which one this is.
      let due = zip(encryption.nonce.bytes, vector.base_nonce.bytes).reduce(0) { $0 << 8 | Int($1.0 ^ $1.1) }
      while sequence < due {
        let skipped = try sender.seal(Span(), authenticating: Span())
        #expect(bytes(try recipient.open(skipped.span, authenticating: Span())) == [])
        sequence += 1
      }
      let plaintext = encryption.pt.bytes
      let aad = encryption.aad.bytes
      let ciphertext = try sender.seal(plaintext.span, authenticating: aad.span)
      #expect(ciphertext == encryption.ct.bytes)
      #expect(bytes(try recipient.open(ciphertext.span, authenticating: aad.span)) == plaintext)
      sequence += 1
    }
    for export in vector.exports {
      let context = export.exporter_context.bytes
      let ours = sender.export(context: context.span, outputByteCount: export.L)
      let theirs = recipient.export(context: context.span, outputByteCount: export.L)
      #expect(bytes(ours) == export.exported_value.bytes)
      expect(SymmetricKey.isEqual(ours, theirs))
    }
  }

  @Test(
    "RFC 9180 A.1, A.3: published base mode vectors of X25519 and P-256",
    .enabled(if: Vectors.has("hpke/hpke-base-x25519-p256.json"), "vectors absent: skipped"))
  func x25519AndP256() throws {
    let vectors = try Vectors.load("hpke/hpke-base-x25519-p256.json", as: [Vector].self)
    #expect(vectors.count == 8)
    for vector in vectors { try run(vector) }
  }

  @Test(
    "RFC 9180 A.6: published base mode vectors of P-521 and X448",
    .enabled(if: Vectors.has("hpke/hpke-base-p521-x448.json"), "vectors absent: skipped"))
  func p521AndX448() throws {
    let vectors = try Vectors.load("hpke/hpke-base-p521-x448.json", as: [Vector].self)
    #expect(vectors.count == 8)
    for vector in vectors { try run(vector) }
  }

  @Test("RFC 9180 A.1.1: DHKEM(X25519), HKDF-SHA256, AES-128-GCM, in a fresh clone too")
  func a11() throws {
    let suite = HPKE.Ciphersuite.x25519SHA256AES128GCM
    let info = hex("4f6465206f6e2061204772656369616e2055726e")
    let key = try HPKE.deriveKeyPair(
      suite, inputKeyMaterial: hex("6db9df30aa07dd42ee5e8181afdb977e538f5e1fec8a06223f33f7013e525037").span)
    #expect(key.publicKey == hex("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d"))
    let opened = try HPKE.open(
      suite, privateKey: key,
      encapsulatedKey: hex("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431").span,
      info: info.span, aad: hex("436f756e742d30").span,
      ciphertext: hex(
        "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a"
      ).span)
    #expect(bytes(opened) == [UInt8]("Beauty is truth, truth beauty".utf8))
  }

  @Test("Every suite seals and opens with fresh keys", arguments: HPKE.KEM.allCases)
  func roundTrip(_ kem: HPKE.KEM) throws {
    var random = RandomSource(seed: UInt64(kem.rawValue))
    let info: [UInt8] = [1, 2]
    let aad: [UInt8] = [3]
    let text = [UInt8](repeating: 5, count: 70)
    let key = HPKE.PrivateKey(kem, using: &random)
    let publicKey = key.publicKey
    #expect(publicKey.count == kem.publicKeyByteCount)
    #expect(key.rawRepresentation.byteCount == kem.privateKeyByteCount)
    expect(kem.isValidPublicKey(publicKey.span))
    expect(!kem.isValidPublicKey(publicKey.span.extracting(droppingLast: 1)))
    for kdf in HPKE.KDF.allCases {
      for aead in HPKE.AEAD.allCases where aead != .exportOnly {
        let suite = HPKE.Ciphersuite(kem: kem, kdf: kdf, aead: aead)
        let (encapsulated, ciphertext) = try HPKE.seal(
          suite, to: publicKey.span, info: info.span, aad: aad.span, plaintext: text.span, using: &random)
        #expect(ciphertext.count == text.count + 16)
        let opened = try HPKE.open(
          suite, privateKey: key, encapsulatedKey: encapsulated.span, info: info.span, aad: aad.span,
          ciphertext: ciphertext.span)
        #expect(bytes(opened) == text)
      }
    }
  }

  @Test(
    "RFC 9180 §5.2: a refused message does not move the sequence on; every changed byte is refused"
  )
  func refusal() throws {
    let suite = HPKE.Ciphersuite.x25519SHA256AES128GCM
    var random = RandomSource(seed: 4)
    let key = HPKE.PrivateKey(.x25519, using: &random)
    var sender = try HPKE.Sender(suite, to: key.publicKey.span, info: Span(), using: &random)
    var recipient = try HPKE.Recipient(
      suite, privateKey: key, encapsulatedKey: sender.encapsulatedKey.span, info: Span())
    let text: [UInt8] = [1, 2, 3]
    let first = try sender.seal(text.span, authenticating: Span())
    let second = try sender.seal(text.span, authenticating: Span())
    #expect(first != second)
    #expect(error(&recipient, second) == .authenticationFailure)
    for count in 0..<first.count {
      #expect(error(&recipient, Array(first.prefix(count))) == .authenticationFailure)
    }
    for index in first.indices {
      var broken = first
      broken[index] ^= 1
      #expect(error(&recipient, broken) == .authenticationFailure)
    }
    #expect(error(&recipient, first) == nil)
    #expect(error(&recipient, first) == .authenticationFailure)
    #expect(error(&recipient, second) == nil)
  }

  func error(_ recipient: inout HPKE.Recipient, _ sealed: [UInt8]) -> CryptoError? {
    do throws(CryptoError) {
      _ = try recipient.open(sealed.span, authenticating: Span())
      return nil
    } catch {
      return error
    }
  }

  @Test("RFC 9180 §7.1.4: encapsulated and public keys that are none are refused")
  func keys() {
    var random = RandomSource(seed: 4)
    for kem in HPKE.KEM.allCases {
      let suite = HPKE.Ciphersuite(kem: kem, kdf: .sha256, aead: .aes128GCM)
      let count = kem.publicKeyByteCount
      let zeros = [UInt8](repeating: 0, count: count)
      #expect(sealError(suite, zeros, &random) == .invalidPoint)
      #expect(sealError(suite, zeros + [0], &random) == .wrongLength(expected: count, got: count + 1))
      #expect(sealError(suite, [], &random) == .wrongLength(expected: count, got: 0))
      let key = HPKE.PrivateKey(kem, using: &random)
      #expect(openError(suite, key, zeros) == .invalidPoint)
      #expect(openError(suite, key, []) == .wrongLength(expected: count, got: 0))
    }
  }

  func sealError(
    _ suite: HPKE.Ciphersuite, _ publicKey: [UInt8], _ random: inout RandomSource
  ) -> CryptoError? {
    do throws(CryptoError) {
      _ = try HPKE.seal(
        suite, to: publicKey.span, info: Span(), aad: Span(), plaintext: Span(), using: &random)
      return nil
    } catch {
      return error
    }
  }

  func openError(
    _ suite: HPKE.Ciphersuite, _ key: borrowing HPKE.PrivateKey, _ encapsulatedKey: [UInt8]
  ) -> CryptoError? {
    do throws(CryptoError) {
      _ = try HPKE.open(
        suite, privateKey: key, encapsulatedKey: encapsulatedKey.span, info: Span(), aad: Span(),
        ciphertext: Span())
      return nil
    } catch {
      return error
    }
  }

  @Test(
    "a private key with its public key opens as without; with another's nothing opens",
    arguments: HPKE.KEM.allCases)
  func keyPairs(kem: HPKE.KEM) throws {
    var random = RandomSource(seed: UInt64(kem.rawValue))
    let suite = HPKE.Ciphersuite(kem: kem, kdf: .sha256, aead: .aes128GCM)
    let key = HPKE.PrivateKey(kem, using: &random)
    let other = HPKE.PrivateKey(kem, using: &random)
    let secret = key.rawRepresentation
    let pair = try HPKE.PrivateKey(kem, rawRepresentation: secret.span, publicKey: key.publicKey)
    #expect(pair.publicKey == key.publicKey)
    let restored = pair.rawRepresentation
    let same = SymmetricKey.isEqual(secret, restored)
    #expect(same)

    let text: [UInt8] = [1, 2, 3]
    let info = HPKE.Info(suite, text.span)
    for round in 0..<3 {
      let message: [UInt8] = [9, UInt8(round)]
      let (encapsulated, sealed) = try HPKE.seal(
        info, to: key.publicKey.span, aad: Span(), plaintext: message.span, using: &random)
      let opened = try HPKE.open(
        suite, privateKey: pair, encapsulatedKey: encapsulated.span, info: text.span, aad: Span(),
        ciphertext: sealed.span)
      #expect(bytes(opened) == message)
      #expect(throws: CryptoError.self) {
        let wrong = try HPKE.PrivateKey(kem, rawRepresentation: secret.span, publicKey: other.publicKey)
        _ = try HPKE.open(
          suite, privateKey: wrong, encapsulatedKey: encapsulated.span, info: text.span, aad: Span(),
          ciphertext: sealed.span)
      }
    }
    #expect(throws: CryptoError.wrongLength(expected: kem.publicKeyByteCount, got: 3)) {
      _ = try HPKE.PrivateKey(kem, rawRepresentation: secret.span, publicKey: text)
    }
  }
}
