import PalbeFrameEncryption
import PalbeTestKit
import PalbeWire
import Testing

@Suite("SFrame header")
struct SFrameHeaderTests {
  struct File: Decodable {
    struct Case: Decodable {
      let kid: UInt64
      let ctr: UInt64
      let encoded: String
    }
    let header: [Case]
  }

  @Test(
    "RFC 9605 C.1: all 289 published headers encode and decode",
    .enabled(if: Vectors.has("sframe/test-vectors.json"), "sframe/test-vectors.json absent: skipped"))
  func vectors() throws {
    let cases = try Vectors.load("sframe/test-vectors.json", as: File.self).header
    #expect(cases.count == 289)
    for item in cases {
      let header = SFrameHeader(keyID: item.kid, counter: item.ctr)
      #expect(Hex.encode(header.encoded) == item.encoded)
      #expect(header.byteCount == item.encoded.utf8.count / 2)
      let bytes = hex(item.encoded)
      let parsed = try SFrameHeader.parse(bytes.span)
      #expect(parsed == header)
    }
  }

  static let edges: [UInt64] = [0, 1, 7, 8, 255, 256, 65_535, 65_536, 1 << 24, 1 << 32, 1 << 56, .max]

  @Test("RFC 9605 §4.3: values at every length round-trip, and no prefix of a header parses")
  func roundTripAndTruncation() throws {
    for keyID in Self.edges {
      for counter in Self.edges {
        let header = SFrameHeader(keyID: keyID, counter: counter)
        let bytes = header.encoded
        let parsed = try SFrameHeader.parse((bytes + [9]).span)
        #expect(parsed == header)
        for count in 0..<bytes.count {
          #expect(throws: WireError.self) { try SFrameHeader.parse(bytes.span.extracting(first: count)) }
        }
      }
    }
  }

  @Test(
    "RFC 9605 §4.3: a value that could be shorter is refused",
    arguments: ["8007", "0807", "900008", "0900ff", "f000000000000000ff", "0f00ffffffffffffff"])
  func notMinimal(_ text: String) {
    #expect(throws: WireError.self) { try SFrameHeader.parse(hex(text).span) }
  }

  @Test("RFC 9605 §4.3: the layout, bit by bit")
  func layout() {
    #expect(Hex.encode(SFrameHeader(keyID: 5, counter: 6).encoded) == "56")
    #expect(Hex.encode(SFrameHeader(keyID: 8, counter: 6).encoded) == "8608")
    #expect(Hex.encode(SFrameHeader(keyID: 5, counter: 0x0102).encoded) == "590102")
    #expect(Hex.encode(SFrameHeader(keyID: 0x123, counter: 0x4567).encoded) == "9901234567")
  }
}
