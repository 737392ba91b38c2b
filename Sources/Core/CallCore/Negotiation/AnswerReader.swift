import PalbeDTLS
import PalbeICE
import PalbeRTP
import PalbeSDP
import PalbeUnits

/// Takes an answer apart (RFC 8829 §5.8), by the sections that were offered.
enum AnswerReader {
  /// Candidates of a description that are read.
  private static let candidateLimit = 32

  static func read(
    _ text: String, trackSids: [String: String], offered: [Section]
  ) throws(AnswerError) -> Answer {
    let description: PalbeSDP.SessionDescription
    do { description = try PalbeSDP.SessionDescription(parsing: text) } catch { throw .malformed }
    guard description.media.count == offered.count else { throw .sections }
    var answer = Answer(transport: try transport(of: description))
    for (section, media) in zip(offered, description.media) {
      guard !media.isRejected else { continue }
      guard media.mid == section.mid else { throw .sections }
      let direction = description.direction(of: media)
      switch section.use {
      case .sending(let track):
        guard direction.receives, let parameters = sending(media, section) else { continue }
        answer.sending[track] = parameters
      case .receiving:
        guard direction.sends, let sid = trackSids[section.mid] ?? trackSid(of: media) else { continue }
        answer.receiving[section.mid] = receiving(media, section, sid: sid)
      }
    }
    return answer
  }

  private static func transport(
    of description: PalbeSDP.SessionDescription
  ) throws(AnswerError) -> TransportDescription {
    guard let parameters = description.transport,
      let credentials = ICECredentials(
        usernameFragment: parameters.iceUsernameFragment, password: parameters.icePassword),
      let fingerprint = parameters.fingerprint, fingerprint.algorithm == "sha-256",
      let setup = parameters.setup, setup != .actpass
    else { throw .transport }
    let lines = description.media.flatMap(\.candidates).prefix(candidateLimit)
    return TransportDescription(
      credentials: credentials, isLite: description.isICELite, fingerprint: fingerprint.bytes,
      isActive: setup == .active, candidates: lines.compactMap { try? ICECandidate.parse($0) },
      isComplete: description.media.contains(where: \.isEndOfCandidates))
  }

  private static func sending(_ media: MediaSection, _ section: Section) -> SendingParameters? {
    guard let codec = codec(of: media, section.kind) else { return nil }
    var ids = RTPExtensionIDs()
    for element in media.headerExtensions { _ = ids.negotiate(uri: element.uri, id: element.id) }
    return SendingParameters(
      payloadType: codec.payloadType, extensionIDs: ids, mid: ShortText(section.mid))
  }

  private static func receiving(_ media: MediaSection, _ section: Section, sid: String)
    -> ReceivingParameters?
  {
    guard let codec = codec(of: media, section.kind) else { return nil }
    let repair = media.codecs.first { $0.associatedPayloadType == codec.payloadType }
    let pair = media.sourceGroups.first { $0.semantics == "FID" && $0.ssrcs.count == 2 }
    let stream = media.msids.first?.stream.split(separator: "|").first.map(String.init)
    return ReceivingParameters(
      sid: sid, participantSid: stream.flatMap { $0.hasPrefix("PA_") ? $0 : nil },
      ssrc: pair?.ssrcs[0] ?? media.sources.first?.ssrc, repairSSRC: pair?.ssrcs[1],
      payloadType: codec.payloadType, repairPayloadType: repair?.payloadType,
      repairs: codec.feedback.contains("nack"))
  }

  /// The sid in an `a=msid`, where the answer's map lacks it.
  private static func trackSid(of media: MediaSection) -> String? {
    guard let track = media.msids.first?.track, track.hasPrefix("TR_") else { return nil }
    return track
  }

  private static func codec(of media: MediaSection, _ kind: MediaKind) -> RTPCodec? {
    let name = kind == .audio ? "opus" : "VP8"
    return media.codecs.first { $0.isNamed(name) }
  }
}
