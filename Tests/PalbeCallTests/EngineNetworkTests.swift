import PalbeCall
import PalbeCallCore
import PalbeSFUServer
import PalbeUnits
import Testing

/// Requirement S4 part 4: media over UDP and ICE-TCP, IPv4 and IPv6, with real sockets and our own client.
@Suite("Networks that a call goes over", .serialized, .timeLimit(.minutes(1)))
struct EngineNetworkTests {
  /// Ada and Bob reach the server at these addresses, and hear and see each other.
  private func call(
    _ sfu: TestSFU, from hosts: (String, String), room: String
  ) async throws {
    let key = [UInt8](repeating: 9, count: 32)
    let ada = try Party("ada", at: sfu.url(hosts.0), room: room, key: key)
    let bob = try Party("bob", at: sfu.url(hosts.1), room: room, key: key)
    try await ada.engine.start()
    try await bob.engine.start()
    for party in [ada, bob] { await party.wait { $0.pictures.count >= 10 && $0.played >= 10 } }
    for party in [ada, bob] {
      #expect(party.now.pictures == party.now.pictures.sorted())
      await party.engine.stop()
    }
  }

  @Test(
    "RFC 6544: an SFU that offers TCP alone; two of our clients exchange sound and pictures",
    arguments: ["127.0.0.1", "::1"])
  func overTCP(host: String) async throws {
    let sfu = try TestSFU(host: host) {
      $0.tcpPort = 0
      $0.announcesOnlyTCP = true
    }
    defer { sfu.stop() }
    try await call(sfu, from: (host, host), room: "stream")
  }

  @Test("IPv6 alone: signaling and UDP on ::1")
  func overIPv6() async throws {
    let sfu = try TestSFU(host: "::1")
    defer { sfu.stop() }
    #expect(sfu.server.mediaAddresses.allSatisfy { $0.family == .ipv6 })
    try await call(sfu, from: ("::1", "::1"), room: "six")
  }

  @Test("by default both families are served: one joins over IPv4, one over IPv6, in one room")
  func dualStack() async throws {
    let sfu = try TestSFU(host: nil) { $0.tcpPort = 0 }
    defer { sfu.stop() }
    #expect(sfu.server.signalingAddress.host == "::")
    try await call(sfu, from: ("127.0.0.1", "::1"), room: "both")
    try await call(sfu, from: ("::1", "127.0.0.1"), room: "both again")
  }
}
