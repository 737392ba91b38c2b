import PalbeLiveKit
import PalbeUnits
import Testing

@testable import PalbeSFUCore

/// Requirement: participants that join and leave at random leave nothing behind.
struct ChurnTests {
  private final class Weak {
    weak var participant: Participant?
    weak var transport: PeerTransport?
    weak var room: Room?

    init(_ participant: Participant) {
      self.participant = participant
      transport = participant.transport
      room = participant.room
    }
  }

  @Test(
    "200 sessions in 6 rooms, ended in every way, some before they are up: nothing is left",
    arguments: [UInt64(1)])
  func churn(seed: UInt64) throws {
    let world = try World(seed: seed) { $0.departureTimeout = .seconds(2) }
    world.isRecording = false
    var random = RandomSource(seed: seed)
    var open: [ScriptedClient] = []
    var seen: [Weak] = []
    var connected = 0
    var number: UInt64 = 0
    while number < 200 || !open.isEmpty {
      if number < 200, open.count < 12 {
        number += 1
        // A name that may be taken, and an address that somebody had before.
        let client = try ScriptedClient(
          identity: "p\(Int.random(in: 0..<16, using: &random))", number: number, random: &world.random)
        client.nextPing = world.now + .seconds(5)
        client.usesTCP = number % 5 == 0
        if number % 2 == 0 { client.tracks = [world.track("mic", .audio), world.track("cam", .video)] }
        world.clients.append(client)
        let room = "room-\(Int.random(in: 0..<6, using: &random))"
        world.join(client, grant: { $0.room = room })
        open.append(client)
        if let participant = world.worker.participants.last { seen.append(Weak(participant)) }
      }
      world.run(for: .milliseconds(Int.random(in: 0...250, using: &random)))
      for client in open where client.isUp && !client.tracks.isEmpty && !client.isClosed {
        world.send(try client.videoFrame(1, isKeyFrame: true), from: client)
      }
      let isLast = number >= 200
      guard isLast || Int.random(in: 0..<3, using: &random) > 0, !open.isEmpty else { continue }
      let client = open.remove(at: Int.random(in: 0..<open.count, using: &random))
      if client.isUp { connected += 1 }
      switch Int.random(in: 0..<4, using: &random) {
      case 0: world.signal(.leave(.init()), from: client)
      case 1: world.cut(client)
      case 2:
        // Its network first, its signaling later.
        client.answersChecks = false
        world.handle(.disconnected(client.address))
        world.run(for: .milliseconds(100))
        world.cut(client)
      default:
        // Nothing comes any more, and nobody says so.
        client.answersChecks = false
        client.isClosed = true
        client.pingsAutomatically = false
      }
      // It is not driven any more, so its checks end too.
      world.clients.removeAll { $0 === client }
    }
    #expect(connected > 60)
    world.run(for: .seconds(120))
    #expect(world.worker.participants.isEmpty)
    #expect(world.worker.nextDeadline == nil)
    #expect(world.command(.list(names: [])) == .rooms([]))
    #expect(seen.count >= 190)
    #expect(seen.allSatisfy { $0.participant == nil && $0.transport == nil && $0.room == nil })
    for client in 1...255 {
      let address = SocketAddress(ipv4: 10, 0, 0, UInt8(client), port: 5_000)
      #expect(!world.isServed(address) && !world.isServed(address.overTCP))
    }
  }
}
