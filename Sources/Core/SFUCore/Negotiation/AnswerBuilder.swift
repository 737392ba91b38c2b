import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeUnits

/// Answers one offer of a participant, section by section.
///
/// A section in which the client sends is matched to a track it asked to publish. One in which it receives carries what
/// it carried before, else a subscription that waits. Everything else is answered inactive, on port 9 and in the
/// BUNDLE group, so that it can be used later; so is a section whose track is gone, for one answer at least.
struct AnswerBuilder {
  let participant: Participant
  let offer: SessionDescription
  let transport: TransportParameters
  /// Which track each section of ours that sends carries.
  private(set) var midToTrackID: [String: String] = [:]
  /// Tracks that this offer gave a section.
  private(set) var published: [PublishedTrack] = []
  /// Subscriptions that this offer gave a section.
  private(set) var placed: [DownTrack] = []

  init(participant: Participant, offer: SessionDescription, transport: TransportParameters) {
    self.participant = participant
    self.offer = offer
    self.transport = transport
  }

  mutating func build(origin: SDPOrigin, candidates: [SocketAddress]) -> SessionDescription {
    negotiateExtensions()
    let receiving = offer.media.filter { $0.isRTP && !$0.isRejected && offer.direction(of: $0).receives }
    participant.downlink.beginOffer(receivingMids: Set(receiving.compactMap(\.mid)))
    var media: [MediaSection] = []
    for section in offer.media { media.append(answer(section)) }
    if let first = media.firstIndex(where: { !$0.isRejected }) {
      media[first].candidates = candidates.map { ICECandidate(.host, $0).attribute }
      media[first].isEndOfCandidates = true
    }
    return SessionDescription(answering: offer, origin: origin, isICELite: true, media: media)
  }

  private func negotiateExtensions() {
    var ids = RTPExtensionIDs()
    for section in offer.media where section.isRTP && !section.isRejected {
      for item in section.headerExtensions where AcceptedCodec.accepts(item, in: section) {
        ids.negotiate(uri: item.uri, id: item.id)
      }
    }
    participant.uplink.ids = ids
  }

  private mutating func answer(_ offered: MediaSection) -> MediaSection {
    guard !offered.isRejected, let kind = TrackKind(offered.kind), let mid = offered.mid else {
      var section = offered.answer(direction: .inactive)
      if !section.isRejected { section.set(transport) }
      if DataParameters(offered) != nil { section.takeMessages(port: offered.sctpPort) }
      return section
    }
    let direction = offer.direction(of: offered)
    var codec: AcceptedCodec?
    var receives = false
    var downTrack: DownTrack?
    if direction.sends, participant.grant.canPublish {
      let track = participant.uplink.match(offered, mid: mid, kind: kind)
      codec = AcceptedCodec(
        in: offered, kind: kind, publishing: track, where: participant.context.configuration.enables)
      receives = codec != nil
      if let accepted = codec, let track {
        publish(track, offered, mid: mid, accepted)
        codec?.moreParameters = track.wantedParameters
      }
    }
    if direction.receives, participant.offers == nil {
      downTrack = fill(offered, mid, kind: kind, beside: codec)
      codec = codec ?? downTrack.flatMap { AcceptedCodec(in: offered, receiving: $0.track) }
    }
    codec?.moreParameters += downTrack?.track.toldParameters ?? []
    // Where nothing flows yet, what could is agreed on all the same.
    codec = codec ?? AcceptedCodec(in: offered, kind: kind, publishing: nil)
    var section = offered.answer(
      direction: MediaDirection(sends: downTrack != nil, receives: receives),
      codec: { codec?.answer($0) }, headerExtension: { AcceptedCodec.accepts($0, in: offered) })
    if receives {
      section.acceptSimulcast(of: offered)
      // The first one is what the client sends.
      if let redundant = codec?.redundantPayloadType {
        section.codecs =
          section.codecs.filter { $0.payloadType == redundant }
          + section.codecs.filter { $0.payloadType != redundant }
      }
    }
    if let downTrack {
      section.carry(downTrack, hasRepairs: downTrack.route?.repairPayloadType != nil)
      midToTrackID[mid] = downTrack.track.sid
    }
    section.set(transport)
    return section
  }

  /// Takes up a section in which the client sends a track.
  ///
  /// A section that no request is there for yet is accepted all the same: clients send offer and request concurrently.
  private mutating func publish(
    _ track: PublishedTrack, _ offered: MediaSection, mid: String, _ codec: AcceptedCodec
  ) {
    if track.section == nil { published.append(track) }
    participant.bind(track, to: offered, mid: mid, codec)
  }

  /// - Parameter published: what the client sends in the same section, where it does.
  private mutating func fill(
    _ offered: MediaSection, _ mid: String, kind: TrackKind, beside published: AcceptedCodec?
  ) -> DownTrack? {
    func codec(_ downTrack: DownTrack) -> AcceptedCodec? {
      guard let codec = AcceptedCodec(in: offered, receiving: downTrack.track),
        published.map({ $0.codec == codec.codec }) ?? true
      else { return nil }
      return codec
    }
    let downTrack = participant.downlink.fill(mid, kind: kind) { codec($0) != nil }
    guard let downTrack, let codec = codec(downTrack) else {
      if published == nil, !participant.downlink.isResting(mid) {
        participant.refuseUnknownCodecs(participant.downlink.unsupported(kind))
      }
      return nil
    }
    if downTrack.placement == nil { placed.append(downTrack) }
    downTrack.place(codec.placement(mid: mid, in: offered))
    return downTrack
  }
}

extension AcceptedCodec {
  /// Where a subscriber receives it.
  func placement(mid: String, in section: MediaSection) -> DownTrack.Placement {
    DownTrack.Placement(
      mid: mid,
      route: DownTrack.Route(
        payloadType: codec.payloadType, redundantPayloadType: redundantPayloadType,
        repairPayloadType: repairPayloadType, ids: ids(in: section), answersNACKs: hasNACK))
  }
}

extension Participant {
  /// Subscriptions that no section of the client's can carry: it is told instead of left without picture
  /// (livekit-protocol.md §4 item 22).
  func refuseUnknownCodecs(_ downTracks: [DownTrack]) {
    for downTrack in downTracks {
      downTrack.isUnsupported = true
      refuseSubscription(to: downTrack.track.sid, .codecUnsupported)
    }
  }

  func refuseSubscription(to sid: String, _ error: LiveKit.SubscriptionError) {
    send(
      .subscriptionResponse(
        .with {
          $0.trackSid = sid
          $0.err = error
        }))
  }
}

extension MediaSection {
  /// Says how large a message may be, and that SCTP has this port on both sides.
  mutating func takeMessages(port: UInt16?) {
    sctpPort = port
    maxMessageSize = UInt64(DataLink.offeredMessageSize)
  }

  /// Names the track that this section of ours sends.
  mutating func carry(_ downTrack: DownTrack, hasRepairs: Bool) {
    let track = downTrack.track
    setSending(
      MediaStreamID(stream: downTrack.streamName, track: track.sid), ssrc: downTrack.ssrc,
      rtx: hasRepairs ? downTrack.repairSSRC : nil, cname: track.publisher.sid)
  }
}

extension DownTrack {
  /// The stream has the track's sid in it: clients tell tracks apart by section and stream, and a section may carry
  /// another track later. A pair of both that they have seen is no new track to those that are made of Rust, so a
  /// repeated subscription has a name of its own; they take the track's sid from elsewhere then. Browsers always tell
  /// a new track, and Firefox finds the sid nowhere else.
  var streamName: String {
    let needsName = isRepeated && subscriber.client.sdk != .js
    return track.publisher.sid + "|" + (needsName ? "again-\(ssrc.rawValue)" : track.sid)
  }
}

extension SessionDescription {
  /// The client's transport and the hash of its certificate; nil for one that cannot be used: we are the DTLS server.
  var usableTransport: (parameters: TransportParameters, fingerprint: Fingerprint)? {
    guard let transport, let fingerprint = transport.fingerprint, fingerprint.algorithm == "sha-256",
      transport.setup != .passive
    else { return nil }
    return (transport, fingerprint)
  }
}

extension Uplink {
  /// The track that a sending section carries: the one it carried, unless its msid names another; the one its msid
  /// names; else the first pending one of its kind.
  func match(_ offered: MediaSection, mid: String, kind: TrackKind) -> PublishedTrack? {
    let name = offered.msids.first?.track ?? ""
    let pending = pendingTracks.filter { $0.kind == kind }
    let named = pending.first { $0.isNamed(name) }
    if let present = track(mid: mid), named == nil, present.kind == kind { return present }
    return named ?? pending.first
  }
}

extension Participant {
  /// Gives the track its section.
  func bind(_ track: PublishedTrack, to offered: MediaSection, mid: String, _ codec: AcceptedCodec) {
    track.section = PublishedTrack.Section(
      mid: mid, media: codec.media, codec: codec.codec, repairPayloadType: codec.repairPayloadType,
      redundantPayloadType: codec.redundantPayloadType, sendsNACKs: codec.hasNACK)
    track.info.mimeType =
      codec.redundantPayloadType == nil ? codec.media.mimeType : MediaCodec.redundantMimeType
    track.info.mid = mid
    let isSimulcast = (offered.simulcast?.send.count ?? 0) > 1
    let hasSizesInOne = !isSimulcast && codec.media.hasSizesInOneStream && track.info.layers.count > 1
    track.info.simulcast = isSimulcast || hasSizesInOne
    for index in track.info.codecs.indices {
      track.info.codecs[index].mid = mid
      track.info.codecs[index].mimeType = codec.media.mimeType
      if hasSizesInOne, track.info.codecs[index].videoLayerMode == .modeUnused {
        track.info.codecs[index].videoLayerMode = .multipleSpatialLayersPerStream
      }
    }
    uplink.setSources(of: track, from: offered, transport: transport)
  }
}
