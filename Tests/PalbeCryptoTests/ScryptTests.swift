import PalbeCrypto
import Testing

@Suite("scrypt")
struct ScryptTests {
  @Test(
    "RFC 7914 §12",
    arguments: [
      (
        "", "", 16, 1, 1,
        "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
          + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
      ),
      (
        "password", "NaCl", 1_024, 8, 16,
        "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
          + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
      ),
      (
        "pleaseletmein", "SodiumChloride", 16_384, 8, 1,
        "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
          + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
      ),
    ])
  func vectors(_ password: String, _ salt: String, _ n: Int, _ r: Int, _ p: Int, _ expected: String) throws {
    let cost = try #require(Scrypt.Cost(n: n, r: r, p: p))
    let (password, salt) = ([UInt8](password.utf8), [UInt8](salt.utf8))
    let key = try Scrypt.derive(password: password.span, salt: salt.span, cost: cost, outputByteCount: 64)
    #expect(bytes(key) == hex(expected))
  }

  @Test("RFC 7914 §2: costs that are not allowed, or would take minutes or the whole memory")
  func costs() {
    for (n, r, p) in [
      (0, 8, 1), (1, 8, 1), (1_000, 8, 1), (-2, 8, 1), (16, 0, 1), (16, 1, 0), (16, 65, 1), (16, 1, 65),
      (1 << 25, 1, 1), (1 << 20, 9, 1), (1 << 20, 8, 64),
    ] {
      #expect(Scrypt.Cost(n: n, r: r, p: p) == nil, "\(n) \(r) \(p)")
    }
    #expect(Scrypt.Cost(n: 1 << 15, r: 8, p: 1)?.memoryByteCount == 33_557_504)
  }
}
