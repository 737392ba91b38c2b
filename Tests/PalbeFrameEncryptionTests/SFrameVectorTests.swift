import PalbeCrypto
import PalbeTestKit
import PalbeWire
import Testing

@testable import PalbeFrameEncryption

@Suite("SFrame published vectors")
struct SFrameVectorTests {
  struct Official: Decodable {
    struct Case: Decodable {
      let cipher_suite: UInt16
      let kid: UInt64
      let ctr: UInt64
      let base_key, sframe_key, sframe_salt, metadata, nonce, pt, ct: String
    }
    let sframe: [Case]
  }

  struct Derived: Decodable {
    struct Case: Decodable {
      let cipher_suite: UInt16
      let epoch, context, kid, ctr: UInt64
      let sender_index: UInt32
      let E, S: Int
      let base_key, header, sframe_key, sframe_salt, nonce, metadata, pt, ct: String
    }
    struct Step: Decodable {
      let cipher_suite: UInt16
      let step: Int
      let base_key: String
    }
    let mls: [Case]
    let ratchet: [Step]
  }

  func check(
    _ suite: SFrameCipherSuite, _ keyID: UInt64, _ counter: UInt64, base: String, key: String, salt: String,
    nonce: String, metadata: String, plaintext: String, sealed: String
  ) throws {
    let derived = SFrameKey(suite: suite, keyID: keyID, baseKey: hex(base).span)
    #expect(Hex.encode([UInt8](derived.key.span)) == key)
    #expect(Hex.encode([UInt8](derived.salt.span)) == salt)
    let frameNonce = FrameNonce(salt: FrameSalt(derived.salt.span), counter: counter)
    #expect(Hex.encode([UInt8](frameNonce.span)) == nonce)

    var sealer = try SFrameSealer(
      suite: suite, keyID: keyID, baseKey: hex(base).span, limits: .standard, firstCounter: counter)
    let output = try [UInt8](capacity: 200) { output throws(SealError) in
      try sealer.seal(hex(plaintext).span, metadata: hex(metadata).span, into: &output)
    }
    #expect(Hex.encode(output) == sealed)

    var opener = try SFrameOpener(suite: suite, keyID: keyID, baseKey: hex(base).span)
    var bytes = hex(sealed)
    var span = bytes.mutableSpan
    let range = try opener.open(in: &span, frame: 0..<output.count, metadata: hex(metadata).span)
    #expect(Hex.encode(Array(bytes[range])) == plaintext)
  }

  @Test(
    "RFC 9605 C.3: suites 4 and 5 derive, seal and open as published",
    .enabled(if: Vectors.has("sframe/test-vectors.json"), "sframe/test-vectors.json absent: skipped"))
  func official() throws {
    var checked = 0
    for item in try Vectors.load("sframe/test-vectors.json", as: Official.self).sframe {
      guard let suite = SFrameCipherSuite(rawValue: item.cipher_suite) else { continue }
      try check(
        suite, item.kid, item.ctr, base: item.base_key, key: item.sframe_key, salt: item.sframe_salt,
        nonce: item.nonce, metadata: item.metadata, plaintext: item.pt, sealed: item.ct)
      checked += 1
    }
    #expect(checked == 2)
  }

  @Test(
    "RFC 9605 §5.2: 144 frames under key ids over an MLS group",
    .enabled(if: Vectors.has("sframe/derived-mls-kid.json"), "sframe/derived-mls-kid.json absent: skipped"))
  func derived() throws {
    let cases = try Vectors.load("sframe/derived-mls-kid.json", as: Derived.self).mls
    #expect(cases.count == 144)
    for item in cases {
      let keyID = SFrameMLSKeyID(epochBits: item.E, indexBits: item.S)
        .keyID(context: item.context, senderIndex: item.sender_index, epoch: item.epoch)
      #expect(keyID == item.kid)
      #expect(Hex.encode(SFrameHeader(keyID: item.kid, counter: item.ctr).encoded) == item.header)
      let suite = try #require(SFrameCipherSuite(rawValue: item.cipher_suite))
      try check(
        suite, item.kid, item.ctr, base: item.base_key, key: item.sframe_key, salt: item.sframe_salt,
        nonce: item.nonce, metadata: item.metadata, plaintext: item.pt, sealed: item.ct)
    }
  }

  @Test(
    "RFC 9605 §5.1: the sender-key ratchet, three steps in both suites",
    .enabled(if: Vectors.has("sframe/derived-mls-kid.json"), "sframe/derived-mls-kid.json absent: skipped"))
  func ratchet() throws {
    let steps = try Vectors.load("sframe/derived-mls-kid.json", as: Derived.self).ratchet
    #expect(steps.count == 8)
    for (step, next) in zip(steps, steps.dropFirst()) where next.step == step.step + 1 {
      let suite = try #require(SFrameCipherSuite(rawValue: step.cipher_suite))
      let ratcheted = SFrameRatchet.next(after: SymmetricKey(copying: hex(step.base_key)), suite: suite)
      #expect(Hex.encode([UInt8](ratcheted.span)) == next.base_key)
    }
  }

  @Test("RFC 9605 §5.1: the key id holds the generation over the step's low bits")
  func ratchetKeyID() {
    #expect(SFrameRatchet.keyID(generation: 3, step: 17, stepBits: 4) == 0x31)
    #expect(SFrameRatchet.keyID(generation: 3, step: 17, stepBits: 0) == 3)
  }

  @Test("RFC 9605 §5.1: a ratchet step of our own making, so that a fresh clone tests it")
  func ratchetGolden() {
    let first = SymmetricKey(copying: Array(0..<32))
    let next = SFrameRatchet.next(after: first, suite: .aes128GCM)
    #expect(
      Hex.encode([UInt8](next.span)) == "1e31370b2f041d5c893dbba4b27bc3e67956a51ae6221a427445cab04059fd65")
  }
}
