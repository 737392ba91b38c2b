import PalbeRTP
import PalbeSDP
import PalbeUnits

/// The one codec of a section that we forward, with the payload types the client gave it.
struct AcceptedCodec {
  let codec: RTPCodec
  /// RFC 4588, where the client offers it for this codec.
  let repairPayloadType: PayloadType?

  /// Nil when the section offers none that we forward.
  init?(in section: MediaSection, kind: TrackKind) {
    let codecs = section.codecs
    guard
      let codec = codecs.first(where: {
        $0.isNamed(kind.codecName) && $0.clockRate == UInt32(kind.clockRate)
      })
    else { return nil }
    self.codec = codec
    repairPayloadType = codecs.first { $0.associatedPayloadType == codec.payloadType }?.payloadType
  }

  /// The client understands NACK for it.
  var hasNACK: Bool { codec.feedback.contains("nack") }

  /// For `MediaSection.answer`: this codec and its repairs, with the feedback we give or take.
  func answer(_ offered: RTPCodec) -> RTPCodec? {
    guard offered.payloadType == codec.payloadType || offered.payloadType == repairPayloadType else {
      return nil
    }
    var accepted = offered
    accepted.feedback = offered.feedback.filter {
      // Of the two ways to say what the link carries, the better one.
      Self.feedback.contains($0) || $0 == "goog-remb" && !reportsArrivals
    }
    return accepted
  }

  private var reportsArrivals: Bool { codec.feedback.contains("transport-cc") }

  /// The extensions for packets to a client that has agreed to this codec in `section`.
  func ids(in section: MediaSection) -> RTPExtensionIDs {
    var ids = RTPExtensionIDs()
    for item in section.headerExtensions { ids.negotiate(uri: item.uri, id: item.id) }
    if !reportsArrivals { ids.transportSequenceNumber = 0 }
    // Send times are for a receiver that estimates by itself.
    if ids.transportSequenceNumber != 0 || !codec.feedback.contains("goog-remb") { ids.absoluteSendTime = 0 }
    return ids
  }

  private static let feedback: Set<String> = ["transport-cc", "nack", "nack pli", "ccm fir"]

  /// Extensions we read or write. All of them are accepted in every section, inactive ones too: what a client's first
  /// answer lacks is missing in all its later offers.
  static func accepts(_ headerExtension: HeaderExtension, in section: MediaSection) -> Bool {
    extensions.contains(headerExtension.uri)
      || headerExtension.uri == RTPExtensionIDs.absoluteSendTimeURI
        && !section.headerExtensions.contains { $0.uri == RTPExtensionIDs.transportSequenceNumberURI }
  }

  private static let extensions: Set<String> = [
    RTPExtensionIDs.audioLevelURI, RTPExtensionIDs.videoOrientationURI,
    RTPExtensionIDs.transportSequenceNumberURI, RTPExtensionIDs.midURI, RTPExtensionIDs.ridURI,
    RTPExtensionIDs.repairedRIDURI,
  ]
}
