import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeUnits
import Testing

@testable import PalbeSFUCore

@Suite("Packet trailers (livekit-protocol.md section 3)")
struct PacketTrailerTests {
  /// A timestamp and a frame's number, as LiveKit's clients write them.
  private static let trailer: [UInt8] =
    [1, 8, 0, 0, 1, 2, 3, 4, 5, 6, 2, 4, 0, 0, 0, 42, 21].map { ~$0 } + Array("LKTS".utf8)

  @Test("what ends like one is one, within the payload")
  func detection() {
    func count(_ bytes: [UInt8]) -> Int { PacketTrailer.byteCount(in: bytes.span) }
    #expect(Self.trailer.count == 21)
    #expect(count([1, 2, 3] + Self.trailer) == 21)
    // Nothing but a trailer is no frame.
    #expect(count(Self.trailer) == 0)
    #expect(count([1, 2, 3] + Self.trailer.dropLast()) == 0)
    #expect(count(Array("LKTS".utf8)) == 0 && count([]) == 0)
    for length in 0...255 as ClosedRange<UInt8> {
      let bytes = [UInt8](repeating: 7, count: 40) + [~length] + Array("LKTS".utf8)
      #expect(count(bytes) == ((5..<45).contains(length) ? Int(length) : 0))
    }
    for end in 0..<Self.trailer.count { #expect(count([9] + Self.trailer[..<end]) == 0) }
  }

  private func join(
    _ world: World, _ identity: String, capabilities: [LiveKit.ClientInfo.Capability] = []
  ) throws -> ScriptedClient {
    let client = try world.client(identity)
    world.join(client, request: { $0.clientInfo?.capabilities = capabilities })
    try #require(world.connect(client))
    return client
  }

  /// Alice publishes a camera with trailers; a frame of two packets, sealed, with one at its end.
  private func publish(_ world: World, features: [LiveKit.PacketTrailerFeature]) throws -> ScriptedClient {
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    var request = alice.addTrack(alice.tracks[0])
    request.encryption = .gcm
    request.packetTrailerFeatures = features
    world.join(alice, request: { $0.addTrackRequests = [request] })
    try #require(world.connect(alice))
    return alice
  }

  private func send(_ world: World, from alice: ScriptedClient) throws -> [[UInt8]] {
    alice.tracks[0].timestamp &+= 3_000
    // A key frame with a descriptor of one byte: nothing in it is rewritten.
    let payloads: [[UInt8]] = [
      [0x10, 0x10] + [UInt8](repeating: 0x5e, count: 300),
      [0x00] + [UInt8](repeating: 0xa1, count: 200) + Self.trailer,
    ]
    for (number, payload) in payloads.enumerated() {
      world.send([try alice.media(0, payload: payload, marker: number == 1)], from: alice)
    }
    world.run(for: .milliseconds(100))
    return payloads
  }

  @Test("cut off for who does not know it, in repairs too; untouched for who does")
  func forwarding() throws {
    let world = try World()
    let alice = try publish(world, features: [.userTimestamp, .frameId, .frameId])
    let knowing = try join(world, "knowing", capabilities: [.packetTrailer, .compressionDeflateRaw])
    let plain = try join(world, "plain", capabilities: [.compressionDeflateRaw])
    let info = try #require(knowing.join?.otherParticipants.first?.tracks.first)
    #expect(info.packetTrailerFeatures == [.userTimestamp, .frameId])
    let sent = try send(world, from: alice)
    #expect(knowing.packets(payloadType: 96).map(\.payload) == sent)
    let received = plain.packets(payloadType: 96)
    #expect(received.map(\.payload) == [sent[0], Array(sent[1].dropLast(21))])
    // The frame is whole: what was sealed is all there.
    #expect(received[1].payload.last == 0xa1 && received[1].header.marker)
    let nack = GenericNACK(
      sender: SSRC(1), media: received[1].header.ssrc, sequenceNumbers: [received[1].header.sequenceNumber])
    world.send([try plain.controlPacket([.nack(nack)])], from: plain)
    world.run(for: .milliseconds(100))
    let repair = try #require(plain.packets(payloadType: 97).first)
    #expect(Array(repair.payload.dropFirst(2)) == received[1].payload)
    #expect(world.reuses == 0)
  }

  @Test("S4-3: on a track without trailers no byte is missing, whatever it ends with")
  func otherTracks() throws {
    let world = try World()
    let alice = try publish(world, features: [])
    let plain = try join(world, "plain")
    let sent = try send(world, from: alice)
    #expect(plain.packets(payloadType: 96).map(\.payload) == sent)
  }
}
