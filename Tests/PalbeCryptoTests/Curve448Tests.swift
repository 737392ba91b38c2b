import PalbeCrypto
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@Suite("X448, points of small order: RFC 7748")
struct Curve448Tests {
  struct AgreementGroup: Decodable, Sendable {
    struct Case: Decodable, Sendable {
      let tcId: Int
      let `public`, `private`, shared: HexBytes
      let result: Verdict
    }
    let tests: [Case]
  }

  @Test("Two sides agree; keys of another length are refused")
  func agreement() throws {
    var random = RandomSource(seed: 1)
    let alice = Curve448.KeyAgreement.PrivateKey(using: &random)
    let bob = Curve448.KeyAgreement.PrivateKey(using: &random)
    let first = bytes(try alice.sharedSecret(with: bob.publicKey))
    #expect(first == bytes(try bob.sharedSecret(with: alice.publicKey)))
    let error = CryptoError.wrongLength(expected: 56, got: 32)
    let raw = [UInt8](repeating: 1, count: 32)
    #expect(throws: error) { _ = try Curve448.KeyAgreement.PrivateKey(rawRepresentation: raw.span) }
    #expect(throws: error) { _ = try Curve448.KeyAgreement.PublicKey(rawRepresentation: raw) }
  }

  @Test(
    "Wycheproof: X448; a shared secret of zeros is always refused, and its point is no valid HPKE key",
    .enabled(if: Vectors.has("wycheproof/x448_test.json"), "vectors absent: skipped"))
  func wycheproofX448() throws {
    var count = 0
    let file = try Vectors.load("wycheproof/x448_test.json", as: Wycheproof<AgreementGroup>.self)
    for group in file.testGroups {
      for test in group.tests {
        count += 1
        guard test.public.bytes.count == 56 else {
          #expect(test.result == .invalid, "tcId \(test.tcId)")
          expect(!HPKE.KEM.x448.isValidPublicKey(test.public.bytes.span))
          continue
        }
        let key = try Curve448.KeyAgreement.PrivateKey(rawRepresentation: test.private.bytes.span)
        let peer = try Curve448.KeyAgreement.PublicKey(rawRepresentation: test.public.bytes)
        let isZero = test.shared.bytes.allSatisfy { $0 == 0 }
        #expect(HPKE.KEM.x448.isValidPublicKey(test.public.bytes.span) == !isZero, "tcId \(test.tcId)")
        if isZero {
          #expect(throws: CryptoError.invalidPoint, "tcId \(test.tcId)") {
            _ = try key.sharedSecret(with: peer)
          }
        } else {
          #expect(bytes(try key.sharedSecret(with: peer)) == test.shared.bytes, "tcId \(test.tcId)")
        }
      }
    }
    #expect(count == 510)
  }

  @Test(
    "Wycheproof: exactly the X25519 points that give zeros are no valid HPKE keys",
    .enabled(if: Vectors.has("wycheproof/x25519_test.json"), "vectors absent: skipped"))
  func smallOrder25519() throws {
    var refused = 0
    let file = try Vectors.load("wycheproof/x25519_test.json", as: Wycheproof<AgreementGroup>.self)
    for group in file.testGroups {
      for test in group.tests {
        let isZero = test.shared.bytes.allSatisfy { $0 == 0 }
        #expect(HPKE.KEM.x25519.isValidPublicKey(test.public.bytes.span) == !isZero, "tcId \(test.tcId)")
        refused += isZero ? 1 : 0
      }
    }
    #expect(refused > 7)
  }

  @Test("RFC 9180 §7.1.4: points of small order are no keys, also with the bit that does not count")
  func listed() throws {
    var points = [UInt8](repeating: 0, count: 32)
    expect(!HPKE.KEM.x25519.isValidPublicKey(points.span))
    points[31] = 0x80
    expect(!HPKE.KEM.x25519.isValidPublicKey(points.span))
    points[0] = 9
    expect(HPKE.KEM.x25519.isValidPublicKey(points.span))
    var long = [UInt8](repeating: 0, count: 56)
    expect(!HPKE.KEM.x448.isValidPublicKey(long.span))
    long[0] = 5
    expect(HPKE.KEM.x448.isValidPublicKey(long.span))
  }
}
