import PalbeCallCore
import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeUnits
import Testing

@Suite struct GarbageTests {
  @Test("A garbage datagram never traps and changes nothing", arguments: [51, 52] as [UInt64])
  func datagrams(seed: UInt64) throws {
    let server = try ScriptedServer()
    try server.bringUp()
    var random = RandomSource(seed: seed)
    for _ in 0..<2_000 {
      var bytes = random.bytes(Int.random(in: 0...120, using: &random))
      // Every kind in turn.
      if !bytes.isEmpty {
        bytes[0] = [0, 1, 20, 22, 64, 0x80, 0x90, 0xb0].randomElement(using: &random) ?? 0
      }
      server.deliver(bytes)
    }
    server.send(packet: server.videoPacket(1, isKeyFrame: true))
    #expect(server.videoFrames.count == 1, "seed \(seed)")
  }

  @Test("A hostile server's authentic packets never trap", arguments: [61, 62] as [UInt64])
  func authenticPackets(seed: UInt64) throws {
    let server = try ScriptedServer()
    try server.bringUp()
    var random = RandomSource(seed: seed)
    for step in 0..<1_500 {
      var packet: [UInt8]
      let sequence = UInt16(truncatingIfNeeded: random.next())
      switch step % 4 {
      case 0: packet = server.videoPacket(UInt16(truncatingIfNeeded: step), isKeyFrame: step % 7 == 0)
      case 1: packet = server.audioPacket(sequence)
      case 2:
        packet = server.packet(
          ssrc: [1_000, 2_000, 2_001].randomElement(using: &random) ?? 0,
          type: [96, 97, 111].randomElement(using: &random) ?? 0,
          sequence: sequence, timestamp: UInt32(truncatingIfNeeded: random.next()),
          payload: random.bytes(Int.random(in: 0...60, using: &random)))
      default:
        packet =
          [0x81, [200, 201, 202, 203, 205, 206].randomElement(using: &random) ?? 200, 0, 7] + random.bytes(28)
      }
      for _ in 0..<Int.random(in: 0...3, using: &random) where packet.count > 2 {
        packet[Int.random(in: 2..<packet.count, using: &random)] = UInt8(truncatingIfNeeded: random.next())
      }
      server.send(packet: packet)
      if step % 10 == 0 { server.advance(by: .milliseconds(20)) }
      for case .trackSubscribed(let id, _, .audio, _) in server.events.prefix(40) {
        _ = server.session.pullAudio(id, at: server.now)
      }
    }
    #expect(server.isConnected, "seed \(seed)")
    #expect(server.session.statistics.remoteTracks.allSatisfy { $0.outOfOrder == 0 })
    #expect(server.spins == 0)
  }

  @Test("A changed or cut signal never traps", arguments: [71, 72] as [UInt64])
  func signals(seed: UInt64) throws {
    var random = RandomSource(seed: seed)
    let template = try ScriptedServer()
    let offer = try #require(template.request.publisherOffer)
    let answer = try template.answer(to: offer, tracks: ScriptedServer.tracks(in: offer))
    let messages: [LiveKit.SignalResponse.Message] = [
      .join(ScriptedServer.joinResponse(others: [ScriptedServer.other()])), .answer(answer),
      .update(.with { $0.participants = [ScriptedServer.other(version: 9)] }),
      .mediaSectionsRequirement(
        .with {
          $0.numAudios = .max
          $0.numVideos = .max
        }),
      .trickle(.with { $0.candidateInit = "{\"candidate\":\"\",\"sdpMid\":\"0\",\"sdpMLineIndex\":0}" }),
      .pongResp(.with { $0.lastPingTimestamp = .min }), .mute(.with { $0.sid = "x" }),
      .speakersChanged(
        .with {
          $0.speakers = [
            .with {
              $0.sid = "PA_other"
              $0.level = .nan
              $0.active = true
            }
          ]
        }),
    ]
    let serialized = messages.map { LiveKit.SignalResponse($0).serialized() }
    for _ in 0..<60 {
      let server = try ScriptedServer()
      server.send(.join(ScriptedServer.joinResponse(others: [ScriptedServer.other()])))
      for _ in 0..<20 {
        var bytes = serialized.randomElement(using: &random) ?? []
        switch Int.random(in: 0...2, using: &random) {
        case 0: bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
        case 1 where !bytes.isEmpty:
          bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8(truncatingIfNeeded: random.next())
        default: break
        }
        server.send(raw: bytes)
        server.advance(by: .milliseconds(100))
      }
    }
  }
}
