import PalbeChatCore
import PalbeTestKit
import Testing

@Suite("2.1 padded lengths") struct PaddingTests {
  @Test(
    "2.1 a length tells a size to a sixteenth at best, and costs an eighth at most", arguments: [256, 4_096])
  func leak(grain: Int) {
    let least = Int64(grain)
    var bucket: Int64 = 0
    var buckets = 0
    // An expectation for each of two million lengths would take seconds.
    for count in 0...(least * 600) {
      let padded = Padding.paddedByteCount(for: count, grain: grain)
      let fits = padded >= count && padded >= least && padded.isMultiple(of: least)
      if !fits || padded - count > max(least, count / 8) { Issue.record("\(count) becomes \(padded)") }
      guard padded != bucket else { continue }
      #expect(Padding.paddedByteCount(for: padded, grain: grain) == padded)
      // The sizes that share this length are at least 6.25 % of it.
      #expect(padded > bucket && (padded - bucket) * 16 >= padded, "\(bucket) to \(padded)")
      (bucket, buckets) = (padded, buckets + 1)
    }
    // 600 grains: 16 sizes, and 8 for each doubling after that.
    #expect(buckets < 64)
  }

  @Test("2.1 all messages have one of 56 lengths")
  func messages() {
    let limit = Int64(ContentLimits.plaintextByteCount)
    let lengths = Set((1...limit).map { Padding.paddedByteCount(for: $0, grain: Padding.messageGrain) })
    #expect(lengths.count == 56)
    #expect(lengths.max() == limit)
  }

  struct Golden: Decodable { let messages, attachments: [[Int64]] }

  @Test("2.1 lengths as a second implementation computes them")
  func golden() throws {
    let golden: Golden = try Vectors.goldenJSON("Tests/PalbeChatCoreTests/Vectors/padding.json")
    for pair in golden.messages {
      #expect(Padding.paddedByteCount(for: pair[0], grain: Padding.messageGrain) == pair[1])
    }
    for pair in golden.attachments {
      #expect(Padding.paddedByteCount(for: pair[0], grain: Padding.attachmentGrain) == pair[1])
    }
  }

  @Test("2.1 padding comes off again, whatever the message ends in")
  func pads() {
    for message: [UInt8] in [[], [0], [0x80], [0x80, 0], [1, 0, 0], [UInt8](repeating: 0x80, count: 300)] {
      var padded = message
      Padding.pad(&padded)
      #expect(Padding.messageByteCount(in: padded.span) == message.count)
    }
    #expect(Padding.messageByteCount(in: [UInt8]().span) == nil)
    #expect(Padding.messageByteCount(in: [0, 0].span) == nil)
    #expect(Padding.messageByteCount(in: [0x80, 1].span) == nil)
  }
}
