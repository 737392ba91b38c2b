import PalbeRTP
import PalbeUnits
import PalbeWire
import Testing

@Suite("RTP header extensions")
struct RTPExtensionTests {
  @Test("RFC 8285 §4.2: all extensions in the one-byte form, written and read")
  func oneByte() throws {
    let (values, ids) = allExtensions()
    let bytes = packet(extensions: values, ids: ids, payload: [1, 2, 3])
    let header = try RTPHeader.parse(bytes.span)
    #expect(header.extensionProfile == 0xbede)
    #expect(ids.read(header, in: bytes.span) == values)
    #expect(RTPPacketWriter.headerByteCount(of: values, ids: ids) == header.headerByteCount)
    #expect(Array(bytes[header.payloadRange(in: bytes.span)]) == [1, 2, 3])
    let expected = hex("bede 0008 10 9e 20 01 32 123456 41 fffe 50 30 60 71 7f")
    #expect(Array(bytes[12..<12 + expected.count]) == expected)
  }

  @Test("RFC 8285 §4.3: an id above 14 makes it the two-byte form")
  func twoByte() throws {
    let (values, ids) = allExtensions(firstID: 14)
    let bytes = packet(extensions: values, ids: ids, payload: [1])
    let header = try RTPHeader.parse(bytes.span)
    #expect(header.extensionProfile == 0x1000)
    #expect(ids.read(header, in: bytes.span) == values)
  }

  @Test("Extensions that were not negotiated are not written; without any there is no extension")
  func notNegotiated() throws {
    let (values, _) = allExtensions()
    let bytes = packet(extensions: values, payload: [1])
    #expect(bytes.count == 13)
    #expect(try !RTPHeader.parse(bytes.span).hasExtension)
  }

  @Test("RFC 8285 §4.2: padding between elements is skipped, id 15 stops the walk")
  func paddingAndStop() throws {
    let bytes = hex("9060 0001 00000000 00000001 bede0003 00 10 aa 00 00 20 bb 00 f0 cc 30 dd 00000000")
    let header = try RTPHeader.parse(bytes.span)
    #expect(header.extensionRange(id: 1, in: bytes.span) == 18..<19)
    #expect(header.extensionRange(id: 2, in: bytes.span) == 22..<23)
    #expect(header.extensionRange(id: 3, in: bytes.span) == nil)
  }

  @Test("RFC 8285 §4.3: a two-byte element may be empty, and its profile's low bits are free")
  func twoByteEmpty() throws {
    let bytes = hex("9060 0001 00000000 00000001 100f0002 01 00 c8 02 aabb 00 00")
    let header = try RTPHeader.parse(bytes.span)
    #expect(header.extensionRange(id: 1, in: bytes.span) == 18..<18)
    #expect(header.extensionRange(id: 200, in: bytes.span) == 20..<22)
  }

  @Test("An element that runs past the extension ends the walk; another profile holds no elements")
  func malformed() throws {
    let long = hex("9060 0001 00000000 00000001 bede0001 10 aa 2f bb 11111111 11111111 11111111 11111111")
    let header = try RTPHeader.parse(long.span)
    #expect(header.extensionRange(id: 1, in: long.span) == 17..<18)
    #expect(header.extensionRange(id: 2, in: long.span) == nil)
    let other = hex("9060 0001 00000000 00000001 abcd0001 10 aa 00 00")
    #expect(try RTPHeader.parse(other.span).extensionRange(id: 1, in: other.span) == nil)
    for length in 0..<4 {
      var bytes = hex("9060 0001 00000000 00000001 1000 0001 01 ff 00 00")
      bytes[17] = UInt8(252 + length)
      #expect(try RTPHeader.parse(bytes.span).extensionRange(id: 1, in: bytes.span) == nil)
    }
  }

  @Test("Values of a wrong length are left out")
  func wrongLength() throws {
    var ids = RTPExtensionIDs()
    ids.transportSequenceNumber = 1
    ids.audioLevel = 2
    let bytes = hex("9060 0001 00000000 00000001 bede0002 12 010203 21 0505 00")
    #expect(ids.read(try RTPHeader.parse(bytes.span), in: bytes.span) == RTPExtensionValues())
  }

  @Test("RFC 6464: level and voice bit; absolute send time in 6.18 seconds; texts of 1 to 16 bytes")
  func values() {
    #expect(AudioLevel(rawValue: 0xff) == AudioLevel(isVoice: true, level: 127))
    #expect(AudioLevel(isVoice: false, level: 200).rawValue == 127)
    #expect(AbsoluteSendTime(Instant.zero + .milliseconds(500)).rawValue == 1 << 17)
    #expect(AbsoluteSendTime(Instant.zero + .seconds(65)).rawValue == 1 << 18)
    #expect(ShortText("") == nil && ShortText("seventeen letters") == nil)
    #expect(ShortText("audio-track-01")?.text == "audio-track-01")
  }

  @Test("Ids are taken from extmap lines")
  func negotiation() {
    var ids = RTPExtensionIDs()
    #expect(ids.negotiate(uri: RTPExtensionIDs.midURI, id: 9) == true)
    #expect(!ids.negotiate(uri: "urn:unknown", id: 3) && !ids.negotiate(uri: RTPExtensionIDs.ridURI, id: 0))
    #expect(ids.mid == 9 && ids.rid == 0)
  }

  @Test("An SFU copies a packet under other ids: CSRCs and payload stay, unknown extensions and padding go")
  func rewrite() throws {
    let source = RTPHeaderTests.full
    let parsed = try RTPHeader.parse(source.span)
    var (values, ids) = allExtensions(firstID: 3)
    values.rid = nil
    var header = parsed
    header.sequenceNumber = SequenceNumber(500)
    header.timestamp = RTPTimestamp(600)
    header.ssrc = SSRC(700)
    header.payloadType = PayloadType(96)
    var target = [UInt8](repeating: 0xff, count: 1_500)
    var span = target.mutableSpan
    let layout = try RTPPacketWriter.rewriteHeader(
      of: source.span, parsed: parsed, as: header, extensions: values, ids: ids, into: &span)
    let written = target.span.extracting(0..<layout.byteCount)
    let result = try RTPHeader.parse(written)
    #expect(result.headerByteCount == layout.headerByteCount && result.csrcCount == 2 && !result.hasPadding)
    #expect(result.contributingSource(0, in: written) == SSRC(0x0a))
    #expect(result.marker && result.ssrc == SSRC(700) && result.sequenceNumber == SequenceNumber(500))
    #expect(result.extensionRange(id: 1, in: written) == nil)
    #expect(ids.read(result, in: written) == values)
    #expect([UInt8](written.extracting(result.payloadRange(in: written))) == [0xde, 0xad, 0xbe, 0xef])
    ids = RTPExtensionIDs()
    var bareTarget = target
    var again = bareTarget.mutableSpan
    let bare = try RTPPacketWriter.rewriteHeader(
      of: source.span, parsed: parsed, as: header, extensions: values, ids: ids, into: &again)
    #expect(bare.headerByteCount == 20)
  }

  @Test("A rewrite into too small a buffer is refused at every size")
  func rewriteTruncated() throws {
    let source = RTPHeaderTests.full
    let parsed = try RTPHeader.parse(source.span)
    let (values, ids) = allExtensions()
    for count in 0..<60 {
      var target = [UInt8](repeating: 0, count: count)
      var span = target.mutableSpan
      #expect(throws: WireError.truncated(needed: 60, have: count)) {
        try RTPPacketWriter.rewriteHeader(
          of: source.span, parsed: parsed, as: parsed, extensions: values, ids: ids, into: &span)
      }
    }
  }
}
