import PalbeSDP
import PalbeUnits
import Testing

struct AnswerTests {
  static let transport = TransportParameters(
    iceUsernameFragment: "serv", icePassword: "0123456789abcdefghijkl",
    fingerprint: Fingerprint(sha256: [UInt8](repeating: 0xab, count: 32)), setup: .passive)

  /// As an SFU answers: Opus and VP8 with its retransmissions, every extension.
  static func answer(_ offer: SessionDescription) -> SessionDescription {
    let media = offer.media.map { section in
      var answer = section.answer(
        direction: offer.direction(of: section) == .sendonly ? .recvonly : .inactive,
        codec: { codec in
          guard ["opus", "vp8", "rtx"].contains(where: codec.isNamed) else { return nil }
          var codec = codec
          codec.feedback.removeAll { $0 == "goog-remb" }
          return codec
        })
      answer.set(transport)
      answer.acceptSimulcast(of: section)
      return answer
    }
    return SessionDescription(
      answering: offer, origin: SDPOrigin(sessionID: 1, version: 1), isICELite: true, media: media)
  }

  @Test(
    "LiveKit protocol §1.4: an answer echoes mids, payload types and extension ids, and keeps every section bundled"
  )
  func echo() throws {
    let offer = try Fixture.simulcast.description
    var answer = Self.answer(offer)
    answer.media[3].candidates = ["candidate:1 1 udp 2130706431 192.0.2.1 7882 typ host"]
    answer.media[3].isEndOfCandidates = true
    try answer.validate(as: .answer)
    #expect(answer.bundle == offer.bundle)
    #expect(answer.isICELite && answer.allowsMixedExtensions)
    #expect(answer.media.map(\.mid) == offer.media.map(\.mid))
    #expect(answer.media.allSatisfy { $0.port == 9 })
    #expect(answer.media[0].direction == .inactive && answer.media[7].direction == .recvonly)
    #expect(answer.media[0].formats == ["111"])
    #expect(answer.media[3].formats == ["96", "97"])
    #expect(answer.media[3].codecs[0].feedback == ["transport-cc", "ccm fir", "nack", "nack pli"])
    for (theirs, ours) in zip(offer.media, answer.media) where theirs.isRTP {
      #expect(ours.headerExtensions == theirs.headerExtensions)
    }
    #expect(answer.media[6].sctpPort == 5_000 && answer.media[6].formats == ["webrtc-datachannel"])
    #expect(
      answer.media[9].rids == [RestrictionID(id: "h", isSent: false), RestrictionID(id: "q", isSent: false)])
    #expect(answer.media[9].simulcast == Simulcast(receive: ["h", "q"]))
    #expect(try SessionDescription(parsing: answer.description) == answer)
  }

  @Test(
    "livekit#4599: unusual payload types are echoed; retransmissions go with their codec; directions turn")
  func unusual() throws {
    let offer = try SessionDescription(parsing: chromeVideo)
    #expect(offer.media[0].sourceGroups == [MediaSourceGroup("FID", [SSRC(1), SSRC(2)])])
    #expect(offer.media[0].codecs[0].feedback == ["nack", "transport-cc"])
    let answer = Self.answer(offer).media[0]
    #expect(answer.formats == ["109", "97"])
    #expect(
      answer.headerExtensions == [
        HeaderExtension(id: 4, uri: "urn:ietf:params:rtp-hdrext:sdes:mid", direction: .recvonly)
      ])
    let without = offer.media[0].answer(
      direction: .recvonly, codec: { $0.isNamed("AV1") || $0.isNamed("rtx") ? $0 : nil })
    #expect(without.formats == ["101"])
    let renumbered = offer.media[0].answer(
      direction: .recvonly, codec: { $0.isNamed("vp8") ? RTPCodec(1, "VP8", clockRate: 90_000) : nil })
    #expect(renumbered.codecs == [RTPCodec(109, "VP8", clockRate: 90_000)])
  }

  @Test("a section without a codec in common stays in the group, inactive; a rejected one stays rejected")
  func nothingInCommon() throws {
    var offer = try SessionDescription(parsing: chromeVideo)
    let none = offer.media[0].answer(direction: .recvonly, codec: { _ in nil })
    #expect(none.direction == .inactive && none.formats == offer.media[0].formats && none.port == 9)
    offer.media[0].port = 0
    #expect(offer.media[0].answer(direction: .recvonly).port == 0)
    #expect(Self.answer(offer).bundle == [])
  }

  @Test("LiveKit protocol §1.4: a sending section carries its msid once, its sources, and their group")
  func sending() throws {
    var section = MediaSection.rtp(.video, mid: "3", direction: .sendonly)
    section.setSending(
      MediaStreamID(stream: "PA_x|TR_y", track: "TR_y"), ssrc: SSRC(10), rtx: SSRC(11), cname: "PA_x")
    section.setSending(
      MediaStreamID(stream: "PA_x|TR_z", track: "TR_z"), ssrc: SSRC(20), rtx: SSRC(21), cname: "PA_x")
    #expect(
      section.description == """
        m=video 9 UDP/TLS/RTP/SAVPF \r
        c=IN IP4 0.0.0.0\r
        a=mid:3\r
        a=sendonly\r
        a=rtcp-mux\r
        a=rtcp-rsize\r
        a=msid:PA_x|TR_z TR_z\r
        a=ssrc-group:FID 20 21\r
        a=ssrc:20 cname:PA_x\r
        a=ssrc:21 cname:PA_x\r

        """)
  }

  @Test("an offer of our own: sections of every direction and one for data, all bundled")
  func ownOffer() throws {
    var audio = MediaSection.rtp(.audio, mid: "0", direction: .recvonly)
    audio.codecs = [
      RTPCodec(
        111, "opus", clockRate: 48_000, channels: 2, parameters: "minptime=10;useinbandfec=1",
        feedback: ["transport-cc"])
    ]
    audio.headerExtensions = [HeaderExtension(id: 1, uri: "urn:ietf:params:rtp-hdrext:ssrc-audio-level")]
    var video = MediaSection.rtp(.video, mid: "1", direction: .inactive)
    video.codecs = [
      RTPCodec(96, "VP8", clockRate: 90_000, feedback: ["nack", "nack pli"]),
      RTPCodec(97, "rtx", clockRate: 90_000, parameters: "apt=96"),
    ]
    video.direction = .sendonly
    var offer = SessionDescription(
      offering: [audio, video, .dataChannel(mid: "2")], origin: SDPOrigin(sessionID: 5, version: 2))
    var transport = Self.transport
    transport.setup = .actpass
    for index in offer.media.indices { offer.media[index].set(transport) }
    try offer.validate(as: .offer)
    #expect(offer.transport == transport)
    #expect(offer.bundle == ["0", "1", "2"])
    let again = try SessionDescription(parsing: offer.description)
    #expect(again == offer)
    #expect(again.media[0].codecs == audio.codecs)
    #expect(again.media[1].codecs == video.codecs)
    #expect(again.index(ofMid: "1") == 1 && again.index(ofMid: "x") == nil)
  }

  @Test("directions turn and combine")
  func directions() {
    #expect(MediaDirection.sendonly.reversed == .recvonly && MediaDirection.inactive.reversed == .inactive)
    #expect(MediaDirection.sendrecv.reversed == .sendrecv)
    #expect(MediaDirection(sends: true, receives: false) == .sendonly)
  }
}

struct ValidationTests {
  static func changed(_ change: (inout SessionDescription) -> Void) throws -> SessionDescription {
    var description = try SessionDescription(parsing: chromeVideo)
    change(&description)
    return description
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var problem: SectionProblem
    var change: @Sendable (inout SessionDescription) -> Void
    var testDescription: String { "\(problem)" }
  }

  @Test(
    "each rule has its problem",
    arguments: [
      Case(problem: .mid) { $0.media[0].mid = nil },
      Case(problem: .mid) { $0.media[0].mid = String(repeating: "m", count: 256) },
      Case(problem: .notBundled) { $0.bundle = [] },
      Case(problem: .notBundled) { $0.bundle = ["w"] },
      Case(problem: .iceCredentials) { $0.media[0].attributes.set("ice-ufrag", nil) },
      Case(problem: .iceCredentials) { $0.media[0].attributes.set("ice-ufrag", "abc") },
      Case(problem: .iceCredentials) { $0.media[0].attributes.set("ice-pwd", "short") },
      Case(problem: .iceCredentials) {
        $0.media[0].attributes.set("ice-pwd", String(repeating: ":", count: 24))
      },
      Case(problem: .fingerprint) { $0.media[0].attributes.set("fingerprint", "sha-256 AB") },
      Case(problem: .setup) { $0.media[0].attributes.set("setup", "holdconn") },
      Case(problem: .rtcpMux) { $0.media[0].isRTCPMultiplexed = false },
      Case(problem: .payloadType) { $0.media[0].formats.append("109") },
      Case(problem: .payloadType) { $0.media[0].formats.append("x") },
      Case(problem: .headerExtension) { $0.media[0].attributes.append("extmap", "4 other") },
      Case(problem: .headerExtension) { $0.media[0].attributes.append("extmap", "0 zero") },
    ])
  func rules(_ rule: Case) throws {
    try Self.changed { _ in }.validate(as: .offer)
    let description = try Self.changed(rule.change)
    #expect(throws: SDPError.section(0, rule.problem)) { try description.validate(as: .offer) }
  }

  @Test("an answer must choose the DTLS role; mids are unique; there is at least one section")
  func more() throws {
    let offer = try Self.changed { _ in }
    #expect(throws: SDPError.section(0, .setup)) { try offer.validate(as: .answer) }
    let twice = try Self.changed { $0.media.append($0.media[0]) }
    #expect(throws: SDPError.section(1, .duplicateMid)) { try twice.validate(as: .offer) }
    let empty = try Self.changed { $0.media = [] }
    #expect(throws: SDPError.noSections) { try empty.validate(as: .offer) }
    let rejected = try Self.changed {
      $0.media.append(
        MediaSection(kind: .video, port: 0, transportProtocol: "UDP/TLS/RTP/SAVPF", formats: ["0"]))
    }
    try rejected.validate(as: .offer)
  }
}
