import CPalbeMallocCounter
import PalbeSRTP
import PalbeUnits
import Testing

@Suite("SRTP allocates nothing a packet")
struct AllocationTests {
  @Test("Protect and unprotect, RTP and RTCP, 64 known sources", arguments: SRTPProfile.allCases)
  func allocations(_ profile: SRTPProfile) throws {
    let keys = Keys(profile)
    var sender = try keys.session()
    var receiver = try keys.peer()
    var random = RandomSource(seed: 1)
    var packet = [UInt8](repeating: 0, count: 1_300)
    packet.replaceSubrange(0..<12, with: hex("8060 0000 00000000 00000000"))
    var control = rtcp(random: &random) + [UInt8](repeating: 0, count: 20)
    let controlCount = control.count - 20
    func pass(_ number: UInt8) throws -> UInt64 {
      let before = palbe_malloc_count()
      var ssrc: UInt8 = 0
      while ssrc < 64 {
        packet[3] = number
        packet[11] = ssrc
        var span = packet.mutableSpan
        let protected = try sender.protectRTP(&span, count: 1_200)
        _ = try receiver.unprotectRTP(&span, count: protected)
        control[7] = ssrc
        var controlSpan = control.mutableSpan
        let protectedControl = try sender.protectRTCP(&controlSpan, count: controlCount)
        _ = try receiver.unprotectRTCP(&controlSpan, count: protectedControl)
        ssrc += 1
      }
      return palbe_malloc_count() - before
    }
    control.replaceSubrange(4..<7, with: [0, 0, 0])
    #expect(try pass(0) > 0)
    for number in 1...20 as ClosedRange<UInt8> { #expect(try pass(number) == 0) }
  }
}
