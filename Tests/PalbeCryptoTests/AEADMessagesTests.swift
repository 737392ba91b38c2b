import PalbeCrypto
import Testing

@Suite("AEAD for whole messages")
struct AEADMessagesTests {
  let message = (0..<100).map { UInt8($0) }
  let nonce = [UInt8](repeating: 9, count: 12)
  let aad: [UInt8] = [1, 2, 3]

  @Test(
    "A sealed message opens, as bytes and as a secret; no prefix of it does",
    arguments: [AEADContext.Algorithm.aes128GCM, .aes256GCM, .chaCha20Poly1305])
  func roundTrip(_ algorithm: AEADContext.Algorithm) throws {
    let key = [UInt8](repeating: 7, count: algorithm.keyByteCount)
    for count in [0, 1, 100] {
      let text = message.span.extracting(first: count)
      let sealed = try algorithm.seal(text, key: key.span, nonce: nonce.span, authenticating: aad.span)
      #expect(sealed.count == count + 16)
      let opened = try algorithm.open(sealed.span, key: key.span, nonce: nonce.span, authenticating: aad.span)
      #expect(opened == Array(message.prefix(count)))
      let secret = try algorithm.openSecret(
        sealed.span, key: key.span, nonce: nonce.span, authenticating: aad.span)
      #expect(bytes(secret) == opened)
      for cut in 0..<sealed.count {
        #expect(opens(algorithm, Array(sealed.prefix(cut)), key) == .authenticationFailure)
      }
      #expect(opens(algorithm, sealed + [0], key) == .authenticationFailure)
    }
  }

  func opens(_ algorithm: AEADContext.Algorithm, _ sealed: [UInt8], _ key: [UInt8]) -> CryptoError? {
    do throws(CryptoError) {
      _ = try algorithm.open(sealed.span, key: key.span, nonce: nonce.span, authenticating: aad.span)
      return nil
    } catch {
      return error
    }
  }

  @Test("AES.GCM chooses by the key's length, and both names agree with the context")
  func names() throws {
    let key = [UInt8](repeating: 7, count: 32)
    let short = key.span.extracting(first: 16)
    let text = message
    let gcm256 = try AES.GCM.seal(text.span, key: key.span, nonce: nonce.span)
    #expect(
      try gcm256
        == AEADContext.Algorithm.aes256GCM.seal(
          text.span, key: key.span, nonce: nonce.span, authenticating: Span()))
    #expect(try AES.GCM.open(gcm256.span, key: key.span, nonce: nonce.span) == text)
    let gcm128 = try AES.GCM.seal(text.span, key: short, nonce: nonce.span)
    #expect(try AES.GCM.open(gcm128.span, key: short, nonce: nonce.span) == text)
    #expect(gcm128 != gcm256)
    let poly = try ChaChaPoly.seal(text.span, key: key.span, nonce: nonce.span, authenticating: aad.span)
    #expect(
      try ChaChaPoly.open(poly.span, key: key.span, nonce: nonce.span, authenticating: aad.span) == text)
    #expect(throws: CryptoError.wrongLength(expected: 16, got: 24)) {
      _ = try AES.GCM.seal(text.span, key: key.span.extracting(first: 24), nonce: nonce.span)
    }
  }
}
