import PalbeSDP
import PalbeUnits
import PalbeWire
import Testing

struct ClientOfferTests {
  @Test("LiveKit protocol §1.2: the offer of a join has 3 + 3 receiving sections and one for data")
  func join() throws {
    let offer = try Fixture.join.description
    #expect(offer.bundle == ["0", "1", "2", "3", "4", "5", "6"])
    #expect(offer.media.map(\.mid) == offer.bundle)
    #expect(offer.media.map(\.kind) == [.audio, .audio, .audio, .video, .video, .video, .application])
    #expect(
      offer.media.prefix(6).allSatisfy { $0.direction == .recvonly && $0.isRTCPMultiplexed && $0.port == 9 })
    #expect(offer.allowsMixedExtensions && !offer.isICELite)
    #expect(offer.media[6].sctpPort == 5_000)
    #expect(offer.media[6].maxMessageSize == 262_144)
    try offer.validate(as: .offer)
  }

  @Test("RFC 8839 §5.4, RFC 8122 §5: ICE credentials, fingerprint and DTLS role are read")
  func transport() throws {
    let transport = try #require(try Fixture.join.description.transport)
    #expect(transport.iceUsernameFragment == "rva1")
    #expect(transport.icePassword == "Yzwaejma1/lJYeQ1WCuYYcwV")
    #expect(transport.iceOptions == ["trickle", "goog-sped-v1"])
    #expect(transport.setup == .actpass)
    let fingerprint = try #require(transport.fingerprint)
    #expect(fingerprint.algorithm == "sha-256")
    #expect(
      Hex.encode(fingerprint.bytes) == "c06d151e6397023cecbe29ebe7f8d8e2e513965af9b670413ab3bf53bddecee8")
    #expect(fingerprint.description.hasPrefix("sha-256 C0:6D:15:1E:"))
    #expect(fingerprint.description.utf8.count == 8 + 95)
    #expect(Fingerprint(parsing: fingerprint.description) == fingerprint)
    #expect(Fingerprint(parsing: fingerprint.description.lowercased()) == fingerprint)
  }

  @Test("LiveKit protocol §1.4: the client's codecs, in its order")
  func codecs() throws {
    let offer = try Fixture.join.description
    let audio = offer.media[0].codecs
    #expect(audio.map(\.payloadType.rawValue) == [111, 63, 9, 0, 8, 13, 110, 126])
    #expect(
      audio.first
        == RTPCodec(
          111, "opus", clockRate: 48_000, channels: 2, parameters: "minptime=10;useinbandfec=1",
          feedback: ["transport-cc"]))
    #expect(audio.first?.parameter("useinbandfec") == "1")
    let video = offer.media[3].codecs
    #expect(video.count == 23)
    let vp8 = try #require(video.first)
    #expect(vp8.isNamed("vp8") && vp8.payloadType == PayloadType(96) && vp8.clockRate == 90_000)
    #expect(vp8.feedback == ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"])
    #expect(video[1].associatedPayloadType == PayloadType(96))
    #expect(video.filter { $0.isNamed("rtx") }.allSatisfy { $0.associatedPayloadType != nil })
  }

  @Test("LiveKit protocol §1.4: the client's header extensions and their ids")
  func headerExtensions() throws {
    let offer = try Fixture.join.description
    #expect(offer.media[0].headerExtensions.map(\.id) == [1, 2, 3, 4])
    #expect(offer.media[0].headerExtensionID("urn:ietf:params:rtp-hdrext:ssrc-audio-level") == 1)
    let video = offer.media[3]
    #expect(video.headerExtensions.map(\.id) == [14, 2, 13, 3, 5, 6, 7, 8, 4, 10, 11])
    let transportWide = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
    #expect(video.headerExtensionID(transportWide) == 3)
    #expect(video.headerExtensionID("http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time") == 2)
    #expect(video.headerExtensionID("urn:ietf:params:rtp-hdrext:sdes:mid") == 4)
    #expect(video.headerExtensionID("urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id") == 10)
    #expect(video.headerExtensionID("urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id") == 11)
    #expect(video.headerExtensionID("urn:ietf:params:rtp-hdrext:toffset") == 14)
    #expect(video.headerExtensionID("urn:3gpp:unknown") == nil)
  }

  @Test("LiveKit protocol §1.2: a published track is found by the msid's track, which is the cid")
  func publish() throws {
    let offer = try Fixture.publish.description
    try offer.validate(as: .offer)
    #expect(offer.bundle.count == 9)
    #expect(offer.origin.version > (try Fixture.join.description).origin.version)
    let audio = offer.media[7]
    #expect(audio.direction == .sendonly)
    #expect(audio.msids == [MediaStreamID(stream: "-", track: "77e8285a-b3bd-419c-8fe5-38b431729c2b")])
    #expect(audio.sources.map(\.ssrc) == [SSRC(1_473_612_238)])
    #expect(audio.sources.first?.cname == "b8n1y9NH5Bj5SICh")
    #expect(audio.sources.first?.msid == audio.msids.first)
    let video = offer.media[8]
    #expect(video.codecs.map(\.name) == ["VP8"])
    #expect(video.sources.map(\.ssrc) == [SSRC(100_601_676)])
    #expect(video.sourceGroups.isEmpty && video.rids.isEmpty && video.simulcast == nil)
  }

  @Test("RFC 8853: simulcast layers are announced by rid, without sources")
  func simulcast() throws {
    let offer = try Fixture.simulcast.description
    try offer.validate(as: .offer)
    let video = try #require(offer.media.last)
    #expect(video.mid == "9")
    #expect(video.rids == [RestrictionID(id: "h", isSent: true), RestrictionID(id: "q", isSent: true)])
    #expect(video.simulcast == Simulcast(send: ["h", "q"]))
    #expect(video.sources.isEmpty)
    #expect(offer.media[0].candidates.first?.hasPrefix("candidate:") == true)
    #expect(offer.media[0].port != 9)
  }

  @Test("what is parsed is written and parsed again, and is the same", arguments: Fixture.allCases)
  func roundTrip(_ fixture: Fixture) throws {
    let offer = try fixture.description
    #expect(try SessionDescription(parsing: offer.description) == offer)
    // Our form differs from libwebrtc's in nothing at all.
    #expect(try offer.description == fixture.text)
  }

  @Test("every prefix of an offer parses or throws, and never traps")
  func truncation() throws {
    let text = Array(chromeVideo.utf8)
    for length in 0..<text.count {
      let prefix = String(decoding: text.prefix(length), as: UTF8.self)
      guard let description = try? SessionDescription(parsing: prefix) else { continue }
      readEverything(description)
    }
  }

  @Test("500 mutations of an offer never trap")
  func mutations() throws {
    var random = RandomSource(seed: 11)
    let text = Array(chromeVideo.utf8)
    for _ in 0..<500 {
      var mutated = text
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let at = Int.random(in: 0..<mutated.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: mutated[at] = UInt8.random(in: 0...127, using: &random)
        case 1: mutated.remove(at: at)
        default: mutated.insert(Array("09:/; =\n".utf8).randomElement(using: &random) ?? 0, at: at)
        }
      }
      guard let description = try? SessionDescription(parsing: String(decoding: mutated, as: UTF8.self))
      else {
        continue
      }
      readEverything(description)
      #expect(try SessionDescription(parsing: description.description).media == description.media)
    }
  }
}

/// Touches every accessor.
func readEverything(_ description: SessionDescription) {
  _ = (description.bundle, description.transport, description.isICELite)
  try? description.validate(as: .offer)
  for section in description.media {
    _ = (section.mid, section.direction, section.candidates, section.codecs.map(\.associatedPayloadType))
    _ = (section.headerExtensions, section.msids, section.sources, section.sourceGroups, section.rids)
    _ = (section.simulcast, section.sctpPort, section.maxMessageSize, description.transport(of: section))
    _ = section.answer(direction: .inactive).description
  }
}
