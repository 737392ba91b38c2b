import PalbeICE
import PalbeUnits
import PalbeWire
import Testing

/// The sample messages of RFC 5769; their padding is not zero, so encoding them again gives other bytes.
enum STUNVector {
  static let password = Array("VOkJxbRl1RmTxUk/WvJxBt".utf8)
  static let transactionID = STUNTransactionID(high: 0xb7e7_a701, low: 0xbc34_d686_fa87_dfae)

  static let request = hex(
    """
    000100582112a442b7e7a701bc34d686fa87dfae80220010 5354554e207465737420636c69656e74
    00240004 6e0001ff 80290008 932ff9b151263b36 00060009 6576746a3a68367659202020
    00080014 9aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a2 80280004 e57a3bcf
    """)
  static let responseIPv4 = hex(
    """
    0101003c2112a442b7e7a701bc34d686fa87dfae8022000b 7465737420766563746f7220 00200008 0001a147e112a643
    00080014 2b91f599fd9e90c38c7489f92af9ba53f06be7d7 80280004 c07d4c96
    """)
  static let responseIPv6 = hex(
    """
    010100482112a442b7e7a701bc34d686fa87dfae8022000b 7465737420766563746f7220
    00200014 0002a1470113a9faa5d3f179bc25f4b5bed2b9d9
    00080014 a382954e4be67bf11784c97c8292c275bfe3ed41 80280004 c8fb0b4c
    """)

  private static func hex(_ text: String) -> [UInt8] { Hex.decode(text.filter { !$0.isWhitespace }) ?? [] }
}

@Suite("RFC 5769: STUN test vectors")
struct STUNVectorTests {
  @Test("RFC 5769 §2.1: a request's attributes, integrity and fingerprint")
  func request() throws {
    let message = try STUNMessage.parse(STUNVector.request)
    #expect(message.messageClass == .request)
    #expect(message.method == STUNMessage.binding)
    #expect(message.transactionID == STUNVector.transactionID)
    #expect(message.software == "STUN test client")
    #expect(message.priority == 0x6e00_01ff)
    #expect(message.role == .controlled(tieBreaker: 0x932f_f9b1_5126_3b36))
    #expect(message.username == Array("evtj:h6vY".utf8))
    #expect(message.hasFingerprint)
    #expect(message.isAuthentic(in: STUNVector.request, key: STUNVector.password))
    #expect(!message.isAuthentic(in: STUNVector.request, key: Array("VOkJxbRl1RmTxUk/WvJxBT".utf8)))
  }

  @Test("RFC 5769 §2.2 and §2.3: mapped addresses of either family")
  func responses() throws {
    let ipv4 = try STUNMessage.parse(STUNVector.responseIPv4)
    #expect(ipv4.messageClass == .success)
    #expect(ipv4.mappedAddress == SocketAddress(ipv4: 192, 0, 2, 1, port: 32_853))
    #expect(ipv4.isAuthentic(in: STUNVector.responseIPv4, key: STUNVector.password))

    let ipv6 = try STUNMessage.parse(STUNVector.responseIPv6)
    #expect(ipv6.mappedAddress == SocketAddress(host: "2001:db8:1234:5678:11:2233:4455:6677", port: 32_853))
    #expect(ipv6.isAuthentic(in: STUNVector.responseIPv6, key: STUNVector.password))
  }

  @Test("RFC 8489 §14.7: any changed byte is noticed", arguments: 0..<108)
  func changedByte(index: Int) {
    var bytes = STUNVector.request
    bytes[index] ^= 0x10
    let message = try? STUNMessage.parse(bytes)
    // The FINGERPRINT attribute's own type may become another one; then integrity still holds or not.
    if let message { #expect(!message.hasFingerprint) }
  }
}
