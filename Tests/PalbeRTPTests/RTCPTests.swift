import PalbeRTP
import PalbeUnits
import PalbeWire
import Testing

@Suite("RTCP")
struct RTCPTests {
  static let block = ReportBlock(
    ssrc: SSRC(1), fractionLost: 64, cumulativeLost: -3, highestSequence: 0x0001_0005, jitter: 77,
    lastSenderReport: 0x1234_5678, delaySinceLastSenderReport: 0x10000)

  static let every: [RTCPPacket] = [
    .senderReport(
      SenderReport(
        ssrc: SSRC(0xaabb_ccdd), ntpTime: NTPTime(rawValue: 0x0102_0304_0506_0708),
        rtpTimestamp: RTPTimestamp(9),
        packetCount: 10, octetCount: 11, blocks: [block, block])),
    .receiverReport(ReceiverReport(ssrc: SSRC(2), blocks: [block])),
    .receiverReport(ReceiverReport(ssrc: SSRC(2), blocks: [])),
    .sourceDescription([
      SourceDescription(ssrc: SSRC(3), canonicalName: "abc"),
      SourceDescription(ssrc: SSRC(4), canonicalName: "äöü"),
      SourceDescription(ssrc: SSRC(5), canonicalName: nil),
    ]),
    .goodbye(Goodbye(sources: [SSRC(6), SSRC(7)], reason: "done")),
    .goodbye(Goodbye(sources: [])),
    .nack(
      GenericNACK(
        sender: SSRC(8), media: SSRC(9),
        sequenceNumbers: [65_534, 65_535, 0, 14, 15, 100].map { SequenceNumber($0) })),
    .pictureLossIndication(sender: SSRC(10), media: SSRC(11)),
    .fullIntraRequest(FullIntraRequest(sender: SSRC(12), entries: [.init(ssrc: SSRC(13), sequence: 14)])),
    .receiverEstimate(
      ReceiverEstimate(sender: SSRC(15), rate: .kilobitsPerSecond(256), sources: [SSRC(16), SSRC(17)])),
  ]

  @Test("RFC 3550 §6.1: every packet goes through a compound and back")
  func roundTrip() throws {
    #expect(try read(RTCPPacket.compound(Self.every)) == Self.every)
    for packet in Self.every {
      let bytes = RTCPPacket.compound([packet])
      #expect(bytes.count.isMultiple(of: 4) && isRTCP(bytes.span))
      #expect(try read(bytes) == [packet])
    }
  }

  @Test("RFC 3550 §6.4: golden bytes of each type")
  func golden() {
    let compound: [(RTCPPacket, String)] = [
      (
        .receiverReport(ReceiverReport(ssrc: SSRC(2), blocks: [Self.block])),
        "81c90007 00000002 00000001 40fffffd 00010005 0000004d 12345678 00010000"
      ),
      (
        .sourceDescription([SourceDescription(ssrc: SSRC(3), canonicalName: "abc")]),
        "81ca0003 00000003 01036162 63000000"
      ),
      (.goodbye(Goodbye(sources: [SSRC(6)], reason: "ok")), "81cb0002 00000006 026f6b00"),
      (Self.every[6], "81cd0005 00000008 00000009 fffe8003 000f0000 00640000"),
      (Self.every[7], "81ce0002 0000000a 0000000b"),
      (Self.every[8], "84ce0004 0000000c 00000000 0000000d 0e000000"),
      (Self.every[9], "8fce0006 0000000f 00000000 52454d42 0203e800 00000010 00000011"),
    ]
    for (packet, bytes) in compound {
      #expect(Hex.encode(RTCPPacket.compound([packet])) == bytes.filter { $0 != " " })
    }
  }

  @Test("Every prefix of every packet is refused, or is a whole packet")
  func truncation() {
    for packet in Self.every {
      let bytes = RTCPPacket.compound([packet])
      for count in 1..<bytes.count {
        #expect(throws: WireError.self) { try read(Array(bytes[..<count])) }
      }
    }
  }

  @Test("A body shorter than its count says is refused, and the walk goes on behind it")
  func shortBody() throws {
    // A receiver report that claims 31 blocks and has none, a PLI of one word, then a whole PLI.
    let bytes = hex("9fc90001 00000002 81ce0001 00000003 81ce0002 0000000a 0000000b")
    var reader = RTCPReader(bytes.span)
    #expect(throws: WireError.truncated(needed: 744, have: 0)) { try reader.next() }
    #expect(throws: WireError.truncated(needed: 4, have: 0)) { try reader.next() }
    #expect(try reader.next() == .pictureLossIndication(sender: SSRC(10), media: SSRC(11)))
    #expect(try reader.next() == nil)
  }

  @Test("RFC 3550 §6.4.1: padding is taken off; padding longer than the packet is refused")
  func padding() throws {
    #expect(
      try read(hex("a1ce0003 0000000a 0000000b 00000004"))
        == [.pictureLossIndication(sender: SSRC(10), media: SSRC(11))])
    #expect(throws: WireError.self) { try read(hex("a1ce0003 0000000a 0000000b 00000011")) }
    #expect(throws: WireError.self) { try read(hex("a1ce0003 0000000a 0000000b 00000000")) }
  }

  @Test("Wrong version ends the walk; unknown types and formats are named")
  func unknown() throws {
    #expect(throws: WireError.invalid(field: "RTCP version", value: 1)) { try read(hex("41ce0002")) }
    #expect(
      try read(hex("80cc0000 80cf0000 82cd0002 0000000000000000 8fce0003 00000000 00000000 41424344"))
        == [
          .unknown(packetType: 204, format: 0), .unknown(packetType: 207, format: 0),
          .unknown(packetType: 205, format: 2), .unknown(packetType: 206, format: 15),
        ])
  }

  @Test("RFC 3550 §6.5: items other than CNAME are skipped, a chunk without its end is refused")
  func sourceDescription() throws {
    #expect(
      try read(hex("81ca0004 00000003 0201780101790000 00000000"))
        == [.sourceDescription([SourceDescription(ssrc: SSRC(3), canonicalName: "y")])])
    #expect(throws: WireError.self) { try read(hex("81ca0002 00000003 01026162")) }
  }

  @Test("RFC 4585 §6.2.1: a mask covers sixteen numbers behind its first, round the circle")
  func nackItems() {
    let numbers = (65_530...65_535).map { SequenceNumber($0) } + (0...20).map { SequenceNumber($0) }
    let nack = GenericNACK(sender: SSRC(1), media: SSRC(2), sequenceNumbers: numbers + [SequenceNumber(20)])
    #expect(nack.items.count == 2)
    #expect(nack.sequenceNumbers == numbers)
  }

  @Test(
    "draft-alvestrand-rmcat-remb-03: the rate keeps 18 significant bits, and a huge one does not overflow")
  func estimate() throws {
    let fast = ReceiverEstimate(sender: SSRC(1), rate: DataRate(bitsPerSecond: 1 << 30 + 1), sources: [])
    let read = try read(RTCPPacket.compound([.receiverEstimate(fast)]))
    #expect(
      read == [
        .receiverEstimate(
          ReceiverEstimate(sender: SSRC(1), rate: DataRate(bitsPerSecond: 1 << 30), sources: []))
      ])
    let huge = try PalbeRTPTests.read(hex("8fce0004 00000001 00000000 52454d42 00ffffff"))
    guard case .receiverEstimate(let estimate) = huge[0] else {
      Issue.record("no estimate")
      return
    }
    #expect(estimate.rate.bitsPerSecond == 1 << 44)
  }

  @Test("Lists beyond what the format counts are cut, texts between characters")
  func limits() throws {
    let blocks = [ReportBlock](repeating: Self.block, count: 40)
    let report = RTCPPacket.receiverReport(ReceiverReport(ssrc: SSRC(1), blocks: blocks))
    let bye = RTCPPacket.goodbye(Goodbye(sources: [SSRC(1)], reason: String(repeating: "ä", count: 200)))
    let packets = try read(RTCPPacket.compound([report, bye]))
    #expect(packets[0] == .receiverReport(ReceiverReport(ssrc: SSRC(1), blocks: Array(blocks.prefix(31)))))
    #expect(packets[1] == .goodbye(Goodbye(sources: [SSRC(1)], reason: String(repeating: "ä", count: 127))))
  }
}
