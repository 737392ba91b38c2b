import PalbeCrypto
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@Suite("Signature schemes chosen at run time: RFC 8032, ECDSA")
struct SignatureSchemeTests {
  @Test("Every scheme: keys and signatures keep their sizes, and only the genuine pair verifies")
  func roundTrip() throws {
    var random = RandomSource(seed: 1)
    for scheme in SignatureScheme.allCases {
      let key = SignatureScheme.PrivateKey(scheme, using: &random)
      let publicKey = key.publicKey
      #expect(publicKey.count == scheme.publicKeyByteCount)
      let raw = key.rawRepresentation
      #expect(raw.byteCount == scheme.privateKeyByteCount)
      let again = try SignatureScheme.PrivateKey(scheme, rawRepresentation: raw.span)
      #expect(again.publicKey == publicKey)
      let message: [UInt8] = [1, 2, 3]
      for _ in 0..<8 {
        let signature = try again.signature(for: message.span)
        #expect(signature.count <= scheme.maximumSignatureByteCount)
        expect(scheme.isValidSignature(signature.span, for: message.span, by: publicKey.span))
        let other: [UInt8] = [1, 2, 4]
        expect(!scheme.isValidSignature(signature.span, for: other.span, by: publicKey.span))
        for count in 0..<signature.count {
          let cut = Array(signature.prefix(count))
          expect(!scheme.isValidSignature(cut.span, for: message.span, by: publicKey.span))
        }
      }
      let short = Array(publicKey.dropLast())
      let signature = try key.signature(for: message.span)
      expect(!scheme.isValidSignature(signature.span, for: message.span, by: short.span))
      let error = CryptoError.wrongLength(expected: raw.byteCount, got: 1)
      #expect(throws: error) { _ = try SignatureScheme.PrivateKey(scheme, rawRepresentation: [1].span) }
    }
  }

  @Test("RFC 8032 §7.4: Ed448, blank message")
  func ed448() throws {
    for (seed, publicKey, message, signature) in [
      (
        """
        6c82a562cb808d10d632be89c8513ebf6c929f34ddfa8c9f63c9960ef6e348a3528c8a3fcc2f044e39a3fc5b94492f8f
        032e7549a20098f95b
        """,
        """
        5fd7449b59b461fd2ce787ec616ad46a1da1342485a70e1f8a0ea75d80e96778edf124769b46c7061bd6783df1e50f6c
        d1fa1abeafe8256180
        """,
        "",
        """
        533a37f6bbe457251f023c0d88f976ae2dfb504a843e34d2074fd823d41a591f2b233f034f628281f2fd7a22ddd47d78
        28c59bd0a21bfd3980ff0d2028d4b18a9df63e006c5d1c2d345b925d8dc00b4104852db99ac5c7cdda8530a113a0f4db
        b61149f05a7363268c71d95808ff2e652600
        """
      )
    ] {
      let seed = hex(seed.filter { !$0.isWhitespace })
      let key = try SignatureScheme.PrivateKey(.ed448, rawRepresentation: seed.span)
      #expect(key.publicKey == hex(publicKey.filter { !$0.isWhitespace }))
      let message = hex(message)
      #expect(try key.signature(for: message.span) == hex(signature.filter { !$0.isWhitespace }))
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
    "Wycheproof: Ed448",
    .enabled(if: Vectors.has("wycheproof/ed448_test.json"), "vectors absent: skipped"))
  func wycheproofEd448() throws {
    var count = 0
    let file = try Vectors.load("wycheproof/ed448_test.json", as: Wycheproof<SignatureGroup>.self)
    for group in file.testGroups {
      for test in group.tests {
        let valid = SignatureScheme.ed448.isValidSignature(
          test.sig.bytes.span, for: test.msg.bytes.span, by: group.publicKey.pk.bytes.span)
        #expect(valid == (test.result == .valid), "tcId \(test.tcId)")
        count += 1
      }
    }
    #expect(count == 87)
  }
}
