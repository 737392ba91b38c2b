import PalbeICE
import PalbeRTP
import PalbeSDP
import PalbeUnits

/// Writes our offers: our tracks, then sections to receive in, all on one transport (RFC 8829 §5.2).
struct OfferBuilder: Sendable {
  /// Payload types and extension ids, the same in every section of a kind and in every offer.
  static let opus = PayloadType(111)
  static let vp8 = PayloadType(96)
  static let vp8Repair = PayloadType(97)
  static let audioLevelID: UInt8 = 1
  static let transportSequenceID: UInt8 = 3
  static let midID: UInt8 = 4
  static let canonicalName = "palbe"

  let sessionID: UInt64
  let credentials: ICECredentials
  let fingerprint: [UInt8]
  let candidates: [ICECandidate]
  let announcesAudioLevel: Bool

  /// The description of `sections`; `version` counts the offers of this session from 1.
  func description(of sections: [Section], senders: [MediaSender], version: UInt64) -> String {
    var media = sections.map { section in
      section.kind == .audio ? audio(section, senders) : video(section, senders)
    }
    if !media.isEmpty {
      media[0].candidates = candidates.map(\.attribute)
      media[0].isEndOfCandidates = true
    }
    let origin = SDPOrigin(sessionID: sessionID, version: version)
    return PalbeSDP.SessionDescription(offering: media, origin: origin).description
  }

  private func audio(_ section: Section, _ senders: [MediaSender]) -> MediaSection {
    var media = base(.audio, section)
    media.codecs = [
      RTPCodec(
        Self.opus.rawValue, "opus", clockRate: 48_000, channels: 2, parameters: "minptime=10;useinbandfec=1",
        feedback: ["transport-cc", "nack"])
    ]
    var extensions = commonExtensions
    if announcesAudioLevel || section.use == .receiving {
      extensions.append(HeaderExtension(id: Self.audioLevelID, uri: RTPExtensionIDs.audioLevelURI))
    }
    media.headerExtensions = extensions
    announce(section, senders, in: &media)
    return media
  }

  private func video(_ section: Section, _ senders: [MediaSender]) -> MediaSection {
    var media = base(.video, section)
    let feedback = ["transport-cc", "ccm fir", "nack", "nack pli"]
    media.codecs = [RTPCodec(Self.vp8.rawValue, "VP8", clockRate: 90_000, feedback: feedback)]
    // Of what we send, the same protected bytes go out again; only what we receive is repaired by RTX.
    if section.use == .receiving {
      media.codecs.append(
        RTPCodec(
          Self.vp8Repair.rawValue, "rtx", clockRate: 90_000, parameters: "apt=\(Self.vp8.rawValue)"))
    }
    media.headerExtensions = commonExtensions
    announce(section, senders, in: &media)
    return media
  }

  private var commonExtensions: [HeaderExtension] {
    [
      HeaderExtension(id: Self.transportSequenceID, uri: RTPExtensionIDs.transportSequenceNumberURI),
      HeaderExtension(id: Self.midID, uri: RTPExtensionIDs.midURI),
    ]
  }

  private func base(_ kind: PalbeSDP.MediaKind, _ section: Section) -> MediaSection {
    var media = MediaSection.rtp(
      kind, mid: section.mid, direction: section.use == .receiving ? .recvonly : .sendonly)
    media.set(
      TransportParameters(
        iceUsernameFragment: credentials.usernameFragment, icePassword: credentials.password,
        iceOptions: ["trickle"], fingerprint: Fingerprint(sha256: fingerprint), setup: .actpass))
    return media
  }

  private func announce(_ section: Section, _ senders: [MediaSender], in media: inout MediaSection) {
    guard case .sending(let track) = section.use, let sender = senders.first(where: { $0.track == track })
    else { return }
    media.setSending(
      MediaStreamID(stream: "-", track: sender.cid), ssrc: sender.ssrc, cname: Self.canonicalName)
  }
}
