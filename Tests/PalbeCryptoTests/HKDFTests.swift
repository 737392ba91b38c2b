import PalbeCrypto
import PalbeTestKit
import Testing

@Suite("HKDF")
struct HKDFTests {
  @Test("RFC 5869 A.1: extract and expand with SHA-256")
  func a1() {
    let key = HKDF<SHA256>.extract(
      salt: hex("000102030405060708090a0b0c").span, inputKeyMaterial: [UInt8](repeating: 0x0b, count: 22).span
    )
    #expect(bytes(key) == hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"))
    let output = HKDF<SHA256>.expand(
      pseudoRandomKey: key.span, info: hex("f0f1f2f3f4f5f6f7f8f9").span, outputByteCount: 42)
    #expect(
      bytes(output)
        == hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"))
  }

  @Test("RFC 5869 A.3: empty salt and info")
  func a3() {
    let output = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: [UInt8](repeating: 0x0b, count: 22).span, salt: Span(), info: Span(),
      outputByteCount: 42)
    #expect(
      bytes(output)
        == hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"))
  }

  @Test("RFC 5869 A.4: SHA-1")
  func a4() {
    let output = HKDF<SHA1>.deriveKey(
      inputKeyMaterial: [UInt8](repeating: 0x0b, count: 11).span,
      salt: hex("000102030405060708090a0b0c").span,
      info: hex("f0f1f2f3f4f5f6f7f8f9").span, outputByteCount: 42)
    #expect(
      bytes(output)
        == hex("085a01ea1b10f36933068b56efa5ad81a4f14b822f5b091568a9cdd4f155fda2c22e422478d305f3f896"))
  }

  @Test("RFC 5869 §2.3: every output is a prefix of a longer one, up to 255 blocks")
  func lengths() {
    let key = [UInt8]("pseudorandom".utf8)
    let longest = bytes(
      HKDF<SHA256>.expand(pseudoRandomKey: key.span, info: Span(), outputByteCount: 255 * SHA256.byteCount))
    #expect(longest.count == 8_160)
    for count in [0, 1, 31, 32, 33, 64, 8_159] {
      let output = HKDF<SHA256>.expand(pseudoRandomKey: key.span, info: Span(), outputByteCount: count)
      #expect(bytes(output) == Array(longest.prefix(count)))
    }
  }

  struct Group: Decodable, Sendable {
    struct Case: Decodable, Sendable {
      let tcId: Int
      let ikm, salt, info, okm: HexBytes
      let size: Int
      let result: Verdict
    }
    let tests: [Case]
  }

  func check<H: HashFunction>(_ file: String, _ hash: H.Type) throws -> Int {
    var count = 0
    for group in try Vectors.load(file, as: Wycheproof<Group>.self).testGroups {
      for test in group.tests {
        count += 1
        // The invalid cases ask for more than 255 blocks, which `expand` documents as a programming error.
        guard test.result == .valid else {
          #expect(test.size > 255 * H.byteCount, "tcId \(test.tcId)")
          continue
        }
        let output = HKDF<H>.deriveKey(
          inputKeyMaterial: test.ikm.bytes.span, salt: test.salt.bytes.span, info: test.info.bytes.span,
          outputByteCount: test.size)
        #expect(bytes(output) == test.okm.bytes, "tcId \(test.tcId)")
      }
    }
    return count
  }

  @Test(
    "Wycheproof: HKDF-SHA-256",
    .enabled(if: Vectors.has("wycheproof/hkdf_sha256_test.json"), "vectors absent: skipped"))
  func wycheproof256() throws {
    #expect(try check("wycheproof/hkdf_sha256_test.json", SHA256.self) == 86)
  }

  @Test(
    "Wycheproof: HKDF-SHA-512",
    .enabled(if: Vectors.has("wycheproof/hkdf_sha512_test.json"), "vectors absent: skipped"))
  func wycheproof512() throws {
    #expect(try check("wycheproof/hkdf_sha512_test.json", SHA512.self) == 83)
  }
}
