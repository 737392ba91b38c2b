import PalbeLiveKit
import PalbeRTP
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

struct ReportTests {
  @Test("RFC 3550 §6.4.2: the publisher gets receiver reports with LSR and DLSR")
  func receiverReports() throws {
    let world = try World()
    let (alice, _) = try call(world)
    try ForwardingTests.send(5, from: alice, track: 1, in: world)
    let report = SenderReport(
      ssrc: alice.tracks[1].ssrc, ntpTime: NTPTime(rawValue: 0x1234_5678_9abc_def0),
      rtpTimestamp: RTPTimestamp(alice.tracks[1].timestamp), packetCount: 10, octetCount: 6_000)
    world.send([try alice.controlPacket([.senderReport(report)])], from: alice)
    world.run(for: .seconds(2))
    let blocks = alice.control.flatMap { packet -> [ReportBlock] in
      if case .receiverReport(let report) = packet { report.blocks } else { [] }
    }
    let block = try #require(blocks.last { $0.ssrc == alice.tracks[1].ssrc })
    #expect(block.lastSenderReport == 0x5678_9abc)
    #expect(block.delaySinceLastSenderReport > 0)
    #expect(block.cumulativeLost == 0)
    #expect(block.highestSequence == 109)
  }

  @Test("Sender reports to subscribers are on the publisher's clock, with the subscriber's timestamps")
  func senderReports() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    try ForwardingTests.send(5, from: alice, track: 1, in: world)
    let ntpTime = NTPTime(rawValue: 3_900_000_000 << 32)
    let report = SenderReport(
      ssrc: alice.tracks[1].ssrc, ntpTime: ntpTime, rtpTimestamp: RTPTimestamp(alice.tracks[1].timestamp),
      packetCount: 10, octetCount: 6_000)
    let sentAt = world.now
    world.send([try alice.controlPacket([.senderReport(report)])], from: alice)
    let isThere = world.run(for: .milliseconds(100)) {
      bob.control.contains { if case .senderReport = $0 { true } else { false } }
    }
    #expect(isThere, "the first one goes out at once")
    _ = sentAt
    let mapped = try #require(
      bob.control.compactMap { packet -> SenderReport? in
        if case .senderReport(let report) = packet { report } else { nil }
      }.last)
    #expect(mapped.ssrc == bob.answer?.media[1].sources.first?.ssrc)
    #expect(mapped.ntpTime.rawValue >> 32 == 3_900_000_000)
    // Timestamps pass unchanged while there is one source, so the two clocks agree.
    let seconds = Double(mapped.ntpTime.rawValue & 0xffff_ffff) / 4_294_967_296
    let ticks = Double(mapped.rtpTimestamp.rawValue &- alice.tracks[1].timestamp)
    #expect(abs(ticks - seconds * 90_000) <= 2)
    #expect(mapped.packetCount == 10)
    let names = bob.control.flatMap { packet -> [SourceDescription] in
      if case .sourceDescription(let chunks) = packet { chunks } else { [] }
    }
    #expect(names.contains { $0.canonicalName == bob.join?.otherParticipants.first?.sid })
  }

  @Test("Transport-wide feedback reaches the publisher ten times a second")
  func transportFeedback() throws {
    let world = try World()
    let (alice, _) = try call(world)
    try ForwardingTests.send(30, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(200))
    let feedback = alice.control.compactMap { packet -> TransportFeedback? in
      if case .transportFeedback(let feedback) = packet { feedback } else { nil }
    }
    #expect(feedback.flatMap(\.arrivals).map(\.sequence) == Array(0..<60))
    #expect((8...12).contains(feedback.count))
  }

  @Test("RFC 3550 §6.6: after BYE a source's missing packets are not asked for any more")
  func goodbye() throws {
    let world = try World()
    let (alice, _) = try call(world)
    var frames: [[UInt8]] = []
    for number in 0..<3 { frames += try alice.videoFrame(1, isKeyFrame: number == 0) }
    frames.remove(at: 2)
    world.send(frames, from: alice)
    world.send([try alice.controlPacket([.goodbye(Goodbye(sources: [alice.tracks[1].ssrc]))])], from: alice)
    world.run(for: .milliseconds(500))
    #expect(!alice.control.contains { if case .nack = $0 { true } else { false } })
  }
}
