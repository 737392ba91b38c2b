import PalbeRTP
import PalbeUnits
import PalbeWire
import Testing

@Suite("Transport-wide feedback")
struct TransportFeedbackTests {
  func feedback(base: UInt16 = 65_530, reference: Int32 = -5) -> TransportFeedback {
    TransportFeedback(
      sender: SSRC(1), media: SSRC(2), baseSequence: base, referenceTime: reference, feedbackCount: 200)
  }

  func roundTrip(_ feedback: TransportFeedback) throws -> TransportFeedback? {
    let packets = try read(RTCPPacket.compound([.transportFeedback(feedback)]))
    guard case .transportFeedback(let result) = packets.first, packets.count == 1 else { return nil }
    return result
  }

  @Test("transport-wide-cc-01 §3.1: run, one-bit and two-bit chunks as bytes")
  func golden() throws {
    var some = feedback(base: 5, reference: 3)
    // 5 and 6 small, 7 lost, 8 late (a negative delta), 9 small.
    for (number, ticks) in [(5, 4), (6, 8), (8, 2), (9, 3)] as [(UInt16, Int32)] {
      #expect(some.append(number, ticks: ticks) == true)
    }
    #expect(
      Hex.encode(RTCPPacket.compound([.transportFeedback(some)]))
        == hex("8fcd0006 00000001 00000002 0005 0005 000003 c8 d490 04 04 fffa 01 00").hexText)
    #expect(try roundTrip(some) == some)
    var run = feedback(base: 0, reference: 3)
    for number in 0..<20 as Range<UInt16> { #expect(run.append(number, ticks: Int32(number)) == true) }
    #expect(Array(RTCPPacket.compound([.transportFeedback(run)])[20..<22]) == hex("2014"))
    var bits = feedback(base: 0, reference: 3)
    for number in stride(from: 0 as UInt16, to: 28, by: 2) {
      #expect(bits.append(number, ticks: Int32(number)) == true)
    }
    #expect(Array(RTCPPacket.compound([.transportFeedback(bits)])[20..<24]) == hex("aaaa aaaa"))
  }

  @Test("Random arrivals, losses and reordering come back, across the wrap of the number", arguments: 0..<200)
  func random(seed: Int) throws {
    var random = RandomSource(seed: UInt64(seed))
    var original = feedback(base: UInt16(truncatingIfNeeded: random.next()))
    var ticks: Int32 = 0
    let lossIn = Int.random(in: 1...6, using: &random)
    for step in 0..<Int.random(in: 1...600, using: &random)
    where Int.random(in: 0..<lossIn, using: &random) == 0 {
      ticks += Int32.random(
        in: Int.random(in: 0...9, using: &random) == 0 ? -900...30_000 : 0...255, using: &random)
      #expect(original.append(original.baseSequence &+ UInt16(step), ticks: ticks) == true)
    }
    #expect(try roundTrip(original) == original)
  }

  @Test("A delta beyond 16 bits, an earlier number and one too far are not taken")
  func refusals() {
    var some = feedback(base: 100)
    #expect(some.append(101, ticks: 0) == true)
    #expect(!some.append(101, ticks: 1) && !some.append(100, ticks: 1) && !some.append(102, ticks: 40_000))
    #expect(some.append(100 + 0x8000, ticks: 1) == false)
    #expect(some.statusCount == 2 && some.arrivals.count == 1)
    #expect(some.append(102, ticks: .min) == false)
  }

  @Test("Every prefix is refused")
  func truncation() {
    var some = feedback()
    for number in 0..<30 as Range<UInt16> {
      _ = some.append(65_530 &+ number * 3, ticks: Int32(number) * 300)
    }
    let bytes = RTCPPacket.compound([.transportFeedback(some)])
    for count in 1..<bytes.count { #expect(throws: WireError.self) { try read(Array(bytes[..<count])) } }
    // The same with a header that agrees with the shorter length.
    for words in 4..<bytes.count / 4 {
      var cut = Array(bytes[..<(4 * words)])
      cut[3] = UInt8(words - 1)
      #expect(throws: WireError.self) { try read(cut) }
    }
  }

  @Test("A claim of 65,535 arrivals in a short packet is refused, one of losses costs nothing")
  func claims() throws {
    let arrived = hex("8fcd0005 00000001 00000002 0000 ffff 000003 00 3fff 3fff")
    #expect(throws: WireError.self) { try read(arrived) }
    let lost = hex("8fcd0009 00000001 00000002 0000 ffff 000003 00") + [UInt8](repeating: 0x1f, count: 20)
    guard case .transportFeedback(let feedback) = try read(lost).first else {
      Issue.record("no feedback")
      return
    }
    #expect(feedback.arrivals.isEmpty && feedback.statusCount == 65_535)
  }

  @Test("A run of nothing and the reserved symbol are refused")
  func malformed() {
    #expect(throws: WireError.invalid(field: "TWCC run length", value: 0)) {
      try read(hex("8fcd0005 00000001 00000002 0000 0002 000003 00 2000 0000"))
    }
    for chunk in ["6002", "fc00"] {
      #expect(throws: WireError.invalid(field: "TWCC packet status", value: 3)) {
        try read(hex("8fcd0005 00000001 00000002 0000 0002 000003 00 \(chunk) 0000"))
      }
    }
  }

  @Test("Arrival times are the reference time and quarter milliseconds")
  func times() {
    var some = feedback(reference: 10)
    #expect(some.append(65_530, ticks: 4) == true)
    #expect(some.arrivalTime(of: some.arrivals[0]) == Instant.zero + .milliseconds(641))
  }
}

extension [UInt8] {
  var hexText: String { Hex.encode(self) }
}
