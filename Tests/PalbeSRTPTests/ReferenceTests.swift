import PalbeSRTP
import PalbeUnits
import Testing

@Suite("Byte for byte as libsrtp2")
struct ReferenceTests {
  @Test("RFC 3711, RFC 7714: RTP of three sources across two roll-overs", arguments: SRTPProfile.allCases)
  func rtpBytes(_ profile: SRTPProfile) throws {
    let keys = Keys(profile)
    var random = RandomSource(seed: 10)
    var session = try keys.session()
    let twin = Reference(keys, isPeer: false)
    let peer = Reference(keys, isPeer: true)
    for step in 0..<5_000 {
      let ssrc = UInt32(7 + step % 3)
      // Every source goes 85 numbers a packet: 1,666 packets cross 65,536 twice.
      let plain = rtp(UInt16(truncatingIfNeeded: 1_000 + step / 3 * 85), ssrc: ssrc, random: &random)
      let protected = try run(.protectRTP, plain, in: &session)
      #expect(protected.count == plain.count + profile.overhead)
      #expect(protected == twin.run(.protectRTP, plain))
      #expect(peer.run(.unprotectRTP, protected) == plain)
      let back = try #require(peer.run(.protectRTP, plain))
      #expect(try run(.unprotectRTP, back, in: &session) == plain)
    }
    #expect(session.extendedSequence(local: SSRC(7))?.rollover == 2)
    #expect(session.extendedSequence(remote: SSRC(9))?.rollover == 2)
    #expect(session.extendedSequence(remote: SSRC(10)) == nil)
  }

  @Test("RFC 3711 §3.4, RFC 7714 §9: RTCP of two sources", arguments: SRTPProfile.allCases)
  func rtcpBytes(_ profile: SRTPProfile) throws {
    let keys = Keys(profile, seed: 2)
    var random = RandomSource(seed: 11)
    var session = try keys.session()
    let twin = Reference(keys, isPeer: false)
    let peer = Reference(keys, isPeer: true)
    // RFC 3711 §3.4 starts the index at zero; libsrtp2 at one.
    for ssrc in 1...2 as ClosedRange<UInt32> {
      let first = try run(.protectRTCP, rtcp(ssrc: ssrc, random: &random), in: &session)
      #expect(peer.run(.unprotectRTCP, first) != nil)
    }
    for step in 0..<500 {
      let plain = rtcp(ssrc: UInt32(1 + step % 2), random: &random)
      let protected = try run(.protectRTCP, plain, in: &session)
      #expect(protected.count == plain.count + profile.controlOverhead)
      #expect(protected == twin.run(.protectRTCP, plain))
      #expect(peer.run(.unprotectRTCP, protected) == plain)
      let back = try #require(peer.run(.protectRTCP, plain))
      #expect(try run(.unprotectRTCP, back, in: &session) == plain)
    }
  }

  @Test("Loss, reordering and duplicates: the same packets are accepted", arguments: 0..<6)
  func sameAcceptance(seed: Int) throws {
    let profile = SRTPProfile.allCases[seed % 3]
    let keys = Keys(profile, seed: UInt64(seed))
    var random = RandomSource(seed: UInt64(100 + seed))
    var session = try keys.session()
    let sender = Reference(keys, isPeer: true)
    let receiver = Reference(keys, isPeer: false)
    var flight: [[UInt8]] = []
    var accepted = 0
    for step in 0..<4_000 {
      let plain = rtp(UInt16(truncatingIfNeeded: 30_000 + step * 40), random: &random)
      guard let protected = sender.run(.protectRTP, plain) else { continue }
      flight.append(protected)
      if step % 7 == 0 { flight.append(protected) }
      guard flight.count >= 30 else { continue }
      flight.shuffle(using: &random)
      while flight.count > 10 {
        let packet = flight.removeLast()
        if Int.random(in: 0..<10, using: &random) == 0 { continue }
        let mine = try? run(.unprotectRTP, packet, in: &session)
        #expect(mine == receiver.run(.unprotectRTP, packet))
        if mine != nil { accepted += 1 }
      }
    }
    #expect(accepted > 2_500)
  }
}
