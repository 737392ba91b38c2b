import PalbeUnits

extension MediaSection {
  /// A section that answers this one (RFC 8829 §5.3.1): the same kind, protocol and mid, on port 9.
  ///
  /// Codecs keep their offered payload types, extensions their offered ids. `codec` returns what to accept of
  /// an offered codec (it may drop feedback or change parameters), or nil; a retransmission codec goes with
  /// the codec it repairs. Where nothing is accepted, the offered formats are echoed and the section is
  /// inactive: a rejected section would leave the BUNDLE group. The transport, and what is sent, is for the
  /// caller to add.
  ///
  /// Accept extensions generously, in inactive sections too: what the first answer leaves out, libwebrtc
  /// leaves out of every later offer, also of sections that are new then (seen with livekit 1.2.1).
  public func answer(
    direction: MediaDirection, codec accepted: (RTPCodec) -> RTPCodec? = { $0 },
    headerExtension isAccepted: (HeaderExtension) -> Bool = { _ in true }
  ) -> MediaSection {
    guard !isRejected else {
      return MediaSection(kind: kind, port: 0, transportProtocol: transportProtocol, formats: formats)
    }
    guard isRTP else {
      var section = MediaSection(kind: kind, transportProtocol: transportProtocol, formats: formats)
      section.mid = mid
      if sctpPort != nil { section.sctpPort = 5_000 }
      section.maxMessageSize = maxMessageSize == nil ? nil : 262_144
      return section
    }
    var section = MediaSection.rtp(kind, mid: mid ?? "", direction: direction)
    section.transportProtocol = transportProtocol
    section.mid = mid
    section.isRTCPReducedSize = isRTCPReducedSize
    section.headerExtensions = headerExtensions.filter(isAccepted).map {
      HeaderExtension(id: $0.id, uri: $0.uri, direction: $0.direction?.reversed)
    }
    var codecs = codecs.compactMap { offered in
      accepted(offered).map { codec in
        var codec = codec
        codec.payloadType = offered.payloadType
        return codec
      }
    }
    let taken = Set(codecs.map(\.payloadType))
    codecs.removeAll { codec in
      guard codec.isNamed("rtx") else { return false }
      return codec.associatedPayloadType.map { !taken.contains($0) } ?? true
    }
    section.codecs = codecs
    if codecs.isEmpty {
      section.formats = formats
      section.direction = .inactive
    }
    return section
  }

  /// Accepts the offered simulcast layers: `a=rid:x recv` and `a=simulcast:recv …` for what the offer sends.
  public mutating func acceptSimulcast(of offer: MediaSection) {
    guard let simulcast = offer.simulcast, !simulcast.send.isEmpty else { return }
    let known = Set(offer.rids.filter(\.isSent).map(\.id))
    let ids = simulcast.send.filter { known.contains($0) }
    rids = ids.map { RestrictionID(id: $0, isSent: false) }
    self.simulcast = Simulcast(receive: ids)
  }
}

extension SessionDescription {
  /// An answer's session part for `offer`, around `media` in the offer's order.
  ///
  /// Its BUNDLE group holds the offered mids; mixed extensions are allowed where the offer allows them.
  public init(answering offer: SessionDescription, origin: SDPOrigin, isICELite: Bool, media: [MediaSection])
  {
    self.init(origin: origin)
    let mids = Set(media.filter { !$0.isRejected }.compactMap(\.mid))
    bundle = offer.bundle.filter { mids.contains($0) }
    allowsMixedExtensions = offer.allowsMixedExtensions
    attributes.append("msid-semantic", " WMS *")
    self.isICELite = isICELite
    self.media = media
  }

  /// An offer of `media`, all on one transport.
  public init(offering media: [MediaSection], origin: SDPOrigin) {
    self.init(origin: origin)
    bundle = media.filter { !$0.isRejected }.compactMap(\.mid)
    allowsMixedExtensions = true
    attributes.append("msid-semantic", " WMS *")
    self.media = media
  }
}
