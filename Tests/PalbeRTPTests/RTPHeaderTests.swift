import PalbeRTP
import PalbeUnits
import PalbeWire
import Testing

@Suite("RTP header")
struct RTPHeaderTests {
  /// V=2, padding, extension, two CSRCs, marker, type 111; an extension of one word; payload 4 B; padding 3 B.
  static let full = hex(
    """
    b2ef 1234 89abcdef 01020304 0000000a 0000000b bede0001 10 aa 00 00 de ad be ef 00 00 03
    """)

  @Test("RFC 3550 §5.1: every field of a packet with CSRCs, extension and padding")
  func fields() throws {
    let header = try RTPHeader.parse(Self.full.span)
    #expect(header.marker)
    #expect(header.payloadType == PayloadType(111))
    #expect(header.sequenceNumber == SequenceNumber(0x1234))
    #expect(header.timestamp == RTPTimestamp(0x89ab_cdef))
    #expect(header.ssrc == SSRC(0x0102_0304))
    #expect(header.csrcCount == 2)
    #expect(header.contributingSource(1, in: Self.full.span) == SSRC(0x0b))
    #expect(header.contributingSource(2, in: Self.full.span) == nil)
    #expect(header.hasExtension && header.extensionProfile == 0xbede)
    #expect(header.headerByteCount == 28)
    #expect(header.paddingByteCount == 3)
    #expect(header.payloadRange(in: Self.full.span) == 28..<32)
    #expect(header.extensionRange(id: 1, in: Self.full.span) == 25..<26)
    #expect(header.extensionRange(id: 2, in: Self.full.span) == nil)
  }

  @Test("RFC 3550 §5.1: every prefix shorter than the header is refused")
  func truncation() {
    for count in 0..<28 {
      #expect(throws: WireError.self) { try RTPHeader.parse(Self.full.span.extracting(0..<count)) }
    }
  }

  @Test("RFC 3550 §5.1: version 1, no padding length and padding into the header are refused")
  func malformed() {
    var version = Self.full
    version[0] = 0x72
    #expect(throws: WireError.invalid(field: "RTP version", value: 1)) { try RTPHeader.parse(version.span) }
    for padding in [0, 8, 255] as [UInt8] {
      var bytes = Self.full
      bytes[bytes.count - 1] = padding
      #expect(throws: WireError.invalid(field: "RTP padding", value: UInt64(padding))) {
        try RTPHeader.parse(bytes.span)
      }
      // Encrypted, the last byte says nothing.
      #expect((try? RTPHeader.parseProtected(bytes.span))?.paddingByteCount == 0)
    }
    var long = Self.full
    long[22] = 0xff
    #expect(throws: WireError.self) { try RTPHeader.parse(long.span) }
  }

  @Test("A packet of padding alone has an empty payload")
  func paddingAlone() throws {
    let bytes = hex("a060 0001 00000000 00000001 00000004")
    let header = try RTPHeader.parse(bytes.span)
    #expect(header.payloadRange(in: bytes.span) == 12..<12)
  }

  @Test("Fields are changed in place and nothing else is")
  func edits() throws {
    var bytes = Self.full
    var span = bytes.mutableSpan
    span.setRTP(marker: false)
    span.setRTP(payloadType: PayloadType(96))
    span.setRTP(sequenceNumber: SequenceNumber(7))
    span.setRTP(timestamp: RTPTimestamp(8))
    span.setRTP(ssrc: SSRC(9))
    let header = try RTPHeader.parse(bytes.span)
    #expect(!header.marker && header.payloadType == PayloadType(96) && header.ssrc == SSRC(9))
    #expect(header.sequenceNumber == SequenceNumber(7) && header.timestamp == RTPTimestamp(8))
    #expect(bytes[0] == Self.full[0] && bytes[12...] == Self.full[12...])
    var again = bytes.mutableSpan
    again.setRTP(marker: true)
    #expect(try RTPHeader.parse(bytes.span).payloadType == PayloadType(96))
  }

  @Test("RFC 7983 §7 and RFC 5761 §4: the kind of a datagram by its first bytes")
  func demultiplex() {
    #expect(PacketKind([UInt8]().span) == .unknown)
    #expect(PacketKind(([0, 1] as [UInt8]).span) == .stun)
    #expect(PacketKind(([22, 254] as [UInt8]).span) == .dtls)
    #expect(PacketKind(([64, 0] as [UInt8]).span) == .turnChannel)
    #expect(PacketKind(([16, 0] as [UInt8]).span) == .unknown)
    #expect(PacketKind(([192, 0] as [UInt8]).span) == .unknown)
    #expect(PacketKind(([128] as [UInt8]).span) == .unknown)
    for second in UInt8.min...UInt8.max {
      let expected: PacketKind = second >= 192 && second <= 223 ? .rtcp : .rtp
      #expect(PacketKind([0x80, second].span) == expected)
      #expect(isRTCP([0x80, second].span) == (expected == .rtcp))
    }
  }

  @Test("Bytes move within a span, overlapping, and copy into one")
  func moves() {
    var bytes: [UInt8] = Array(0..<10)
    var span = bytes.mutableSpan
    span.moveBytes(2..<8, to: 4)
    #expect(bytes == [0, 1, 2, 3, 2, 3, 4, 5, 6, 7])
    var again = bytes.mutableSpan
    again.copyBytes(from: ([9, 9] as [UInt8]).span, at: 8)
    again.moveBytes(8..<10, to: 0)
    #expect(bytes == [9, 9, 2, 3, 2, 3, 4, 5, 9, 9])
  }
}
