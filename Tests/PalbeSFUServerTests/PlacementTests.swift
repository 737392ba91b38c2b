import PalbeUnits
import Testing

@_spi(Testing) @testable import PalbeSFUServer

@Suite("Rooms on workers, workers on addresses")
struct PlacementTests {
  @Test("FNV-1a, 64 bits: the published values")
  func hash() {
    #expect(RoomPlacement.hash("") == 0xcbf2_9ce4_8422_2325)
    #expect(RoomPlacement.hash("a") == 0xaf63_dc4c_8601_ec8c)
    #expect(RoomPlacement.hash("foobar") == 0x8594_4171_f739_67e8)
  }

  @Test("1,000 rooms spread over 4 workers, each always on the same one")
  func spreads() {
    var counts = [0, 0, 0, 0]
    for index in 0..<1_000 { counts[RoomPlacement.worker(of: "room-\(index)", among: 4)] += 1 }
    for count in counts { #expect(count > 150) }
    #expect(RoomPlacement.worker(of: "hall", among: 1) == 0)
  }

  @Test("candidates: the bound address, every address of a wildcard, or the one that was given")
  func candidates() throws {
    let ethernet = SocketAddress(ipv4: 192, 0, 2, 1, port: 0)
    let loopback = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
    let wide = try #require(SocketAddress(host: "2001:db8::1", port: 0))
    let all = [ethernet, wide, loopback]
    func hosts(_ socket: SocketAddress, node: SocketAddress? = nil) -> [String] {
      HostCandidates.candidates(of: socket, node: node, hostAddresses: all).map(\.description)
    }
    #expect(hosts(SocketAddress(ipv4: 127, 0, 0, 1, port: 9)) == ["127.0.0.1:9"])
    #expect(hosts(SocketAddress(ipv4: 0, 0, 0, 0, port: 9)) == ["192.0.2.1:9", "127.0.0.1:9"])
    let any = SocketAddress(ipv6High: 0, low: 0, port: 9)
    #expect(hosts(any) == ["192.0.2.1:9", "[2001:db8::1]:9", "127.0.0.1:9"])
    let node = SocketAddress(ipv4: 203, 0, 113, 7, port: 0)
    #expect(hosts(any, node: node) == ["203.0.113.7:9"])
  }
}
