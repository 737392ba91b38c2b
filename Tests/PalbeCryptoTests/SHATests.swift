import PalbeCrypto
import Testing

@Suite("Hashes")
struct SHATests {
  let abc = [UInt8]("abc".utf8)
  let twoBlocks = [UInt8]("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)

  @Test("FIPS 180-4: SHA-1 of abc, of two blocks and of nothing")
  func sha1() {
    #expect(SHA1.hash(abc) == hex("a9993e364706816aba3e25717850c26c9cd0d89d"))
    #expect(SHA1.hash(twoBlocks) == hex("84983e441c3bd26ebaae4aa1f95129e5e54670f1"))
    #expect(SHA1.hash([]) == hex("da39a3ee5e6b4b0d3255bfef95601890afd80709"))
  }

  @Test("FIPS 180-4: SHA-256 of abc, of two blocks and of nothing")
  func sha256() {
    #expect(SHA256.hash(abc) == hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
    #expect(SHA256.hash(twoBlocks) == hex("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"))
    #expect(SHA256.hash([]) == hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
  }

  @Test("FIPS 180-4: SHA-384 of abc")
  func sha384() {
    let expected = hex(
      "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7")
    #expect(SHA384.hash(abc) == expected)
  }

  @Test("FIPS 180-4: SHA-512 of abc")
  func sha512() {
    let expected = hex(
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f")
    #expect(SHA512.hash(abc) == expected)
  }

  @Test("A hash fed in pieces of every size is the hash of the whole, and a copy goes on by itself")
  func pieces() {
    let message = (0..<300).map { UInt8($0 & 255) }
    for size in 1...130 {
      var whole = SHA512()
      var at = 0
      while at < message.count {
        whole.update(message.span.extracting(at..<min(at + size, message.count)))
        at += size
      }
      let copy = whole
      whole.update([1])
      #expect(copy.finalize() == SHA512.hash(message))
      #expect(whole.finalize() == SHA512.hash(message + [1]))
    }
  }
}
