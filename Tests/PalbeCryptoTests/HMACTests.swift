import PalbeCrypto
import PalbeTestKit
import Testing

@Suite("HMAC")
struct HMACTests {
  @Test("RFC 4231 §4.2: test case 1")
  func case1() {
    let key = [UInt8](repeating: 0x0b, count: 20)
    let message = [UInt8]("Hi There".utf8)
    #expect(
      HMAC<SHA256>.authenticationCode(for: message, using: key)
        == hex("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"))
    #expect(
      HMAC<SHA384>.authenticationCode(for: message, using: key)
        == hex(
          "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6"))
    #expect(
      HMAC<SHA512>.authenticationCode(for: message, using: key)
        == hex(
          "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
            + "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"))
  }

  @Test("RFC 4231 §4.3 and RFC 2202 §3: a key shorter than the digest")
  func case2() {
    let key = [UInt8]("Jefe".utf8)
    let message = [UInt8]("what do ya want for nothing?".utf8)
    #expect(
      HMAC<SHA256>.authenticationCode(for: message, using: key)
        == hex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"))
    #expect(
      HMAC<SHA1>.authenticationCode(for: message, using: key)
        == hex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"))
  }

  @Test("RFC 4231 §4.7: a key longer than the block is hashed first")
  func case6() {
    let key = [UInt8](repeating: 0xaa, count: 131)
    let message = [UInt8]("Test Using Larger Than Block-Size Key - Hash Key First".utf8)
    #expect(
      HMAC<SHA256>.authenticationCode(for: message, using: key)
        == hex("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"))
    #expect(
      HMAC<SHA512>.authenticationCode(for: message, using: key)
        == hex(
          "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352"
            + "6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"))
  }

  @Test("A code is valid for its message and key alone, and whole")
  func validity() {
    let key = [UInt8]("a key".utf8)
    let message = [UInt8]("a message".utf8)
    let code = HMAC<SHA256>.authenticationCode(for: message, using: key)
    func isValid(_ code: [UInt8], _ message: [UInt8], _ key: [UInt8]) -> Bool {
      HMAC<SHA256>.isValidAuthenticationCode(code.span, for: message.span, using: key.span)
    }
    #expect(isValid(code, message, key))
    #expect(!isValid(code, message + [0], key) && !isValid(code, message, [1] + key))
    #expect(!isValid([UInt8](code.dropLast()), message, key) && !isValid(code + [0], message, key))
    #expect(!isValid([code[0] ^ 1] + code.dropFirst(), message, key) && !isValid([], message, key))
  }

  @Test("A context keyed once gives the same codes again and again, whole or shortened, in one part or three")
  func reuse() {
    let key = [UInt8]("a key".utf8)
    let message = (0..<200).map { UInt8($0) }
    let expected = HMAC<SHA1>.authenticationCode(for: message, using: key)
    var context = HMACContext<SHA1>(key: key.span)
    for cut in [0, 1, 63, 64, 65, 199, 200] {
      var tag = [UInt8](repeating: 0, count: 10)
      var output = tag.mutableSpan
      let first = message.span.extracting(..<cut)
      let second = message.span.extracting(cut...)
      context.authenticate(first, second, into: &output)
      #expect(tag == Array(expected.prefix(10)))
      var whole = [UInt8](repeating: 0, count: 20)
      var wholeOutput = whole.mutableSpan
      context.authenticate(first, Span(), second, into: &wholeOutput)
      #expect(whole == expected)
      expect(context.isValid(tag.span, for: first, second))
      tag[9] ^= 1
      expect(!context.isValid(tag.span, for: first, second))
    }
    expect(!context.isValid(Span(), for: message.span))
    expect(!context.isValid((expected + [0]).span, for: message.span))
  }

  struct Group: Decodable, Sendable {
    struct Case: Decodable, Sendable {
      let tcId: Int
      let key, msg, tag: HexBytes
      let result: Verdict
    }
    let tagSize: Int
    let tests: [Case]
  }

  @Test(
    "Wycheproof: HMAC-SHA-256",
    .enabled(if: Vectors.has("wycheproof/hmac_sha256_test.json"), "vectors absent: skipped"))
  func wycheproof() throws {
    let file = try Vectors.load("wycheproof/hmac_sha256_test.json", as: Wycheproof<Group>.self)
    var count = 0
    for group in file.testGroups {
      for test in group.tests {
        var context = HMACContext<SHA256>(key: test.key.bytes.span)
        let valid = context.isValid(test.tag.bytes.span, for: test.msg.bytes.span)
        #expect(valid == (test.result == .valid), "tcId \(test.tcId)")
        #expect(test.tag.bytes.count * 8 == group.tagSize)
        count += 1
      }
    }
    #expect(count == 174)
  }
}
