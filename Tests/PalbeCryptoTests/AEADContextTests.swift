import PalbeCrypto
import PalbeTestKit
import Testing

/// Seals `buffer[body]`; what it threw, or nil.
private func seal(
  _ context: inout AEADContext, _ buffer: inout [UInt8], _ body: Range<Int>, _ aad: Range<Int>,
  trailer: [UInt8] = [], nonce: [UInt8]
) -> CryptoError? {
  var span = buffer.mutableSpan
  do {
    try context.seal(in: &span, body: body, authenticating: aad, trailer.span, nonce: nonce.span)
    return nil
  } catch {
    return error
  }
}

/// Opens `buffer[body]`; what it threw, or nil.
private func open(
  _ context: inout AEADContext, _ buffer: inout [UInt8], _ body: Range<Int>, _ aad: Range<Int>,
  trailer: [UInt8] = [], nonce: [UInt8]
) -> CryptoError? {
  var span = buffer.mutableSpan
  do {
    try context.open(in: &span, body: body, authenticating: aad, trailer.span, nonce: nonce.span)
    return nil
  } catch {
    return error
  }
}

@Suite("AEAD contexts")
struct AEADContextTests {
  struct Group: Decodable, Sendable {
    struct Case: Decodable, Sendable {
      let tcId: Int
      let key, iv, aad, msg, ct, tag: HexBytes
      let result: Verdict
    }
    let ivSize, keySize, tagSize: Int
    let tests: [Case]
  }

  /// Runs a file's cases with 12-byte nonces; returns how many there were.
  func check(_ file: String, _ algorithm: (Int) -> AEADContext.Algorithm?) throws -> Int {
    var count = 0
    for group in try Vectors.load(file, as: Wycheproof<Group>.self).testGroups {
      guard let algorithm = algorithm(group.keySize), group.tagSize == 128 else { continue }
      for test in group.tests {
        let nonce = test.iv.bytes
        let aad = test.aad.bytes
        let key = test.key.bytes
        var opener = try AEADContext(algorithm, key: key.span, direction: .open)
        if group.ivSize != 96 {
          var buffer = test.ct.bytes + test.tag.bytes
          let error = open(&opener, &buffer, 0..<test.ct.bytes.count, 0..<0, trailer: aad, nonce: nonce)
          #expect(error == .wrongLength(expected: 12, got: nonce.count), "tcId \(test.tcId)")
          continue
        }
        count += 1
        if test.result == .valid {
          var sealer = try AEADContext(algorithm, key: key.span, direction: .seal)
          var buffer = test.msg.bytes + [UInt8](repeating: 0, count: 16)
          #expect(seal(&sealer, &buffer, 0..<test.msg.bytes.count, 0..<0, trailer: aad, nonce: nonce) == nil)
          #expect(buffer == test.ct.bytes + test.tag.bytes, "tcId \(test.tcId)")
        }
        // Header in the same buffer, and a byte after the tag that must stay.
        var packet = aad + test.ct.bytes + test.tag.bytes + [0x77]
        let range = aad.count..<aad.count + test.ct.bytes.count
        let error = open(&opener, &packet, range, 0..<aad.count, nonce: nonce)
        if test.result == .valid {
          #expect(error == nil, "tcId \(test.tcId)")
          #expect(packet == aad + test.msg.bytes + test.tag.bytes + [0x77], "tcId \(test.tcId)")
        } else {
          #expect(error == .authenticationFailure, "tcId \(test.tcId)")
          #expect(packet[range].allSatisfy { $0 == 0 }, "tcId \(test.tcId)")
        }
      }
    }
    return count
  }

  @Test(
    "Wycheproof: AES-GCM with 12-byte nonces",
    .enabled(if: Vectors.has("wycheproof/aes_gcm_test.json"), "vectors absent: skipped"))
  func aesGCM() throws {
    let count = try check("wycheproof/aes_gcm_test.json") {
      $0 == 128 ? .aes128GCM : $0 == 256 ? .aes256GCM : nil
    }
    #expect(count > 100)
  }

  @Test(
    "Wycheproof: ChaCha20-Poly1305",
    .enabled(if: Vectors.has("wycheproof/chacha20_poly1305_test.json"), "vectors absent: skipped"))
  func chaChaPoly() throws {
    #expect(try check("wycheproof/chacha20_poly1305_test.json") { _ in .chaCha20Poly1305 } > 300)
  }

  @Test("RFC 8439 §2.8.2: the sealed message, in a fresh clone too")
  func rfc8439() throws {
    let key = (0x80...0x9f).map { UInt8($0) }
    var context = try AEADContext(.chaCha20Poly1305, key: key.span, direction: .seal)
    let text = [UInt8](
      ("Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        + "sunscreen would be it.").utf8)
    var buffer = text + [UInt8](repeating: 0, count: 16)
    let error = seal(
      &context, &buffer, 0..<text.count, 0..<0, trailer: hex("50515253c0c1c2c3c4c5c6c7"),
      nonce: hex("070000004041424344454647"))
    #expect(error == nil)
    #expect(Array(buffer.suffix(16)) == hex("1ae10b594f09e26a7e902ecbd0600691"))
    #expect(Array(buffer.prefix(8)) == hex("d31a8d34648e60db"))
  }

  @Test("NIST GCM test case 4: AES-128, 60 bytes with associated data")
  func gcmCase4() throws {
    let key = hex("feffe9928665731c6d6a8f9467308308")
    var context = try AEADContext(.aes128GCM, key: key.span, direction: .seal)
    let text = hex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")
    var buffer = text + [UInt8](repeating: 0, count: 16)
    let error = seal(
      &context, &buffer, 0..<60, 0..<0, trailer: hex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
      nonce: hex("cafebabefacedbaddecaf888"))
    #expect(error == nil)
    #expect(
      buffer
        == hex(
          "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
            + "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
            + "5bc94fbc3221a5db94fae95ae7121a47"))
  }

  @Test(
    "One context seals and opens many messages, also after a refused one; pieces of associated data are joined",
    arguments: [AEADContext.Algorithm.aes128GCM, .aes256GCM, .chaCha20Poly1305])
  func reuse(_ algorithm: AEADContext.Algorithm) throws {
    let key = (0..<algorithm.keyByteCount).map { UInt8($0) }
    var sealer = try AEADContext(algorithm, key: key.span, direction: .seal)
    var opener = try AEADContext(algorithm, key: key.span, direction: .open)
    for length in [0, 1, 15, 16, 17, 100, 1_000] {
      let text = (0..<length).map { UInt8($0 & 255) }
      let nonce = [UInt8](repeating: UInt8(length & 255), count: 12)
      let header: [UInt8] = [1, 2, 3, 4]
      let trailer: [UInt8] = [5, 6, 7]
      let body = 4..<4 + length
      var packet = header + text + [UInt8](repeating: 0, count: 16)
      #expect(seal(&sealer, &packet, body, 0..<4, trailer: trailer, nonce: nonce) == nil)
      var joined = text + [UInt8](repeating: 0, count: 16)
      #expect(seal(&sealer, &joined, 0..<length, 0..<0, trailer: header + trailer, nonce: nonce) == nil)
      #expect(Array(packet.dropFirst(4)) == joined)
      #expect(length == 0 || Array(packet[body]) != text)

      for index in [0, 4, packet.count - 1] {
        var broken = packet
        broken[index] ^= 0x10
        #expect(open(&opener, &broken, body, 0..<4, trailer: trailer, nonce: nonce) == .authenticationFailure)
        #expect(broken[body].allSatisfy { $0 == 0 })
      }
      #expect(open(&opener, &packet, body, 0..<4, trailer: trailer, nonce: nonce) == nil)
      #expect(Array(packet[body]) == text)
    }
  }

  @Test("Wrong lengths are refused before anything is touched")
  func lengths() throws {
    let key = [UInt8](repeating: 0, count: 32)
    #expect(throws: CryptoError.wrongLength(expected: 16, got: 32)) {
      _ = try AEADContext(.aes128GCM, key: key.span, direction: .seal)
    }
    var context = try AEADContext(.aes256GCM, key: key.span, direction: .seal)
    var buffer = [UInt8](repeating: 9, count: 40)
    let nonce = [UInt8](repeating: 0, count: 12)
    for body in [25..<25, 0..<25, 0..<41, -1..<4, 0..<Int.max] {
      let error = seal(&context, &buffer, body, 0..<0, nonce: nonce)
      #expect(error == .wrongLength(expected: body.upperBound &+ 16, got: 40))
    }
    #expect(seal(&context, &buffer, 4..<8, 0..<41, nonce: nonce) == .wrongLength(expected: 41, got: 40))
    #expect(
      seal(&context, &buffer, 4..<8, 0..<4, nonce: [1, 2, 3]) == .wrongLength(expected: 12, got: 3))
    #expect(buffer.allSatisfy { $0 == 9 })
  }
}
