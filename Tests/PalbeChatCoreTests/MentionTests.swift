import PalbeChatCore
import PalbeUnits
import Testing

@Suite("Mentions") struct MentionTests {
  let user: UserID = {
    var samples = Samples(seed: 9)
    return samples.id()
  }()

  func standing(_ ranges: [(Int, Int)], in text: String) -> [Int] {
    TextRules.standing(ranges.map { Mention(start: $0.0, length: $0.1, user: user) }, in: text)
  }

  @Test("S0-75 section 3 #22 offsets are UTF-16 units: an emoji beyond the BMP shifts by two")
  func units() throws {
    #expect(standing([(0, 4)], in: "@ada") == [0])
    // By Characters and by scalars it would begin at 2.
    #expect(standing([(3, 4), (2, 5)], in: "😀 @ada") == [0])
    // 👩‍👩‍👧: three pairs and two joiners; 🇨🇭: two pairs; é: a letter and its mark.
    #expect(standing([(8, 4)], in: "👩‍👩‍👧@ada") == [0])
    #expect(standing([(4, 4)], in: "🇨🇭@ada") == [0])
    #expect(standing([(2, 4)], in: "e\u{301}@ada") == [0])
    // A part of a grapheme is no pair that is cut.
    #expect(standing([(0, 2), (2, 1), (3, 2)], in: "👩‍👩‍👧") == [0, 1, 2])
  }

  @Test("S0-77 ranges that cut a surrogate pair are dropped")
  func surrogates() {
    #expect(standing([(0, 1), (1, 1), (1, 2), (0, 3), (3, 1), (2, 1)], in: "😀b😀") == [3])
    #expect(standing([(0, 2), (2, 1), (3, 2)], in: "😀b😀") == [0, 1, 2])
  }

  @Test("S0-77 ranges out of bounds, empty, negative or past every number are dropped")
  func bounds() {
    let text = "hello"
    #expect(
      standing(
        [
          (0, 6), (5, 1), (6, 1), (-1, 2), (1, -1), (2, 0), (5, 0), (.max, 1), (1, .max), (.min, 1),
          (.max, .max),
          (0, .min), (.min, .min), (0, 5),
        ], in: text) == [13])
    #expect(standing([(0, 1)], in: "") == [])
    #expect(standing([], in: text) == [])
  }

  @Test("S0-77 of two that overlap the first stands")
  func overlaps() {
    #expect(standing([(0, 3), (2, 2), (3, 2), (0, 3), (1, 1)], in: "hello") == [0, 2])
    // One that does not stand takes no room.
    #expect(standing([(0, 9), (0, 5)], in: "hello") == [1])
  }

  @Test("S0-77 who sends a mention that cannot stand is told which")
  func sending() throws {
    func send(_ ranges: [(Int, Int)]) throws {
      let mentions = ranges.map { Mention(start: $0.0, length: $0.1, user: user) }
      _ = try Envelope.text(TextBody("😀 hello", mentions: mentions)).encoded()
    }
    try send([(0, 2), (3, 5)])
    #expect(throws: ContentError.mention(index: 0)) { try send([(1, 1)]) }
    #expect(throws: ContentError.mention(index: 1)) { try send([(3, 5), (3, 5)]) }
    #expect(throws: ContentError.mention(index: 2)) { try send([(0, 2), (3, 5), (8, 1)]) }
  }

  @Test("S0-78 no mentions are the same bytes as a text alone")
  func noMentions() throws {
    let plain = try Envelope.text(TextBody("hello")).encoded()
    #expect(try Envelope.text(TextBody("hello", mentions: [])).encoded() == plain)
  }

  @Test("S0-77 against every range of short texts, a second reading of the rule agrees")
  func exhaustive() {
    for text in ["", "a", "😀", "a😀", "😀a", "😀😀", "e\u{301}😀b"] {
      let units = Array(text.utf16)
      for start in -1...units.count + 1 {
        for length in -1...units.count + 2 {
          var stands = start >= 0 && length > 0 && start + length <= units.count
          if stands { stands = String(validating: units[start..<start + length], as: UTF16.self) != nil }
          #expect((standing([(start, length)], in: text) == [0]) == stands, "\(text) \(start)+\(length)")
        }
      }
    }
  }
}
