import CPalbeMallocCounter
import PalbeCallCore
import PalbeFrameEncryption
import PalbeUnits
import Testing

@Suite struct AllocationTests {
  @Test(
    "A frame is sealed, cut, protected and sent without an allocation",
    arguments: [CallEncryption.sframe, .liveKit(LiveKitKeyRing.Configuration())])
  func sending(_ encryption: CallEncryption) throws {
    let server = try ScriptedServer(encryption: encryption)
    if encryption == .sframe {
      try server.install(callKey)
    } else {
      let secret = callKey
      try server.session.setLiveKitKey(try LiveKitKey(secret.span, derivation: .hkdf))
    }
    try server.bringUp()
    let frame = [UInt8](repeating: 0x11, count: 6_000)
    let packet = [UInt8](repeating: 0x78, count: 80)
    var buffer = [UInt8](repeating: 0, count: 1_500)
    var sent = 0
    var before: UInt64 = 0
    for run in 0..<120 {
      if run == 20 {
        before = palbe_malloc_count()
        sent = 0
      }
      let timestamp = RTPTimestamp(UInt32(run) * 3_000)
      try server.session.send(frame.span, on: .camera, timestamp: timestamp, at: server.now)
      try server.session.send(packet.span, on: .microphone, timestamp: timestamp, at: server.now)
      while true {
        var span = buffer.mutableSpan
        guard server.session.pollTransmit(into: &span, at: server.now) != nil else { break }
        sent += 1
      }
    }
    let count = palbe_malloc_count() - before
    #expect(sent == 700)
    #expect(count == 0, "\(count) for \(sent) packets")
  }
}
