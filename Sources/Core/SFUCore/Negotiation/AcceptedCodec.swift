import PalbeLiveKit
import PalbeRTP
import PalbeSDP
import PalbeUnits

/// The one codec of a section that we forward, with the payload types the client gave it.
struct AcceptedCodec {
  let media: MediaCodec
  let codec: RTPCodec
  /// RFC 4588, where the client offers it for this codec.
  let repairPayloadType: PayloadType?
  /// RFC 2198 around it, where the client offers that and it is wanted.
  var redundantPayloadType: PayloadType?
  /// What our description says of the format beside what the client said, such as "usedtx=1".
  var moreParameters: [String] = []

  /// What a publisher sends in the section: the codec it asked for, else VP8, else the first that we forward. Nil when
  /// there is none.
  init?(
    in section: MediaSection, kind: TrackKind, publishing track: PublishedTrack?,
    where isEnabled: (_ mimeType: String) -> Bool = { _ in true }
  ) {
    let codecs = section.codecs
    let wanted = track?.info.codecs.first.flatMap { MediaCodec(name: $0.mimeType) }
    let offered = codecs.compactMap { MediaCodec(name: $0.name) }.filter {
      $0.kind == kind && isEnabled($0.mimeType)
    }
    let order = [wanted, kind == .audio ? .opus : .vp8].compactMap { $0 } + offered
    guard let media = order.first(where: offered.contains) else { return nil }
    let formats = codecs.filter { MediaCodec(name: $0.name) == media && Self.hasClock($0, kind) }
    // The first of the best ones.
    guard let best = formats.map(media.preference).max(),
      let codec = formats.first(where: { media.preference($0) == best })
    else { return nil }
    self.init(media, codec, in: codecs)
    // Redundant sound is not for encrypted tracks: nobody could take it apart for a client that does not know it.
    if let track, kind == .audio, !track.info.disableRed, track.info.encryption == .none,
      isEnabled(MediaCodec.redundantMimeType)
    {
      redundantPayloadType = Self.redundant(codec, in: codecs)
    }
  }

  /// What a subscriber receives in the section. Nil when it does not know the track's codec.
  init?(in section: MediaSection, receiving track: PublishedTrack) {
    let codecs = section.codecs
    let media = track.section?.media ?? (track.kind == .audio ? .opus : .vp8)
    let formats = codecs.filter { MediaCodec(name: $0.name) == media && Self.hasClock($0, track.kind) }
    let published = track.section?.codec
    guard
      let codec = formats.first(where: { format in published.map { media.isSameFormat(format, $0) } ?? true })
    else { return nil }
    self.init(media, codec, in: codecs)
    if track.section?.redundantPayloadType != nil { redundantPayloadType = Self.redundant(codec, in: codecs) }
  }

  private init(_ media: MediaCodec, _ codec: RTPCodec, in codecs: [RTPCodec]) {
    self.media = media
    self.codec = codec
    repairPayloadType = codecs.first { $0.associatedPayloadType == codec.payloadType }?.payloadType
  }

  private static func hasClock(_ codec: RTPCodec, _ kind: TrackKind) -> Bool {
    codec.clockRate == UInt32(kind.clockRate)
  }

  private static func redundant(_ codec: RTPCodec, in codecs: [RTPCodec]) -> PayloadType? {
    let number = "\(codec.payloadType.rawValue)"
    return codecs.first { red in
      red.isNamed("red") && hasClock(red, .audio)
        && red.parameters.split(separator: "/").allSatisfy { $0 == number }
    }?.payloadType
  }

  /// The client understands NACK for it.
  var hasNACK: Bool { codec.feedback.contains("nack") }

  /// For `MediaSection.answer`: this codec and its repairs, with the feedback we give or take.
  func answer(_ offered: RTPCodec) -> RTPCodec? {
    guard [codec.payloadType, repairPayloadType, redundantPayloadType].contains(offered.payloadType) else {
      return nil
    }
    var accepted = offered
    if offered.payloadType == codec.payloadType { accepted.append(moreParameters) }
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
    RTPExtensionIDs.repairedRIDURI, RTPExtensionIDs.dependencyDescriptorURI,
  ]
}

extension RTPCodec {
  /// Adds parameters that are not there.
  mutating func append(_ more: [String]) {
    for item in more where parameter(String(item.prefix { $0 != "=" })) == nil {
      parameters += parameters.isEmpty ? item : ";" + item
    }
  }
}

extension PublishedTrack {
  private var isStereo: Bool { info.stereo || info.audioFeatures.contains(.stereo) }

  /// What its publisher is asked to do with Opus (RFC 7587 §6.1), by what it wants itself: browsers send in mono unless
  /// they are asked for more.
  var wantedParameters: [String] {
    guard kind == .audio else { return [] }
    let isContinuous = info.disableDtx || info.audioFeatures.contains(.noDtx)
    return (isContinuous ? [] : ["usedtx=1"]) + (isStereo ? ["stereo=1", "maxaveragebitrate=510000"] : [])
  }

  /// What its subscribers are told of it.
  var toldParameters: [String] { kind == .audio && isStereo ? ["sprop-stereo=1"] : [] }
}
