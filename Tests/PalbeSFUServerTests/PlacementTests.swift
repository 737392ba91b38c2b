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
    let any = SocketAddress(ipv6High: 0, low: 0, port: 0)
    func hosts(
      _ bound: [SocketAddress], node: SocketAddress? = nil, keepsInternal: Bool = false,
      over transport: SocketAddress.Transport = .udp
    ) -> [String] {
      HostCandidates(bound: bound, hostAddresses: all, external: node, keepsInternal: keepsInternal)
        .at(9, transport).map(\.description)
    }
    #expect(hosts([SocketAddress(ipv4: 127, 0, 0, 1, port: 0)]) == ["127.0.0.1:9"])
    #expect(hosts([SocketAddress(ipv4: 0, 0, 0, 0, port: 0)]) == ["192.0.2.1:9", "127.0.0.1:9"])
    #expect(hosts([any]) == ["192.0.2.1:9", "[2001:db8::1]:9", "127.0.0.1:9"])
    #expect(hosts([any], over: .tcp).first == "192.0.2.1:9/tcp")
    #expect(hosts([ethernet, wide]) == ["192.0.2.1:9", "[2001:db8::1]:9"])
    #expect(hosts([any, ethernet]) == hosts([any]))
    // It stands for the addresses of its family: those of the other one need no translation.
    let node = SocketAddress(ipv4: 203, 0, 113, 7, port: 0)
    #expect(hosts([any], node: node) == ["203.0.113.7:9", "[2001:db8::1]:9"])
    #expect(
      hosts([any], node: node, keepsInternal: true) == ["203.0.113.7:9", "[2001:db8::1]:9", "192.0.2.1:9"])
  }

  @Test("STUN servers by name or number, with and without a port")
  func endpoints() {
    func endpoint(_ text: String) -> String? {
      ExternalAddress.endpoint(text).map { "\($0.host) \($0.port)" }
    }
    #expect(endpoint("stun.example.org:19302") == "stun.example.org 19302")
    #expect(endpoint("stun.example.org") == "stun.example.org 3478")
    #expect(endpoint("stun:192.0.2.1:5") == "192.0.2.1 5")
    #expect(endpoint("[2001:db8::1]:7") == "2001:db8::1 7")
    #expect(endpoint("[2001:db8::1]") == "2001:db8::1 3478")
    #expect(endpoint("2001:db8::1") == "2001:db8::1 3478")
    #expect(endpoint("") == nil && endpoint(":5") == nil && endpoint("a:70000") == nil)
  }

  @Test("several addresses: media is heard on all of a family and more, signaling on each")
  func bindAddresses() {
    var configuration = SFUServer.Configuration(keys: [:])
    #expect(configuration.listenAddresses == [configuration.host])
    let four = SocketAddress(ipv4: 192, 0, 2, 1, port: 0)
    configuration.bindAddresses = [four]
    #expect(configuration.mediaHost == four)
    configuration.bindAddresses = [four, SocketAddress(ipv4: 127, 0, 0, 1, port: 0)]
    #expect(configuration.mediaHost.description == "0.0.0.0:0")
    configuration.bindAddresses.append(SocketAddress(ipv6High: 0, low: 1, port: 0))
    #expect(configuration.mediaHost.description == "[::]:0")
  }
}
