import PalbeUnits
import Testing

struct SequenceTests {
  @Test("RFC 1982: order is within half the circle")
  func serialOrder() {
    #expect(SequenceNumber(0).isNewer(than: SequenceNumber(65_535)))
    #expect(!SequenceNumber(65_535).isNewer(than: SequenceNumber(0)))
    #expect(!SequenceNumber(5).isNewer(than: SequenceNumber(5)))
    #expect(SequenceNumber(2).distance(from: SequenceNumber(65_534)) == 4)
    #expect(SequenceNumber(65_534).distance(from: SequenceNumber(2)) == -4)
    #expect(SequenceNumber(0x8000).distance(from: SequenceNumber(0)) == -32_768)
    #expect(SequenceNumber(65_535) + 2 == SequenceNumber(1))
    #expect(SequenceNumber(1) + -2 == SequenceNumber(65_535))
  }

  @Test("RFC 3711 §3.3.1: numbers unwrap over the roll-over, late ones to the round before")
  func unwrap() {
    var unwrapper = SequenceUnwrapper()
    let first = unwrapper.unwrap(SequenceNumber(65_530))
    #expect(first.rollover == 1)
    var expected = first.rawValue
    for step in 1...200_000 {
      expected += 1
      #expect(unwrapper.unwrap(SequenceNumber(65_530) + step).rawValue == expected)
    }
    let late = unwrapper.unwrap(SequenceNumber(65_530) + 199_000)
    #expect(late.rawValue == first.rawValue + 199_000)
    #expect(unwrapper.unwrap(SequenceNumber(65_530) + 200_001).rawValue == expected + 1)
  }

  @Test("packets older than the first one do not fall below zero")
  func olderThanFirst() {
    var unwrapper = SequenceUnwrapper()
    let first = unwrapper.unwrap(SequenceNumber(2))
    let older = unwrapper.unwrap(SequenceNumber(65_533))
    #expect(older < first)
    #expect(first.rawValue - older.rawValue == 5)
    #expect(older.truncated == SequenceNumber(65_533))
  }

  @Test("RTP timestamps wrap at 32 bits, payload types at 7")
  func timestamps() {
    #expect(RTPTimestamp(0xffff_ffff) + 2 == RTPTimestamp(1))
    #expect(RTPTimestamp(1).distance(from: RTPTimestamp(0xffff_ffff)) == 2)
    #expect(RTPTimestamp(0xffff_ffff).distance(from: RTPTimestamp(1)) == -2)
    #expect(PayloadType(0xe0).rawValue == 0x60)
  }
}
