import PalbeCrypto
import Testing

@Suite("AES in counter mode")
struct AESCTRContextTests {
  let plaintext = hex(
    "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51"
      + "30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710")
  let counter = hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")

  func apply(_ context: inout AESCTRContext, to text: [UInt8], counter: [UInt8]) -> [UInt8] {
    var buffer = [0x55] + text + [0xaa]
    var span = buffer.mutableSpan
    context.apply(in: &span, range: 1..<text.count + 1, counterBlock: counter.span)
    #expect(buffer.first == 0x55 && buffer.last == 0xaa)
    return Array(buffer.dropFirst().dropLast())
  }

  @Test("NIST SP 800-38A F.5.1, F.5.2: CTR-AES128, both ways with one context")
  func aes128() throws {
    var context = try AESCTRContext(key: hex("2b7e151628aed2a6abf7158809cf4f3c").span)
    let ciphertext = apply(&context, to: plaintext, counter: counter)
    #expect(
      ciphertext
        == hex(
          "874d6191b620e3261bef6864990db6ce 9806f66b7970fdff8617187bb9fffdff"
            + "5ae4df3edbd5d35e5b4f09020db03eab 1e031dda2fbe03d1792170a0f3009cee"))
    #expect(apply(&context, to: ciphertext, counter: counter) == plaintext)
    #expect(apply(&context, to: [], counter: counter) == [])
  }

  @Test("NIST SP 800-38A F.5.5: CTR-AES256")
  func aes256() throws {
    var context = try AESCTRContext(
      key: hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4").span)
    #expect(
      apply(&context, to: plaintext, counter: counter)
        == hex(
          "601ec313775789a5b7a7f504bbf3d228 f443e3ca4d62b59aca84e990cacaf5c5"
            + "2b0930daa23de94ce87017ba2d84988d dfc9c58db67aada613c2dd08457941a6"))
  }

  @Test("RFC 3686 §6: test vectors 1 and 2, whose counter block is nonce, IV and 1")
  func rfc3686() throws {
    var first = try AESCTRContext(key: hex("ae6852f8121067cc4bf7a5765577f39e").span)
    #expect(
      apply(
        &first, to: [UInt8]("Single block msg".utf8), counter: hex("00000030 0000000000000000 00000001"))
        == hex("e4095d4fb7a7b3792d6175a3261311b8"))
    var second = try AESCTRContext(key: hex("7e24067817fae0d743d6ce1f32539163").span)
    #expect(
      apply(&second, to: (0..<32).map { UInt8($0) }, counter: hex("006cb6db c0543b59da48d90b 00000001"))
        == hex("5104a106168a72d9790d41ee8edad388 eb2e1efc46da57c8fce630df9141be28"))
  }

  @Test("A key of another length is refused")
  func keyLength() {
    for count in [0, 15, 17, 24, 31, 33] {
      #expect(throws: CryptoError.wrongLength(expected: 16, got: count)) {
        _ = try AESCTRContext(key: [UInt8](repeating: 0, count: count).span)
      }
    }
  }
}
