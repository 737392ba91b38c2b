import PalbeCrypto
import Testing

@Suite("PBKDF2")
struct PBKDF2Tests {
  func derive<H: HashFunction>(
    _ hash: H.Type, _ password: String, _ salt: String, _ iterations: Int, _ count: Int
  ) -> [UInt8] {
    let password = [UInt8](password.utf8)
    let salt = [UInt8](salt.utf8)
    return bytes(
      PBKDF2<H>.derive(
        password: password.span, salt: salt.span, iterations: iterations, outputByteCount: count))
  }

  @Test("RFC 6070 §2: SHA-1")
  func sha1() {
    let vectors = [
      (1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"), (2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"),
      (4_096, "4b007901b765489abead49d926f721d065a429c1"),
    ]
    for (iterations, expected) in vectors {
      #expect(derive(SHA1.self, "password", "salt", iterations, 20) == hex(expected))
    }
  }

  @Test("The inputs of RFC 6070 with SHA-256: one block, a longer output, a zero byte in both")
  func sha256() {
    #expect(
      derive(SHA256.self, "password", "salt", 1, 32)
        == hex("120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b"))
    #expect(
      derive(SHA256.self, "password", "salt", 2, 32)
        == hex("ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43"))
    #expect(
      derive(SHA256.self, "password", "salt", 4_096, 32)
        == hex("c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a"))
    #expect(
      derive(
        SHA256.self, "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4_096, 40)
        == hex("348c89dbcbd32b2f32d814b8116e84cf2b17347ebc1800181c4e2a1fb8dd53e1c635518c7dac47e9"))
    #expect(derive(SHA256.self, "pass\0word", "sa\0lt", 4_096, 16) == hex("89b69d0516f829893c696226650a8687"))
  }

  @Test("RFC 8018 §5.2: SHA-512, and an empty output")
  func sha512() {
    #expect(
      derive(SHA512.self, "password", "salt", 1_000, 64)
        == hex(
          "afe6c5530785b6cc6b1c6453384731bd5ee432ee549fd42fb6695779ad8a1c5b"
            + "f59de69c48f774efc4007d5298f9033c0241d5ab69305e7b64eceeb8d834cfec"))
    #expect(derive(SHA512.self, "password", "salt", 1, 0) == [])
  }
}
