import PalbeRTP
import PalbeUnits
import Testing

@Suite("Reception and sender statistics")
struct StatisticsTests {
  func at(_ milliseconds: Int) -> Instant { Instant.zero + .milliseconds(milliseconds) }

  func header(_ sequence: Int, timestamp: Int = 0) -> RTPHeader {
    RTPHeader(
      payloadType: PayloadType(96), sequenceNumber: SequenceNumber(0) + sequence,
      timestamp: RTPTimestamp(0) + timestamp, ssrc: SSRC(1))
  }

  @Test("RFC 3550 A.3: loss in an interval and since the beginning, across the wrap")
  func loss() throws {
    var statistics = ReceiverStatistics(ssrc: SSRC(1), clockRate: 90_000)
    #expect(statistics.report(at: at(0)) == nil)
    for sequence in 65_500..<65_600 where sequence % 4 != 0 {
      statistics.update(header(sequence), payloadByteCount: 10, arrival: at(0))
    }
    // 65,500 is a multiple of 4 and was never seen: 99 expected from 65,501 to 65,599, 75 received.
    let first = try unwrapped(statistics.report(at: at(0)))
    #expect(first.cumulativeLost == 24 && first.fractionLost == UInt8(24 * 256 / 99))
    #expect(first.highestSequence == 65_599)
    for sequence in 65_600..<65_700 {
      statistics.update(header(sequence), payloadByteCount: 10, arrival: at(0))
    }
    let second = try unwrapped(statistics.report(at: at(0)))
    #expect(second.cumulativeLost == 24 && second.fractionLost == 0)
    #expect(statistics.packetCount == 175 && statistics.byteCount == 1_750)
    #expect(try unwrapped(statistics.report(at: at(0))).fractionLost == 0)
  }

  @Test("RFC 3550 A.3: duplicates make the loss negative, not the fraction")
  func duplicates() throws {
    var statistics = ReceiverStatistics(ssrc: SSRC(1), clockRate: 90_000)
    for _ in 0..<3 { statistics.update(header(5), payloadByteCount: 1, arrival: at(0)) }
    let report = try unwrapped(statistics.report(at: at(0)))
    #expect(report.cumulativeLost == -2 && report.fractionLost == 0)
  }

  @Test("RFC 3550 A.8: jitter follows the formula in whole sixteenths")
  func jitter() {
    var statistics = ReceiverStatistics(ssrc: SSRC(1), clockRate: 8_000)
    var expected: UInt32 = 0
    var before: Int?
    var random = RandomSource(seed: 3)
    for sequence in 0..<500 {
      let arrival = sequence * 20 + Int.random(in: 0...30, using: &random)
      statistics.update(
        header(sequence, timestamp: sequence * 160), payloadByteCount: 1, arrival: at(arrival))
      let transit = arrival * 8 - sequence * 160
      if let before { expected = expected &+ UInt32(abs(transit - before)) &- ((expected &+ 8) >> 4) }
      before = transit
      #expect(statistics.jitter == expected >> 4)
    }
    #expect(statistics.jitter > 0)
  }

  @Test("RFC 3550 A.1: one number far off is ignored, two in a row are a restart")
  func restart() throws {
    var statistics = ReceiverStatistics(ssrc: SSRC(1), clockRate: 90_000)
    for sequence in 0..<10 { statistics.update(header(sequence), payloadByteCount: 1, arrival: at(0)) }
    statistics.update(header(20_000), payloadByteCount: 1, arrival: at(0))
    #expect(try unwrapped(statistics.report(at: at(0))).highestSequence == 9)
    statistics.update(header(20_001), payloadByteCount: 1, arrival: at(0))
    let report = try unwrapped(statistics.report(at: at(0)))
    #expect(report.highestSequence == 20_001 && report.cumulativeLost == 0)
  }

  @Test("RFC 3550 §6.4.1: LSR and DLSR in a receiver's report give the sender its round trip")
  func roundTrip() throws {
    var sender = SenderStatistics(ssrc: SSRC(1), clockRate: 90_000)
    let start = NTPTime(unixNanoseconds: 1_700_000_000_000_000_000)
    func ntp(_ milliseconds: Int64) -> NTPTime {
      NTPTime(unixNanoseconds: 1_700_000_000_000_000_000 + milliseconds * 1_000_000)
    }
    #expect(sender.report(at: at(0), ntpTime: start) == nil)
    sender.sent(header(1, timestamp: 9_000), payloadByteCount: 100, at: at(0))
    let report = try unwrapped(sender.report(at: at(10), ntpTime: ntp(10)))
    #expect(report.rtpTimestamp == RTPTimestamp(9_900) && report.packetCount == 1 && report.octetCount == 100)
    var receiver = ReceiverStatistics(ssrc: SSRC(1), clockRate: 90_000)
    receiver.update(header(1), payloadByteCount: 100, arrival: at(30))
    receiver.received(senderReport: report, at: at(30))
    let block = try unwrapped(receiver.report(at: at(530)))
    #expect(block.delaySinceLastSenderReport == 1 << 15)
    sender.received(block, ntpTime: ntp(10 + 20 + 500 + 25))
    let roundTrip = try #require(sender.roundTrip)
    #expect(abs(roundTrip.inMilliseconds - 45) < 0.1)
    sender.received(
      ReportBlock(
        ssrc: SSRC(2), fractionLost: 9, cumulativeLost: 9, highestSequence: 0, jitter: 9, lastSenderReport: 1,
        delaySinceLastSenderReport: 0), ntpTime: ntp(0))
    #expect(sender.fractionLost == 0)
  }
}
