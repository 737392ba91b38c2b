import PalbeCrypto
import PalbeTestKit
import PalbeUnits
import Testing

@Suite("Curve25519")
struct Curve25519Tests {
  @Test("RFC 8032 §7.1: tests 1, 2 and 3")
  func ed25519() throws {
    let vectors = [
      (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
          + "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
      ),
      (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
          + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
      ),
      (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
          + "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
      ),
    ]
    for (secret, publicKey, message, signature) in vectors {
      let key = try Curve25519.Signing.PrivateKey(rawRepresentation: hex(secret).span)
      #expect(key.publicKey.rawRepresentation == hex(publicKey))
      #expect(bytes(key.rawRepresentation) == hex(secret))
      let message = hex(message)
      #expect(try key.signature(for: message.span) == hex(signature))
      expect(key.publicKey.isValidSignature(hex(signature).span, for: message.span))
      expect(!key.publicKey.isValidSignature(hex(signature).span, for: (message + [0]).span))
    }
  }

  @Test("RFC 8032: no prefix of a signature, and none with a byte more, is valid")
  func signatureLengths() throws {
    var random = RandomSource(seed: 7)
    let key = Curve25519.Signing.PrivateKey(using: &random)
    let message = [UInt8]("message".utf8)
    let signature = try key.signature(for: message.span)
    #expect(signature.count == 64)
    for count in 0..<64 {
      expect(!key.publicKey.isValidSignature(signature.span.extracting(first: count), for: message.span))
    }
    expect(!key.publicKey.isValidSignature((signature + [0]).span, for: message.span))
  }

  @Test("RFC 7748 §6.1: the shared secret from Bob's side")
  func x25519() throws {
    let bob = try Curve25519.KeyAgreement.PrivateKey(
      rawRepresentation: hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb").span)
    #expect(
      bob.publicKey.rawRepresentation
        == hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"))
    let alice = try Curve25519.KeyAgreement.PublicKey(
      rawRepresentation: hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"))
    let secret = try bob.sharedSecret(with: alice)
    #expect(bytes(secret) == hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"))
  }

  @Test("RFC 7748 §5.2: after 1 and after 1,000 iterations")
  func iterated() throws {
    var k = [9] + [UInt8](repeating: 0, count: 31)
    var u = k
    for round in 1...1_000 {
      let key = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: k.span)
      let result = bytes(try key.sharedSecret(with: .init(rawRepresentation: u)))
      u = k
      k = result
      if round == 1 {
        #expect(k == hex("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"))
      }
    }
    #expect(k == hex("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"))
  }

  @Test("RFC 7748 §6.1: points of small order are refused")
  func smallOrder() throws {
    var random = RandomSource(seed: 1)
    let key = Curve25519.KeyAgreement.PrivateKey(using: &random)
    for low: UInt8 in [0, 1] {
      let point = try Curve25519.KeyAgreement.PublicKey(
        rawRepresentation: [low] + [UInt8](repeating: 0, count: 31))
      #expect(throws: CryptoError.invalidPoint) { _ = try key.sharedSecret(with: point) }
    }
  }

  @Test("Keys of another length are refused")
  func lengths() {
    for count in [0, 31, 33] {
      let raw = [UInt8](repeating: 1, count: count)
      let error = CryptoError.wrongLength(expected: 32, got: count)
      #expect(throws: error) { _ = try Curve25519.Signing.PrivateKey(rawRepresentation: raw.span) }
      #expect(throws: error) { _ = try Curve25519.Signing.PublicKey(rawRepresentation: raw) }
      #expect(throws: error) { _ = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: raw.span) }
      #expect(throws: error) { _ = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: raw.span) }
    }
  }

  struct SignatureGroup: Decodable, Sendable {
    struct Key: Decodable, Sendable { let pk: HexBytes }
    struct Case: Decodable, Sendable {
      let tcId: Int
      let msg, sig: HexBytes
      let result: Verdict
    }
    let publicKey: Key
    let tests: [Case]
  }

  @Test(
    "Wycheproof: Ed25519",
    .enabled(if: Vectors.has("wycheproof/ed25519_test.json"), "vectors absent: skipped"))
  func wycheproofEd25519() throws {
    var count = 0
    for group in try Vectors.load("wycheproof/ed25519_test.json", as: Wycheproof<SignatureGroup>.self)
      .testGroups
    {
      let key = try Curve25519.Signing.PublicKey(rawRepresentation: group.publicKey.pk.bytes)
      for test in group.tests {
        let valid = key.isValidSignature(test.sig.bytes.span, for: test.msg.bytes.span)
        #expect(valid == (test.result == .valid), "tcId \(test.tcId)")
        count += 1
      }
    }
    #expect(count == 151)
  }

  struct AgreementGroup: Decodable, Sendable {
    struct Case: Decodable, Sendable {
      let tcId: Int
      let `public`, `private`, shared: HexBytes
      let result: Verdict
    }
    let tests: [Case]
  }

  @Test(
    "Wycheproof: X25519; a shared secret of zeros is always refused",
    .enabled(if: Vectors.has("wycheproof/x25519_test.json"), "vectors absent: skipped"))
  func wycheproofX25519() throws {
    var count = 0
    for group in try Vectors.load("wycheproof/x25519_test.json", as: Wycheproof<AgreementGroup>.self)
      .testGroups
    {
      for test in group.tests {
        let key = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: test.private.bytes.span)
        let peer = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: test.public.bytes)
        if test.shared.bytes.allSatisfy({ $0 == 0 }) {
          #expect(throws: CryptoError.invalidPoint, "tcId \(test.tcId)") {
            _ = try key.sharedSecret(with: peer)
          }
        } else {
          #expect(bytes(try key.sharedSecret(with: peer)) == test.shared.bytes, "tcId \(test.tcId)")
        }
        count += 1
      }
    }
    #expect(count == 518)
  }
}
