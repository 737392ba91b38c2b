import PalbeWebServer
import Testing

@Suite("Ranges of bytes (RFC 9110 §14)")
struct RangeTests {
  @Test(
    "Range: one range, to the end, from the end; what need not be understood is the whole",
    arguments: [
      (nil, .whole), ("bytes=0-0", .part(0..<1)), ("bytes=5-", .part(5..<10)), ("bytes=5-99", .part(5..<10)),
      ("bytes=-3", .part(7..<10)), ("bytes=-30", .part(0..<10)), ("bytes=-0", .unsatisfiable),
      ("bytes=10-", .unsatisfiable), ("bytes=10-20", .unsatisfiable), ("Bytes = 1 - 2", .part(1..<3)),
      ("bytes=2-1", .whole), ("bytes=0-1,3-4", .whole), ("lines=0-1", .whole), ("bytes=a-b", .whole),
      ("bytes=", .whole), ("bytes=-", .whole), ("0-1", .whole), ("bytes=1-2-3", .whole),
      ("bytes=99999999999999999999-", .whole), ("bytes=-99999999999999999999", .whole),
    ] as [(String?, HTTPRange)])
  func ranges(_ header: String?, _ expected: HTTPRange) {
    #expect(HTTPRange(header, count: 10) == expected)
  }

  @Test("Nothing of nothing")
  func empty() {
    #expect(HTTPRange("bytes=0-", count: 0) == .unsatisfiable)
    #expect(HTTPRange("bytes=-5", count: 0) == .unsatisfiable)
    #expect(HTTPRange(nil, count: 0) == .whole)
  }

  @Test("Content-Range, and what is none")
  func contentRanges() {
    #expect(HTTPContentRange("bytes 0-99/1234")?.range == 0..<100)
    #expect(HTTPContentRange("bytes 0-99/1234")?.count == 1_234)
    #expect(HTTPContentRange("Bytes 5-5/*")?.range == 5..<6)
    for text in [
      "", "bytes", "bytes */10", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-9", "bytes 0-9/", "bytes -9/10",
      "bytes 0-9/10/11", "bytes 0-99999999999999999999/*", "items 0-9/10", "bytes 0--9/10",
    ] { #expect(HTTPContentRange(text) == nil, "\(text)") }
  }
}
