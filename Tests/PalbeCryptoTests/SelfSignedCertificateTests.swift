import PalbeCrypto
import PalbeUnits
import Testing

/// One DER element: its tag, and where it and its content lie.
private struct Element {
  let tag: UInt8
  let whole: Range<Int>
  let content: Range<Int>

  init?(_ bytes: [UInt8], at start: Int) {
    guard start + 2 <= bytes.count else { return nil }
    tag = bytes[start]
    var length = Int(bytes[start + 1])
    var header = 2
    if length > 0x80 {
      let count = length - 0x80
      length = bytes[start + 2..<start + 2 + count].reduce(0) { $0 << 8 | Int($1) }
      header += count
    }
    content = start + header..<start + header + length
    whole = start..<content.upperBound
    guard whole.upperBound <= bytes.count else { return nil }
  }

  /// The elements inside, in order.
  func children(_ bytes: [UInt8]) -> [Element] {
    var found = [Element]()
    var at = content.lowerBound
    while at < content.upperBound, let child = Element(bytes, at: at) {
      found.append(child)
      at = child.whole.upperBound
    }
    return found
  }
}

@Suite("Self-signed certificates")
struct SelfSignedCertificateTests {
  func make(_ name: String, seed: UInt64 = 1, days: Int = 30, from: Int64 = 1_700_000_000) -> [UInt8]? {
    var random = RandomSource(seed: seed)
    do throws(CryptoError) {
      let certificate = try SelfSignedCertificate(
        commonName: name, notBeforeUnix: from, validFor: days, using: &random)
      #expect(certificate.fingerprintSHA256 == SHA256.hash(certificate.derBytes))
      certificate.withHandles { x509, key in #expect(x509 != key) }
      return certificate.derBytes
    } catch {
      return nil
    }
  }

  @Test("RFC 5280 §4.1: version, serial, names, validity and key are as asked, and its own key verifies it")
  func fields() throws {
    let der = try #require(make("palbe"))
    let certificate = try #require(Element(der, at: 0))
    #expect(certificate.whole == 0..<der.count)
    let outer = certificate.children(der)
    try #require(outer.count == 3)
    let fields = outer[0].children(der)
    try #require(fields.count == 7)

    #expect(Array(der[fields[0].content]) == [2, 1, 2])  // v3
    #expect(fields[1].tag == 2 && (1...8).contains(fields[1].content.count))
    #expect(der[fields[1].content.lowerBound] < 0x80)
    #expect(der[fields[3].whole] == der[fields[5].whole])
    let name = Array("palbe".utf8)
    #expect(der[fields[3].whole].suffix(name.count) == name[...])
    let times = fields[4].children(der).map { String(decoding: der[$0.content], as: UTF8.self) }
    #expect(times == ["231114221320Z", "231214221320Z"])

    let key = try P256.Signing.PublicKey(derRepresentation: der[fields[6].whole].span)
    let signature = Array(der[outer[2].content].dropFirst())  // the count of unused bits
    let signed = Array(der[outer[0].whole])
    expect(key.isValidSignature(signature.span, for: signed.span))
  }

  @Test("Another seed gives another key and serial; after 2049 the time has four digits of year")
  func variants() throws {
    let one = try #require(make("a"))
    let two = try #require(make("a", seed: 2))
    #expect(one != two)
    let late = try #require(make("a", days: 400 * 365))
    #expect(String(decoding: late, as: Unicode.ASCII.self).contains("2423"))
  }

  @Test("Names that X.520 does not allow, and times that overflow, are refused")
  func refused() {
    #expect(make("") == nil)
    #expect(make(String(repeating: "a", count: 65)) == nil)
    #expect(make(String(repeating: "a", count: 64)) != nil)
    #expect(make("a", days: -1) == nil)
    #expect(make("a", days: .max) == nil)
    #expect(make("a", days: 1, from: .max) == nil)
  }
}
