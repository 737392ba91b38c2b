import PalbeSRTP
import PalbeUnits
import Testing

@Suite("SRTP replay, reuse and forgery")
struct ReplayTests {
  static let profiles = SRTPProfile.allCases

  @Test("RFC 3711 §3.3.2: a packet is accepted once; one older than 1,024 is not", arguments: profiles)
  func replay(_ profile: SRTPProfile) throws {
    let keys = Keys(profile)
    var random = RandomSource(seed: 1)
    var sender = try keys.session()
    var receiver = try keys.peer()
    var sent: [[UInt8]] = []
    for number in 0..<1_100 as Range<UInt16> {
      sent.append(try run(.protectRTP, rtp(65_000 &+ number, random: &random), in: &sender))
    }
    _ = try run(.unprotectRTP, sent[0], in: &receiver)
    #expect(failure(.unprotectRTP, sent[0], in: &receiver) == .replayed)
    _ = try run(.unprotectRTP, sent[1_024], in: &receiver)
    #expect(failure(.unprotectRTP, sent[0], in: &receiver) == .replayed)
    for index in 1..<1_024 { #expect(failure(.unprotectRTP, sent[index], in: &receiver) == nil) }
    for index in 1..<1_024 { #expect(failure(.unprotectRTP, sent[index], in: &receiver) == .replayed) }
    _ = try run(.unprotectRTP, sent[1_099], in: &receiver)
    #expect(failure(.unprotectRTP, sent[1_025], in: &receiver) == nil)
    let rtcpPacket = try run(.protectRTCP, rtcp(random: &random), in: &sender)
    #expect(failure(.unprotectRTCP, rtcpPacket, in: &receiver) == nil)
    #expect(failure(.unprotectRTCP, rtcpPacket, in: &receiver) == .replayed)
  }

  @Test("Nothing is protected twice under one index, whatever its bytes", arguments: profiles)
  func reuse(_ profile: SRTPProfile) throws {
    var random = RandomSource(seed: 2)
    var sender = try Keys(profile).session()
    for number in [10, 12, 11, 2_000] as [UInt16] {
      #expect(failure(.protectRTP, rtp(number, random: &random), in: &sender) == nil)
      #expect(failure(.protectRTP, rtp(number, random: &random), in: &sender) == .sequenceReuse)
    }
    for number in [10, 13, 976] as [UInt16] {
      #expect(failure(.protectRTP, rtp(number, random: &random), in: &sender) == .sequenceReuse)
    }
    #expect(failure(.protectRTP, rtp(977, random: &random), in: &sender) == nil)
    #expect(failure(.protectRTP, rtp(10, ssrc: 5, random: &random), in: &sender) == nil)
    // A refused packet keeps its bytes.
    let plain = rtp(10, ssrc: 5, random: &random)
    var buffer = plain + [UInt8](repeating: 0, count: 20)
    var span = buffer.mutableSpan
    #expect(throws: SRTPError.sequenceReuse) { try sender.protectRTP(&span, count: plain.count) }
    #expect(Array(buffer[..<plain.count]) == plain)
  }

  @Test("Counted in a lossy run: no index of a source is ever protected twice", arguments: profiles)
  func countedIndices(_ profile: SRTPProfile) throws {
    var random = RandomSource(seed: 3)
    var sender = try Keys(profile).session()
    var seen: Set<UInt64> = []
    var next: UInt64 = 60_000
    for _ in 0..<3_000 {
      next += UInt64.random(in: 1...90, using: &random)
      // A mistaken owner also tries old numbers again.
      let tried =
        Int.random(in: 0..<4, using: &random) == 0
        ? next - UInt64.random(in: 0...3_000, using: &random) : next
      let plain = rtp(UInt16(truncatingIfNeeded: tried), random: &random)
      guard failure(.protectRTP, plain, in: &sender) == nil else { continue }
      #expect(seen.insert(tried).inserted)
    }
    #expect(seen.count > 2_000)
  }

  @Test("A changed bit anywhere is refused and moves nothing", arguments: profiles)
  func forgery(_ profile: SRTPProfile) throws {
    let keys = Keys(profile)
    var random = RandomSource(seed: 4)
    var sender = try keys.session()
    var receiver = try keys.peer()
    let first = try run(.protectRTP, rtp(100, random: &random), in: &sender)
    let plain = rtp(101, random: &random)
    let genuine = try run(.protectRTP, plain, in: &sender)
    for bit in 0..<min(8 * genuine.count, 2_000) {
      var forged = genuine
      forged[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(failure(.unprotectRTP, forged, in: &receiver) != nil)
    }
    #expect(receiver.remoteSourceCount == 0)
    _ = try run(.unprotectRTP, first, in: &receiver)
    // Forged far ahead: neither the window nor the roll-over count may follow.
    for ahead in stride(from: 1_000 as UInt16, to: 65_000, by: 1_000) {
      var forged = genuine
      let number = 101 &+ ahead
      forged[2] = UInt8(number >> 8)
      forged[3] = UInt8(number & 0xff)
      let error = failure(.unprotectRTP, forged, in: &receiver)
      #expect(error == .authenticationFailure || error == .replayed)
    }
    #expect(receiver.extendedSequence(remote: SSRC(0x1234_5678))?.rawValue == 100)
    #expect(try run(.unprotectRTP, genuine, in: &receiver) == plain)
    let control = try run(.protectRTCP, rtcp(random: &random), in: &sender)
    for bit in 0..<8 * control.count {
      var forged = control
      forged[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(failure(.unprotectRTCP, forged, in: &receiver) != nil)
    }
    #expect(failure(.unprotectRTCP, control, in: &receiver) == nil)
  }

  @Test("Every prefix is refused without a trace", arguments: profiles)
  func truncation(_ profile: SRTPProfile) throws {
    let keys = Keys(profile)
    var random = RandomSource(seed: 5)
    var sender = try keys.session()
    var receiver = try keys.peer()
    let packet = try run(.protectRTP, rtp(1, random: &random), in: &sender)
    let control = try run(.protectRTCP, rtcp(random: &random), in: &sender)
    for count in 0..<packet.count {
      #expect(failure(.unprotectRTP, Array(packet[..<count]), in: &receiver) != nil)
    }
    for count in 0..<control.count {
      #expect(failure(.unprotectRTCP, Array(control[..<count]), in: &receiver) != nil)
    }
    #expect(receiver.remoteSourceCount == 0)
  }

  @Test("A buffer without room, a wrong count, a wrong key length and garbage are named")
  func errors() throws {
    let keys = Keys(.aeadAES128GCM)
    var random = RandomSource(seed: 6)
    var session = try keys.session()
    var tight = rtp(1, random: &random)
    let count = tight.count
    var span = tight.mutableSpan
    #expect(throws: SRTPError.noRoom(needed: count + 16, have: count)) {
      try session.protectRTP(&span, count: count)
    }
    #expect(throws: SRTPError.truncated(needed: count + 1, have: count)) {
      try session.protectRTP(&span, count: count + 1)
    }
    #expect(throws: SRTPError.truncated(needed: -1, have: count)) {
      try session.unprotectRTP(&span, count: -1)
    }
    #expect(failure(.protectRTP, [UInt8](repeating: 0, count: 40), in: &session) == .malformed)
    #expect(failure(.unprotectRTCP, [UInt8](repeating: 0x80, count: 40), in: &session) == .malformed)
    var control = try run(.protectRTCP, rtcp(random: &random), in: &session)
    control[control.count - 4] &= 0x7f
    #expect(failure(.unprotectRTCP, control, in: &session) == .unencrypted)
    #expect(throws: SRTPError.wrongKeyLength(expected: 14, got: 12)) {
      _ = try SRTPSession(
        profile: .aes128CMSHA1_80, localMasterKey: keys.localKey.span, localMasterSalt: keys.localSalt.span,
        remoteMasterKey: keys.remoteKey.span, remoteMasterSalt: keys.remoteSalt.span)
    }
    #expect(MemoryLayout<SRTPError>.size <= 24)
  }

  @Test("A peer has at most the agreed number of sources; a forgotten one makes room")
  func sources() throws {
    let keys = Keys(.aeadAES128GCM)
    var random = RandomSource(seed: 7)
    var sender = try keys.session()
    var receiver = try keys.peer(inboundLimit: 20)
    for ssrc in 1...20 as ClosedRange<UInt32> {
      let packet = try run(.protectRTP, rtp(1, ssrc: ssrc << 16, random: &random), in: &sender)
      #expect(failure(.unprotectRTP, packet, in: &receiver) == nil)
    }
    let more = try run(.protectRTP, rtp(1, ssrc: 21, random: &random), in: &sender)
    let moreControl = try run(.protectRTCP, rtcp(ssrc: 22, random: &random), in: &sender)
    #expect(failure(.unprotectRTP, more, in: &receiver) == .tooManySources(limit: 20))
    #expect(failure(.unprotectRTCP, moreControl, in: &receiver) == .tooManySources(limit: 20))
    receiver.forgetRemoteSource(SSRC(5 << 16))
    receiver.forgetRemoteSource(SSRC(99))
    #expect(receiver.remoteSourceCount == 19)
    #expect(failure(.unprotectRTP, more, in: &receiver) == nil)
    for ssrc in 1...20 as ClosedRange<UInt32> where ssrc != 5 {
      #expect(receiver.extendedSequence(remote: SSRC(ssrc << 16)) != nil)
    }
    for ssrc in 100...1_500 as ClosedRange<UInt32> {
      #expect(failure(.protectRTP, rtp(1, ssrc: ssrc, random: &random), in: &sender) == nil)
      #expect(failure(.protectRTP, rtp(1, ssrc: ssrc, random: &random), in: &sender) == .sequenceReuse)
    }
  }

  @Test("Keys of another session open nothing", arguments: profiles)
  func otherKeys(_ profile: SRTPProfile) throws {
    var random = RandomSource(seed: 8)
    var sender = try Keys(profile, seed: 1).session()
    var receiver = try Keys(profile, seed: 2).peer()
    let packet = try run(.protectRTP, rtp(1, random: &random), in: &sender)
    #expect(failure(.unprotectRTP, packet, in: &receiver) == .authenticationFailure)
    // Nor do one's own sending keys.
    #expect(failure(.unprotectRTP, packet, in: &sender) == .authenticationFailure)
  }
}

@Suite("Sequence window")
struct SequenceWindowTests {
  @Test("RFC 3711 §3.3.1: the index nearest to the highest, across roll-overs")
  func estimate() {
    var window = SequenceWindow()
    #expect(window.index(of: 65_535) == 65_535)
    window.use(10)
    #expect(window.index(of: 32_777) == 32_777)
    // Index -6 does not exist: the number is far ahead, as libsrtp2 has it.
    #expect(window.index(of: 65_530) == 65_530)
    window.use(65_530)
    #expect(window.index(of: 5) == 65_541)
    window.use(65_541)
    #expect(window.index(of: 65_535) == 65_535)
    #expect(window.index(of: 32_000) == 97_536)
  }

  @Test("The bitmap agrees with a set of indices", arguments: 0..<20)
  func model(seed: Int) {
    var random = RandomSource(seed: UInt64(seed))
    var window = SequenceWindow()
    var used: Set<UInt64> = []
    var highest: UInt64?
    for _ in 0..<5_000 {
      let base = highest ?? 70_000
      let reach: UInt64 = Int.random(in: 0..<50, using: &random) == 0 ? 3_000 : 40
      let index =
        base + UInt64.random(in: 0...reach, using: &random) - UInt64.random(in: 0...reach, using: &random)
      let expected: SequenceWindow.Status
      if let highest, index <= highest {
        expected = highest - index >= 1_024 ? .tooOld : used.contains(index) ? .used : .fresh
      } else {
        expected = .fresh
      }
      #expect(window.status(of: index) == expected)
      window.use(index)
      used.insert(index)
      highest = max(highest ?? index, index)
      #expect(window.highest == highest)
    }
  }
}
