import PalbeUnits
import Testing

struct SocketAddressTests {
  @Test(
    "RFC 5952: addresses are parsed and written in their shortest form",
    arguments: [
      ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
      ("2001:db8::1", "2001:db8::1"), ("2001:0DB8:0000:0000:0000:0000:0000:0001", "2001:db8::1"),
      ("::", "::"),
      ("::1", "::1"), ("1::", "1::"), ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
      ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
      ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
    ])
  func hosts(_ text: String, _ canonical: String) throws {
    let address = try #require(SocketAddress(host: text, port: 7882))
    #expect(address.host == canonical)
    #expect(SocketAddress(host: canonical, port: 7882) == address)
    #expect(SocketAddress(addressBytes: address.addressBytes, port: 7882) == address)
  }

  @Test(
    "malformed addresses are nil",
    arguments: [
      "", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.", "+1.2.3.4", "1.2.3.-4", " 1.2.3.4", "a.b.c.d", ":",
      ":::", "1:2",
      "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "g::", "::+1", "::-0", ":1:2:3:4:5:6:7",
      "fe80::1%eth0",
      "[::1]", "1:2:3:4:5:6:7:8::", "::1.2.3.4",
    ])
  func malformed(_ text: String) {
    #expect(SocketAddress(host: text, port: 1) == nil)
  }

  @Test("bytes of another length are nil", arguments: [0, 3, 5, 8, 15, 17])
  func wrongLength(_ count: Int) {
    #expect(SocketAddress(addressBytes: [UInt8](repeating: 1, count: count), port: 1) == nil)
  }

  @Test("descriptions carry the port, IPv6 in brackets; loopback is known")
  func descriptions() throws {
    #expect(SocketAddress(ipv4: 192, 0, 2, 7, port: 443).description == "192.0.2.7:443")
    let loopback = try #require(SocketAddress(host: "::1", port: 80))
    #expect(loopback.description == "[::1]:80")
    #expect(loopback.isLoopback)
    #expect(SocketAddress(ipv4: 127, 9, 9, 9, port: 0).isLoopback)
    #expect(!SocketAddress(ipv4: 128, 0, 0, 1, port: 0).isLoopback)
  }
}
