import PalbeSDP
import PalbeUnits
import Testing

struct ParserTests {
  static let head = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"

  @Test(
    "RFC 8866 §5: LF ends a line too, lines of other types are dropped, session attributes hold for sections")
  func lenient() throws {
    let text = """
      v=0
      o=mozilla 18446744073709551615 0 IN IP6 ::1
      s=a name
      i=information
      b=AS:100
      t=0 0
      a=sendonly
      a=ice-ufrag:sess
      m=audio 49170/2 RTP/AVP 0 8 x
      i=title
      c=IN IP4 192.0.2.1
      a=ice-ufrag:sect
      m=text 0 TCP t140


      """
    let description = try SessionDescription(parsing: text)
    #expect(description.origin == SDPOrigin(sessionID: .max, version: 0))
    #expect(description.name == "a name")
    #expect(description.media.count == 2)
    let audio = description.media[0]
    #expect(audio.port == 49_170 && audio.transportProtocol == "RTP/AVP" && audio.formats == ["0", "8", "x"])
    #expect(audio.connection == "IN IP4 192.0.2.1")
    #expect(audio.codecs.map(\.name) == ["PCMU", "PCMA"])
    #expect(description.direction(of: audio) == .sendonly && audio.direction == .sendrecv)
    #expect(description.transport(of: audio).iceUsernameFragment == "sect")
    #expect(description.transport(of: description.media[1]).iceUsernameFragment == "sess")
    #expect(description.media[1].kind == .other("text"))
    #expect(description.media[1].isRejected)
  }

  static let malformedHeads: [(String, SDPError)] = [
    ("", .missingLine("v")),
    ("\r\n\r\n", .missingLine("v")),
    ("v=1\r\n", .malformedLine(1)),
    ("o=- 1 1 IN IP4 0.0.0.0\r\n", .malformedLine(1)),
    ("v=0\r\n", .missingLine("o")),
    ("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\n", .missingLine("s")),
    ("v=0\r\nv=0\r\n", .malformedLine(2)),
    ("v=0\r\no=- 1 1 IN IP4\r\n", .malformedLine(2)),
    ("v=0\r\no=- -1 1 IN IP4 0.0.0.0\r\n", .malformedLine(2)),
    ("v=0\r\no=- 18446744073709551616 1 IN IP4 0.0.0.0\r\n", .malformedLine(2)),
  ]

  @Test("a malformed head is a typed error with its line", arguments: malformedHeads)
  func malformedHead(_ text: String, _ error: SDPError) {
    #expect(throws: error) { _ = try SessionDescription(parsing: text) }
  }

  @Test(
    "a malformed line is a typed error with its number",
    arguments: [
      "garbage", "A=x", "a =x", "a=", "a=:x", "a=x\u{0}", "a=x\rb=y", "s=-", "v=0", "o=- 1 1 IN IP4 0.0.0.0",
      "m=audio",
      "m=audio 9 RTP/AVP", "m=audio 65536 RTP/AVP 0", "m=audio +9 RTP/AVP 0", "m=audio 9  RTP/AVP 0",
      "m= 9 RTP/AVP 0",
    ])
  func malformedLine(_ line: String) {
    #expect(throws: SDPError.malformedLine(5)) {
      _ = try SessionDescription(parsing: Self.head + line + "\r\n")
    }
    #expect(throws: SDPError.malformedLine(6)) {
      _ = try SessionDescription(parsing: Self.head + "m=audio 9 RTP/AVP 0\r\n" + line + "\r\n")
    }
    #expect(throws: SDPError.malformedLine(6)) {
      _ = try SessionDescription(parsing: Self.head + "\r\na=x\r\n")
    }
  }

  @Test("a character that joins the colon stays in the value")
  func combiningCharacter() throws {
    let description = try SessionDescription(parsing: Self.head + "a=x:\u{301}y\r\n")
    #expect(description.attributes.first("x") == "\u{301}y")
  }

  @Test("length and sections are limited")
  func limits() throws {
    let long = Self.head + "a=" + String(repeating: "x", count: 256 * 1_024)
    #expect(throws: SDPError.tooLong(length: long.utf8.count, limit: 262_144)) {
      _ = try SessionDescription(parsing: long)
    }
    let section = "m=audio 9 RTP/AVP 0\r\n"
    let full = Self.head + String(repeating: section, count: 256)
    #expect(try SessionDescription(parsing: full).media.count == 256)
    #expect(throws: SDPError.tooManySections(limit: 256)) {
      _ = try SessionDescription(parsing: full + section)
    }
  }

  @Test("accessors skip what they cannot read")
  func strangeAttributes() throws {
    var section = MediaSection(
      kind: .video, transportProtocol: "UDP/TLS/RTP/SAVPF",
      formats: ["96", "96", "128", "-1", "97", "98", "99"])
    for value in ["96 VP8/90000", "96 VP9/90000", "97 H264", "98 X/0", "99 Y/1/0", "x Y/1", "", "256 Z/1"] {
      section.attributes.append("rtpmap", value)
    }
    section.attributes.append("fmtp", "96")
    section.attributes.append("rtcp-fb", "96 nack")
    #expect(section.codecs == [RTPCodec(96, "VP8", clockRate: 90_000, feedback: ["nack"])])

    for value in ["0 a", "256 a", "1/bad a", "1", "1/sendonly/x a", "+3 a", "15 ok:a", "2/recvonly ok:b x=y"]
    {
      section.attributes.append("extmap", value)
    }
    #expect(
      section.headerExtensions == [
        HeaderExtension(id: 15, uri: "ok:a"), HeaderExtension(id: 2, uri: "ok:b", direction: .recvonly),
      ])

    for value in ["x cname:a", "4294967296 cname:a", "5", "5 cname:a b", "5 msid:s t", "6 label:x"] {
      section.attributes.append("ssrc", value)
    }
    #expect(
      section.sources == [
        MediaSource(ssrc: SSRC(5), cname: "a b", msid: MediaStreamID(stream: "s", track: "t")),
        MediaSource(ssrc: SSRC(6)),
      ])
    for value in ["FID", "FID 1 x", "FID 1 2"] { section.attributes.append("ssrc-group", value) }
    #expect(section.sourceGroups == [MediaSourceGroup("FID", [SSRC(1), SSRC(2)])])

    for value in ["h", "h both", "h! send", "q send max-width=320;pt=96"] {
      section.attributes.append("rid", value)
    }
    #expect(section.rids == [RestrictionID(id: "q", isSent: true, restrictions: "max-width=320;pt=96")])
    section.attributes.append("simulcast", "recv ~a,b;c send q")
    #expect(section.simulcast == Simulcast(send: ["q"], receive: ["a", "c"]))
    for value in ["send", "send a send b", "both a", "send a recv", ""] {
      section.attributes.set("simulcast", value)
      #expect(section.simulcast == nil)
    }
  }

  @Test(
    "RFC 8122 §5: a fingerprint of the wrong length or form is nil",
    arguments: [
      "", "sha-256", "sha-256 ", "sha-256 AB", "sha-256 A:B", "sha-1 ABCD", "sha-256 GG:00", "md5 0:0",
    ])
  func fingerprints(_ text: String) {
    #expect(Fingerprint(parsing: text) == nil)
  }
}
