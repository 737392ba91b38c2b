import PalbeDTLS
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

@Suite("RFC 6347, RFC 5764: the handshake")
struct DTLSHandshakeTests {
  @Test("Two round trips, the same keys on both sides, the fingerprints of the identities")
  func handshake() throws {
    let world = try DTLSWorld()
    let start = world.clock.now
    #expect(world.connect())
    #expect(world.clock.now - start == .milliseconds(40))
    let keys = try ExportedKeys(world.client)
    #expect(try ExportedKeys(world.server) == keys.mirrored)
    #expect(keys.localKey != keys.remoteKey)
    #expect(world.client.peerFingerprint == DTLSWorld.serverIdentity.fingerprint)
    #expect(world.server.peerFingerprint == DTLSWorld.clientIdentity.fingerprint)
    #expect(world.client.nextDeadline == nil)
    #expect(world.server.nextDeadline == nil)
    #expect(world.datagrams.allSatisfy { $0.bytes.count <= 1_200 && (20...63).contains($0.bytes[0]) })
  }

  @Test(
    "RFC 5764 §4.1.2: the server's order decides the profile",
    arguments: [
      ([7, 8, 1], [7, 8, 1], 7), ([1, 8, 7], [7, 8, 1], 7), ([1, 8], [7, 8, 1], 8), ([1], [7, 8, 1], 1),
      ([7, 8, 1], [8], 8), ([2, 1], [7, 8, 1], 1),
    ] as [([UInt16], [UInt16], UInt16)])
  func profile(client: [UInt16], server: [UInt16], expected: UInt16) throws {
    let world = try DTLSWorld(clientProfiles: client, serverProfiles: server)
    #expect(world.connect())
    #expect(world.client.selectedProfile == expected)
    #expect(world.server.selectedProfile == expected)
    let keys = try ExportedKeys(world.client)
    #expect(keys.localKey.count == (expected == 8 ? 32 : 16))
    #expect(keys.localSalt.count == (expected == 1 ? 14 : 12))
    #expect(try ExportedKeys(world.server) == keys.mirrored)
  }

  @Test("Without a common profile there is an association and no SRTP keys")
  func noProfile() throws {
    let world = try DTLSWorld(clientProfiles: [8], serverProfiles: [1])
    #expect(world.connect())
    #expect(world.server.selectedProfile == nil)
    #expect(throws: DTLSError.noSRTPProfile) { try ExportedKeys(world.server) }
  }

  @Test("Before the handshake there are no keys and nothing can be sent")
  func early() throws {
    let world = try DTLSWorld()
    #expect(throws: DTLSError.notConnected) { try ExportedKeys(world.client) }
    var error: DTLSError?
    let data: [UInt8] = [1]
    do { try world.client.send(data.span, at: .zero) } catch let caught { error = caught }
    #expect(error == .notConnected)
    #expect(world.client.peerFingerprint == nil)
  }

  @Test("Data goes both ways in messages, and close_notify ends it on both sides")
  func data() throws {
    let world = try DTLSWorld()
    #expect(world.connect())
    let large = [UInt8](repeating: 7, count: 1_136)
    let small: [UInt8] = [1, 2, 3]
    try world.client.send(small.span, at: world.clock.now)
    try world.client.send(large.span, at: world.clock.now)
    try world.server.send(small.span, at: world.clock.now)
    var error: DTLSError?
    let tooLarge = large + [7]
    do { try world.client.send(tooLarge.span, at: world.clock.now) } catch let caught { error = caught }
    #expect(error == .tooLong(count: 1_137, limit: 1_136))
    world.run(for: .seconds(1))
    #expect(world.server.pollReceived() == small)
    #expect(world.server.pollReceived() == large)
    #expect(world.server.pollReceived() == nil)
    #expect(world.client.pollReceived() == small)
    #expect(world.datagrams.allSatisfy { $0.bytes.count <= 1_200 })
    world.client.close(at: world.clock.now)
    world.run(for: .seconds(1))
    #expect(world.client.state == .closed)
    #expect(world.server.state == .closed)
  }

  @Test("RFC 8122 §5: a fingerprint has 32 bytes, and each certificate its own")
  func fingerprint() {
    let fingerprint = DTLSWorld.serverIdentity.fingerprint
    #expect(DTLSFingerprint(bytes: fingerprint.bytes) == fingerprint)
    #expect(DTLSFingerprint(bytes: [UInt8](fingerprint.bytes.dropLast())) == nil)
    #expect(DTLSFingerprint(bytes: fingerprint.bytes + [0]) == nil)
    #expect(DTLSWorld.clientIdentity.fingerprint != fingerprint)
  }
}
