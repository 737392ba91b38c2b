import PalbeRTP
import PalbeSDP
import PalbeUnits
import Testing

@testable import PalbeSFUCore

struct StreamRewriterTests {
  /// A packet of one byte of VP8 behind its descriptor.
  private func packet(
    ssrc: UInt32, sequence: UInt64, timestamp: UInt32, pictureID: UInt16, tl0: UInt8
  ) -> MediaPacket {
    let header = RTPHeader(
      payloadType: PayloadType(96), sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: sequence)),
      timestamp: RTPTimestamp(timestamp), ssrc: SSRC(ssrc))
    let bytes = [UInt8](capacity: 64) { output in
      RTPPacketWriter.writeHeader(header, into: &output)
      VP8PayloadDescriptor(
        startsPartition: true, pictureID: pictureID, tl0PictureIndex: tl0,
        temporalLayer: VP8PayloadDescriptor.TemporalLayer(index: 0, isSync: false)
      ).write(into: &output)
      output.append(0x10)
    }
    var packet = MediaPacket()
    packet.load(bytes.span)
    _ = packet.parse(RTPExtensionIDs())
    _ = packet.parsePayload(
      of: PublishedTrack.Section(
        mid: "0", media: .vp8, codec: RTPCodec(96, "VP8", clockRate: 90_000), sendsNACKs: true))
    packet.setSequence(ExtendedSequenceNumber(sequence))
    return packet
  }

  @Test("RFC 7741: numbers, timestamps and both VP8 counters go on without a jump when the source changes")
  func switching() throws {
    var rewriter = StreamRewriter(clockRate: 90_000, firstSequence: 0x7fff)
    let start = Instant(nanoseconds: 1_000_000_000)
    let first = packet(ssrc: 1, sequence: 70_000, timestamp: 0xffff_ff00, pictureID: 0x7fff, tl0: 255)
    rewriter.start(first, at: start)
    let oneFields = rewriter.fields(of: first, at: start)
    let one = try #require(oneFields)
    #expect(one.sequenceNumber == SequenceNumber(0x7fff))
    #expect(one.pictureID & 0x7fff == 0x7fff)
    // Another source, 100 ms later.
    let other = packet(ssrc: 2, sequence: 5, timestamp: 77, pictureID: 9, tl0: 3)
    rewriter.start(other, at: start + .milliseconds(100))
    let twoFields = rewriter.fields(of: other, at: start + .milliseconds(100))
    let two = try #require(twoFields)
    #expect(two.sequenceNumber == SequenceNumber(0x8000))
    #expect(two.timestamp.rawValue &- one.timestamp.rawValue == 9_000)
    #expect(two.pictureID & 0x7fff == 0)
    #expect(two.tl0PictureIndex == 0)
    #expect(rewriter.source == SSRC(2))
  }

  @Test("Within a source gaps stay gaps, and packets from before the start are not let through")
  func gaps() throws {
    var rewriter = StreamRewriter(clockRate: 90_000, firstSequence: 10)
    let now = Instant.zero
    let first = packet(ssrc: 1, sequence: 65_536, timestamp: 0, pictureID: 1, tl0: 1)
    rewriter.start(first, at: now)
    let firstFields = rewriter.fields(of: first, at: now)
    #expect(firstFields?.sequenceNumber == SequenceNumber(10))
    let later = packet(ssrc: 1, sequence: 65_539, timestamp: 0, pictureID: 2, tl0: 1)
    let laterFields = rewriter.fields(of: later, at: now)
    #expect(laterFields?.sequenceNumber == SequenceNumber(13))
    let late = packet(ssrc: 1, sequence: 65_537, timestamp: 0, pictureID: 1, tl0: 1)
    let lateFields = rewriter.fields(of: late, at: now)
    #expect(lateFields?.sequenceNumber == SequenceNumber(11))
    let early = packet(ssrc: 1, sequence: 65_535, timestamp: 0, pictureID: 0, tl0: 1)
    let earlyFields = rewriter.fields(of: early, at: now)
    #expect(earlyFields == nil)
    #expect(rewriter.follows(ExtendedSequenceNumber(65_600)))
    #expect(!rewriter.follows(ExtendedSequenceNumber(75_600)))
  }

  @Test("A source that starts over behind a jump goes on right after what was sent")
  func restart() throws {
    var rewriter = StreamRewriter(clockRate: 48_000, firstSequence: 10)
    let first = packet(ssrc: 1, sequence: 65_536, timestamp: 1_000, pictureID: 1, tl0: 1)
    rewriter.start(first, at: .zero)
    _ = rewriter.fields(of: first, at: .zero)
    let again = packet(ssrc: 1, sequence: 75_536, timestamp: 5_000, pictureID: 40, tl0: 9)
    rewriter.start(again, at: .zero)
    let rewritten = rewriter.fields(of: again, at: .zero)
    let fields = try #require(rewritten)
    #expect(fields.sequenceNumber == SequenceNumber(11))
    #expect(fields.timestamp == RTPTimestamp(5_000))
    #expect(fields.pictureID & 0x7fff == 2)
  }
}
