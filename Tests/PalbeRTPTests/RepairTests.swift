import PalbeRTP
import PalbeUnits
import PalbeWire
import Testing

@Suite("Repairs: NACK, cache, RTX")
struct RepairTests {
  func at(_ milliseconds: Int) -> Instant { Instant.zero + .milliseconds(milliseconds) }

  func numbers(_ values: Int...) -> [SequenceNumber] { values.map { SequenceNumber(UInt16($0)) } }

  @Test("RFC 4585 §6.2.1: a gap is asked for after the reorder delay, then once a round trip, then given up")
  func asks() {
    var configuration = NackTracker.Configuration()
    configuration.maximumTries = 3
    var tracker = NackTracker(configuration: configuration)
    #expect(tracker.received(ExtendedSequenceNumber(1_000), at: at(0)) == .new)
    #expect(tracker.nextDeadline == nil)
    #expect(tracker.received(ExtendedSequenceNumber(1_004), at: at(0)) == .new)
    #expect(tracker.nextDeadline == at(5))
    #expect(tracker.poll(at: at(4), roundTrip: .milliseconds(50)).isEmpty)
    #expect(tracker.received(ExtendedSequenceNumber(1_002), at: at(4)) == .recovered)
    #expect(tracker.received(ExtendedSequenceNumber(1_002), at: at(4)) == .duplicate)
    #expect(tracker.poll(at: at(5), roundTrip: .milliseconds(50)) == numbers(1_001, 1_003))
    #expect(tracker.poll(at: at(54), roundTrip: .milliseconds(50)).isEmpty)
    #expect(tracker.poll(at: at(55), roundTrip: .milliseconds(50)) == numbers(1_001, 1_003))
    #expect(tracker.received(ExtendedSequenceNumber(1_003), at: at(56)) == .recovered)
    #expect(tracker.recoveredCount == 1)
    #expect(tracker.poll(at: at(105), roundTrip: .milliseconds(50)) == numbers(1_001))
    #expect(tracker.poll(at: at(155), roundTrip: .milliseconds(50)).isEmpty)
    #expect(tracker.givenUpCount == 1 && tracker.missingCount == 0 && tracker.nextDeadline == nil)
    #expect(tracker.received(ExtendedSequenceNumber(1_001), at: at(156)) == .duplicate)
  }

  @Test("A packet is given up after its age, and when its frame is not wanted any more")
  func ages() {
    var tracker = NackTracker()
    _ = tracker.received(ExtendedSequenceNumber(10), at: at(0))
    _ = tracker.received(ExtendedSequenceNumber(13), at: at(0))
    _ = tracker.received(ExtendedSequenceNumber(15), at: at(900))
    tracker.forget(through: ExtendedSequenceNumber(11))
    #expect(tracker.missingCount == 2)
    #expect(tracker.poll(at: at(1_000), roundTrip: .milliseconds(10)) == numbers(14))
    #expect(tracker.givenUpCount == 2)
  }

  @Test("At most `capacity` packets are missing; a larger jump gives all up")
  func bounded() {
    var configuration = NackTracker.Configuration()
    configuration.capacity = 100
    var tracker = NackTracker(configuration: configuration)
    for step in 0..<300 { _ = tracker.received(ExtendedSequenceNumber(UInt64(step) * 2), at: at(step)) }
    #expect(tracker.missingCount == 100 && tracker.givenUpCount == 199)
    _ = tracker.received(ExtendedSequenceNumber(1 << 40), at: at(300))
    #expect(tracker.missingCount == 0)
  }

  func bytes(of number: SequenceNumber, in cache: borrowing RetransmissionCache) -> [UInt8]? {
    guard let found = cache.lookup(number) else { return nil }
    return [UInt8](found)
  }

  @Test("A cache without room keeps nothing and answers nothing")
  func noRoom() {
    var cache = RetransmissionCache()
    let packet: [UInt8] = [1, 2, 3]
    #expect(cache.store(SequenceNumber(7), packet.span) == false)
    #expect(bytes(of: SequenceNumber(7), in: cache) == nil)
    let isClaimed = cache.claimRepair(SequenceNumber(7), at: .zero, minimumInterval: .zero)
    #expect(!isClaimed)
  }

  @Test("The cache gives back what was stored, and forgets it one capacity later")
  func cache() {
    var cache = RetransmissionCache(capacity: 100)
    #expect(cache.capacity == 128)
    for number in 0..<200 {
      let bytes = [UInt8](repeating: UInt8(number), count: 1_000 + number)
      #expect(cache.store(SequenceNumber(65_500) + number, bytes.span) == true)
    }
    for number in 0..<200 {
      let found = bytes(of: SequenceNumber(65_500) + number, in: cache)
      #expect(found == (number < 72 ? nil : [UInt8](repeating: UInt8(number), count: 1_000 + number)))
    }
    #expect(bytes(of: SequenceNumber(5_000), in: cache) == nil)
    #expect(cache.store(SequenceNumber(65_500) + 199, [UInt8](repeating: 0, count: 1_501).span) == false)
    #expect(bytes(of: SequenceNumber(65_500) + 199, in: cache) == nil)
    #expect(cache.store(SequenceNumber(1), [UInt8]().span) == false)
  }

  @Test("Within its limit of bytes the cache keeps the newest packets whole; it grows no further")
  func byteLimit() {
    var cache = RetransmissionCache(capacity: 64, byteLimit: 8_000)
    var sizes: [Int] = []
    for number in 0..<1_000 {
      // Long ones, then short ones, then long ones again.
      let size = number / 200 % 2 == 0 ? 1_200 + number % 90 : 60 + number % 30
      sizes.append(size)
      let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size)
      cache.store(SequenceNumber(65_000) + number, bytes.span)
      var kept = 0
      for back in 0..<80 where number >= back {
        guard let found = self.bytes(of: SequenceNumber(65_000) + (number - back), in: cache) else { break }
        let value = UInt8(truncatingIfNeeded: number - back)
        #expect(found == [UInt8](repeating: value, count: sizes[number - back]))
        kept += 1
      }
      #expect(kept >= min(number + 1, 4) && kept <= 64)
      for back in kept..<80 where number >= back {
        // Nothing comes back that was overwritten.
        let found = self.bytes(of: SequenceNumber(65_000) + (number - back), in: cache)
        #expect(found == nil)
      }
    }
    #expect(bytes(of: SequenceNumber(65_000) + 999, in: cache)?.count == sizes[999])
  }

  @Test("LiveKit protocol §4 (32): three times round the numbers, a cache stays what it was")
  func rounds() {
    var cache = RetransmissionCache(capacity: 512)
    for number in 0..<200_000 {
      let sequence = SequenceNumber(UInt16(truncatingIfNeeded: number))
      cache.store(sequence, [UInt8(truncatingIfNeeded: number), 1].span)
    }
    #expect(cache.capacity == 512)
    for back in 0..<600 {
      let number = 199_999 - back
      let found = bytes(of: SequenceNumber(UInt16(truncatingIfNeeded: number)), in: cache)
      #expect(found == (back < 512 ? [UInt8(truncatingIfNeeded: number), 1] : nil))
    }
  }

  @Test("A stored packet is copied to the start of a buffer that has room for it")
  func copy() {
    var cache = RetransmissionCache(capacity: 16)
    cache.store(SequenceNumber(7), [1, 2, 3].span)
    var buffer: [UInt8] = [9, 9, 9, 9]
    var span = buffer.mutableSpan
    let count = cache.copy(SequenceNumber(7), into: &span)
    let gone = cache.copy(SequenceNumber(23), into: &span)
    #expect(count == 3 && gone == nil)
    #expect(buffer == [1, 2, 3, 9])
    var small: [UInt8] = [9, 9]
    var short = small.mutableSpan
    let refused = cache.copy(SequenceNumber(7), into: &short)
    #expect(refused == nil)
    #expect(small == [9, 9])
  }

  @Test("A repair is claimed once an interval")
  func claims() {
    var cache = RetransmissionCache(capacity: 16)
    cache.store(SequenceNumber(7), [1, 2].span)
    #expect(cache.claimRepair(SequenceNumber(7), at: at(0), minimumInterval: .milliseconds(20)) == true)
    #expect(cache.claimRepair(SequenceNumber(7), at: at(19), minimumInterval: .milliseconds(20)) == false)
    #expect(cache.claimRepair(SequenceNumber(7), at: at(20), minimumInterval: .milliseconds(20)) == true)
    #expect(cache.claimRepair(SequenceNumber(8), at: at(20), minimumInterval: .milliseconds(20)) == false)
  }

  @Test("RFC 4588 §4: a packet is wrapped and unwrapped where it lies, padding and extensions included")
  func rtx() throws {
    let original = RTPHeaderTests.full
    var buffer = original + [0, 0]
    var span = buffer.mutableSpan
    let count = try RTX.wrap(
      &span, count: original.count, payloadType: PayloadType(97), ssrc: SSRC(55),
      sequenceNumber: SequenceNumber(9))
    #expect(count == original.count + 2)
    let header = try RTPHeader.parse(buffer.span)
    #expect(header.payloadType == PayloadType(97) && header.ssrc == SSRC(55) && header.marker)
    #expect(header.sequenceNumber == SequenceNumber(9) && header.timestamp == RTPTimestamp(0x89ab_cdef))
    #expect(Array(buffer[header.payloadRange(in: buffer.span)]) == hex("1234 deadbeef"))
    var again = buffer.mutableSpan
    let back = try RTX.unwrap(&again, count: count, payloadType: PayloadType(111), ssrc: SSRC(0x0102_0304))
    #expect(back == original.count)
    #expect(Array(buffer[..<original.count]) == original)
  }

  @Test("RFC 4588 §4: padding alone unwraps to nothing; one byte of payload and a full buffer are refused")
  func rtxMalformed() throws {
    var padding = hex("a060 0001 00000000 00000001 00000004")
    var span = padding.mutableSpan
    #expect(try RTX.unwrap(&span, count: 16, payloadType: PayloadType(96), ssrc: SSRC(1)) == nil)
    var short = packet(payload: [1])
    var shortSpan = short.mutableSpan
    #expect(throws: WireError.truncated(needed: 2, have: 1)) {
      try RTX.unwrap(&shortSpan, count: 13, payloadType: PayloadType(96), ssrc: SSRC(1))
    }
    #expect(throws: WireError.truncated(needed: 15, have: 13)) {
      try RTX.wrap(
        &shortSpan, count: 13, payloadType: PayloadType(97), ssrc: SSRC(1), sequenceNumber: SequenceNumber(1))
    }
    #expect(throws: WireError.self) {
      try RTX.unwrap(&shortSpan, count: 14, payloadType: PayloadType(96), ssrc: SSRC(1))
    }
  }
}

@Suite("Opus payload")
struct OpusPayloadTests {
  @Test(
    "RFC 6716 §3.1: samples by table of contents",
    arguments: [
      ([0x00], 480), ([0x08], 960), ([0x18], 2_880), ([0x19], 5_760), ([0x60], 480), ([0x78], 960),
      ([0x80], 120),
      ([0xf8], 960), ([0xfa], 1_920), ([0xfb, 0x03], 2_880), ([0xfb, 0x86], 5_760),
    ] as [([UInt8], Int)])
  func samples(_ packet: [UInt8], _ samples: Int) {
    #expect(OpusPayload.samples(in: packet.span) == samples)
  }

  @Test(
    "RFC 6716 §3.2: an empty packet, no frames and more than 120 ms are malformed",
    arguments: [[], [0xfb], [0xfb, 0x00], [0xfb, 0x07], [0x1b, 0x3f]] as [[UInt8]])
  func malformed(_ packet: [UInt8]) {
    #expect(OpusPayload.samples(in: packet.span) == nil)
  }
}
