import PalbeCrypto
import PalbeDTLS
import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeSFUCore
import PalbeSRTP
import PalbeUnits
import PalbeWire

/// A track that a scripted client publishes.
struct ScriptedTrack {
  var cid: String
  var kind: MediaKind
  var ssrc: SSRC
  var sequence: UInt16 = 100
  var timestamp: UInt32 = 5_000
  var pictureID: UInt16 = 0x7ffe

  /// What the client asks to publish it in; empty: it does not say.
  var codec = ""
  /// Its number in the packets.
  var number: UInt8?
  var encryption = LiveKit.EncryptionType.custom

  var payloadType: PayloadType { PayloadType(number ?? (kind == .audio ? 111 : 96)) }
}

/// A received RTP packet, in the clear.
struct ReceivedPacket {
  var bytes: [UInt8]
  var header: RTPHeader
  var at: Instant

  var payload: [UInt8] { Array(bytes[header.payloadRange(in: bytes.span)]) }
}

/// A client made of the same parts as a real one: full ICE, DTLS, SRTP, and offers as LiveKit's clients write them.
final class ScriptedClient {
  let identity: String
  /// In the order of their making.
  let number: UInt64
  var connection: ConnectionID
  /// Where its socket is; a client over TCP has the same address in another transport.
  let socketAddress: SocketAddress
  var usesTCP = false
  var address: SocketAddress { usesTCP ? socketAddress.overTCP : socketAddress }
  var ice: ICEAgent
  var dtls: DTLSEndpoint
  var srtp: SRTPSession?
  let certificate: DTLSIdentity
  /// Signal messages since the beginning.
  var messages: [LiveKit.SignalResponse.Message] = []
  var isClosed = false
  var packets: [ReceivedPacket] = []
  var control: [RTCPPacket] = []
  /// SRTP or SRTCP refused these.
  var refused = 0
  var tracks: [ScriptedTrack] = []
  var audioSections = 1
  var videoSections = 1
  /// As Firefox numbers them, the payload types and ids differ from client to client.
  var opusPayloadType: UInt8 = 111
  var vp8PayloadType: UInt8 = 96
  var audioLevelID: UInt8 = 1
  /// Without it the client estimates what its link carries by itself, and says it in REMB.
  var offersTransportFeedback = true
  /// Offered behind VP8, and instead of nothing beside Opus.
  var moreCodecs: [RTPCodec] = []
  /// With `nack` and a retransmission codec, as video has it.
  var offersRTX = true
  /// Publishing sections come after the receiving ones; once given, a mid stays.
  var retiredCids: Set<String> = []
  var answer: SessionDescription?
  var offerVersion: UInt64 = 0
  private var isRestarting = false
  private var transportSequence: UInt16 = 0
  /// Signals that the client wants to send by itself, in reaction to others.
  var reactions: [LiveKit.SignalRequest.Message] = []
  var reoffersOnRequirement = true
  /// The receiving connection of a client with two.
  var receiver: ScriptedClient?
  var answersOffers = true
  var pingsAutomatically = true
  var nextPing = Instant.zero
  /// Its data channels, in a world that has them.
  var channels = ClientChannels()
  var offersData = true
  var answersChecks = true

  init(identity: String, number: UInt64, random: inout RandomSource) throws {
    self.identity = identity
    self.number = number
    connection = ConnectionID(number)
    socketAddress = SocketAddress(ipv4: 10, 0, 0, UInt8(truncatingIfNeeded: number), port: 5_000)
    certificate = try DTLSIdentity(nowUnix: 1_760_000_000, using: &random)
    ice = ICEAgent(
      role: .controlling, local: ICECredentials(using: &random), random: RandomSource(seed: random.next()))
    dtls = try DTLSEndpoint(role: .client, identity: certificate)
  }

  var isUp: Bool { srtp != nil }

  // MARK: Signaling

  func offer() -> SessionDescription {
    offerVersion += 1
    let transport = TransportParameters(
      iceUsernameFragment: ice.local.usernameFragment, icePassword: ice.local.password,
      iceOptions: ["trickle"], fingerprint: Fingerprint(sha256: certificate.fingerprint.bytes),
      setup: .actpass)
    var media: [MediaSection] = []
    for index in 0..<audioSections { media.append(section(.audio, mid: "a\(index)", .recvonly)) }
    for index in 0..<videoSections { media.append(section(.video, mid: "v\(index)", .recvonly)) }
    if offersData { media.append(.dataChannel(mid: "data")) }
    for track in tracks {
      let isRetired = retiredCids.contains(track.cid)
      var sending = section(track.kind, mid: track.cid, isRetired ? .inactive : .sendonly)
      if !isRetired {
        sending.setSending(MediaStreamID(stream: "-", track: track.cid), ssrc: track.ssrc, cname: identity)
      }
      media.append(sending)
    }
    for index in media.indices { media[index].set(transport) }
    return SessionDescription(
      offering: media, origin: SDPOrigin(sessionID: 7, version: offerVersion))
  }

  private func section(_ kind: MediaKind, mid: String, _ direction: MediaDirection) -> MediaSection {
    var section = MediaSection.rtp(kind, mid: mid, direction: direction)
    section.headerExtensions = [
      offersTransportFeedback
        ? HeaderExtension(id: 3, uri: RTPExtensionIDs.transportSequenceNumberURI)
        : HeaderExtension(id: 2, uri: RTPExtensionIDs.absoluteSendTimeURI),
      HeaderExtension(id: 4, uri: RTPExtensionIDs.midURI),
    ]
    if kind == .audio {
      section.headerExtensions.append(HeaderExtension(id: audioLevelID, uri: RTPExtensionIDs.audioLevelURI))
      section.codecs =
        [
          RTPCodec(
            opusPayloadType, "opus", clockRate: 48_000, channels: 2, parameters: "minptime=10;useinbandfec=1",
            feedback: ["transport-cc"]), RTPCodec(0, "PCMU", clockRate: 8_000),
        ] + moreCodecs.filter { $0.clockRate == 48_000 }
    } else {
      section.headerExtensions += [
        HeaderExtension(id: 10, uri: RTPExtensionIDs.ridURI),
        HeaderExtension(id: 11, uri: RTPExtensionIDs.repairedRIDURI),
        HeaderExtension(id: 12, uri: RTPExtensionIDs.dependencyDescriptorURI),
      ]
      section.codecs =
        [
          RTPCodec(
            vp8PayloadType, "VP8", clockRate: 90_000,
            feedback: ["goog-remb"] + (offersTransportFeedback ? ["transport-cc"] : [])
              + ["ccm fir", "nack", "nack pli"])
        ] + (offersRTX ? [RTPCodec(97, "rtx", clockRate: 90_000, parameters: "apt=\(vp8PayloadType)")] : [])
        + moreCodecs.filter { $0.clockRate == 90_000 }
    }
    return section
  }

  func offerMessage() -> LiveKit.SessionDescription {
    .with {
      $0.type = "offer"
      $0.sdp = offer().description
    }
  }

  func addTrack(_ track: ScriptedTrack) -> LiveKit.AddTrackRequest {
    .with {
      $0.cid = track.cid
      $0.name = track.cid
      $0.type = track.kind == .audio ? .audio : .video
      $0.source = track.kind == .audio ? .microphone : .camera
      $0.encryption = track.encryption
      if !track.codec.isEmpty {
        $0.simulcastCodecs = [
          .with {
            $0.codec = track.codec
            $0.cid = track.cid
          }
        ]
      }
    }
  }

  func receive(_ message: LiveKit.SignalResponse.Message, at now: Instant) {
    messages.append(message)
    switch message {
    case .answer(let answer): take(answer, at: now)
    case .offer(let offer):
      guard let receiver, answersOffers, let answer = try? receiver.answer(offer, at: now) else { return }
      reactions.append(.answer(answer))
    case .mediaSectionsRequirement(let requirement) where reoffersOnRequirement:
      audioSections += Int(requirement.numAudios)
      videoSections += Int(requirement.numVideos)
      reactions.append(.offer(offerMessage()))
    default: break
    }
  }

  /// New credentials and a new check of the path, as a client does after its signaling came back.
  func restartICE(at now: Instant, using random: inout RandomSource) {
    ice.restart(local: ICECredentials(using: &random), at: now)
    isRestarting = true
  }

  /// Takes an offer of the server's, as the receiving connection of a client with two; its answer.
  func answer(
    _ message: LiveKit.SessionDescription, refusing refused: Set<String> = [], at now: Instant
  ) throws -> LiveKit.SessionDescription {
    let offer = try SessionDescription(parsing: message.sdp)
    let isFirst = answer == nil
    answer = offer
    let local = TransportParameters(
      iceUsernameFragment: ice.local.usernameFragment, icePassword: ice.local.password,
      fingerprint: Fingerprint(sha256: certificate.fingerprint.bytes), setup: .active)
    var media: [MediaSection] = []
    for section in offer.media {
      let sends = offer.direction(of: section).sends && !refused.contains(section.mid ?? "")
      var answered = section.answer(direction: MediaDirection(sends: false, receives: sends))
      answered.set(local)
      media.append(answered)
    }
    if isFirst, let remote = offer.transport,
      let credentials = ICECredentials(
        usernameFragment: remote.iceUsernameFragment, password: remote.icePassword)
    {
      ice.addLocalCandidate(ICECandidate(.host, socketAddress), base: 0, at: now)
      ice.setRemote(credentials, isLite: offer.isICELite, at: now)
      for line in offer.media.flatMap(\.candidates) {
        if let candidate = try? ICECandidate.parse(line) { ice.addRemoteCandidate(candidate, at: now) }
      }
    }
    let description = SessionDescription(
      answering: offer, origin: SDPOrigin(sessionID: 9, version: UInt64(message.id)), isICELite: false,
      media: media)
    return .with {
      $0.type = "answer"
      $0.sdp = description.description
      $0.id = message.id
    }
  }

  private func take(_ message: LiveKit.SessionDescription, at now: Instant) {
    guard let description = try? SessionDescription(parsing: message.sdp), let remote = description.transport,
      let credentials = ICECredentials(
        usernameFragment: remote.iceUsernameFragment, password: remote.icePassword)
    else { return }
    let isFirst = answer == nil || isRestarting
    isRestarting = false
    answer = description
    guard isFirst else { return }
    ice.addLocalCandidate(ICECandidate(.host, socketAddress), base: 0, at: now)
    ice.setRemote(credentials, isLite: description.isICELite, at: now)
    for line in description.media.flatMap(\.candidates) {
      if let candidate = try? ICECandidate.parse(line) { ice.addRemoteCandidate(candidate, at: now) }
    }
  }

  var nextDeadline: Instant? {
    let deadlines = [ice.nextDeadline, dtls.nextDeadline, pingsAutomatically ? nextPing : nil]
    return deadlines.compactMap { $0 }.min()
  }

  func handleTimeout(at now: Instant) {
    ice.handleTimeout(at: now)
    dtls.handleTimeout(at: now)
    if pingsAutomatically, now >= nextPing {
      nextPing = now + .seconds(5)
      reactions.append(.pingReq(.with { $0.timestamp = now.nanoseconds / 1_000_000 }))
    }
  }

  // MARK: Datagrams

  /// Everything the transport wants to send.
  func poll(at now: Instant) -> [[UInt8]] {
    var datagrams: [[UInt8]] = []
    while let transmit = ice.pollTransmit() { if answersChecks { datagrams.append(transmit.bytes) } }
    if ice.selectedPair != nil, dtls.state == .new { dtls.start(at: now) }
    while let bytes = dtls.pollTransmit() { datagrams.append(bytes) }
    return datagrams
  }

  func receive(_ datagram: [UInt8], from remote: SocketAddress, at now: Instant) {
    var bytes = datagram + [UInt8](repeating: 0, count: 64)
    var buffer = bytes.mutableSpan
    switch PacketKind(datagram.span) {
    case .stun: _ = ice.handle(datagram.span, from: remote, base: 0, at: now)
    case .dtls:
      try? dtls.handle(datagram.span, at: now)
      if dtls.state == .connected, srtp == nil { makeSRTP() }
    case .rtp:
      guard let count = try? srtp?.unprotectRTP(&buffer, count: datagram.count) else { return refused += 1 }
      let clear = Array(bytes[..<count])
      guard let header = try? RTPHeader.parse(clear.span) else { return refused += 1 }
      packets.append(ReceivedPacket(bytes: clear, header: header, at: now))
    case .rtcp:
      guard let count = try? srtp?.unprotectRTCP(&buffer, count: datagram.count) else { return refused += 1 }
      let clear = Array(bytes[..<count])
      var reader = RTCPReader(clear.span)
      while let packet = try? reader.next() { control.append(packet) }
    default: break
    }
  }

  private func makeSRTP() {
    guard let keys = try? dtls.exportKeyingMaterial(), let profile = SRTPProfile(rawValue: keys.profile)
    else {
      return
    }
    srtp = try? SRTPSession(
      profile: profile, localMasterKey: keys.localKey.span, localMasterSalt: keys.localSalt.span,
      remoteMasterKey: keys.remoteKey.span, remoteMasterSalt: keys.remoteSalt.span)
  }

  /// One protected media packet of a track.
  func media(_ index: Int, payload: [UInt8], marker: Bool = true) throws -> [UInt8] {
    var header = RTPHeader(
      marker: marker, payloadType: tracks[index].payloadType,
      sequenceNumber: SequenceNumber(tracks[index].sequence),
      timestamp: RTPTimestamp(tracks[index].timestamp), ssrc: tracks[index].ssrc)
    header.hasPadding = false
    tracks[index].sequence &+= 1
    var values = RTPExtensionValues()
    values.transportSequenceNumber = transportSequence
    transportSequence &+= 1
    if tracks[index].kind == .audio { values.audioLevel = AudioLevel(isVoice: true, level: 30) }
    var ids = RTPExtensionIDs()
    ids.audioLevel = 1
    ids.transportSequenceNumber = 3
    let clear = [UInt8](capacity: 1_400) { output in
      RTPPacketWriter.writeHeader(header, extensions: values, ids: ids, into: &output)
      for byte in payload { output.append(byte) }
    }
    return try protected(clear)
  }

  func protected(_ clear: [UInt8]) throws -> [UInt8] {
    var bytes = clear + [UInt8](repeating: 0, count: 16)
    var buffer = bytes.mutableSpan
    let count = try srtp?.protectRTP(&buffer, count: clear.count) ?? 0
    return Array(bytes[..<count])
  }

  /// One protected compound RTCP packet.
  func controlPacket(_ packets: [RTCPPacket]) throws -> [UInt8] {
    let compound = RTCPPacket.compound(packets)
    var bytes = compound + [UInt8](repeating: 0, count: 20)
    var buffer = bytes.mutableSpan
    let count = try srtp?.protectRTCP(&buffer, count: compound.count) ?? 0
    return Array(bytes[..<count])
  }

  /// The packets of one VP8 frame, of `count` packets with `size` bytes behind their descriptors.
  func videoFrame(_ index: Int, isKeyFrame: Bool, packets count: Int = 2, size: Int = 600) throws -> [[UInt8]]
  {
    tracks[index].pictureID = (tracks[index].pictureID &+ 1) & 0x7fff
    tracks[index].timestamp &+= 3_000
    var datagrams: [[UInt8]] = []
    for number in 0..<count {
      let descriptor = VP8PayloadDescriptor(
        startsPartition: number == 0, pictureID: tracks[index].pictureID)
      var body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ Int(tracks[index].sequence)) }
      if number == 0 { body[0] = isKeyFrame ? 0x10 : 0x11 }
      let payload = [UInt8](capacity: size + 8) { output in
        descriptor.write(into: &output)
        for byte in body { output.append(byte) }
      }
      datagrams.append(try media(index, payload: payload, marker: number == count - 1))
    }
    return datagrams
  }

  // MARK: What it saw

  func updates(of identity: String) -> [LiveKit.ParticipantInfo] {
    messages.flatMap { message -> [LiveKit.ParticipantInfo] in
      if case .update(let update) = message { return update.participants.filter { $0.identity == identity } }
      return []
    }
  }

  var join: LiveKit.JoinResponse? {
    for message in messages { if case .join(let join) = message { return join } }
    return nil
  }

  var leaves: [LiveKit.LeaveRequest] {
    messages.compactMap { if case .leave(let leave) = $0 { leave } else { nil } }
  }

  var answers: [LiveKit.SessionDescription] {
    messages.compactMap { if case .answer(let answer) = $0 { answer } else { nil } }
  }

  var requirements: [LiveKit.MediaSectionsRequirement] {
    messages.compactMap { if case .mediaSectionsRequirement(let value) = $0 { value } else { nil } }
  }

  var offers: [LiveKit.SessionDescription] {
    messages.compactMap { if case .offer(let offer) = $0 { offer } else { nil } }
  }

  var refusals: [LiveKit.RequestResponse] {
    messages.compactMap { if case .requestResponse(let value) = $0 { value } else { nil } }
  }

  var keyFrameRequests: Int {
    control.count { if case .pictureLossIndication = $0 { true } else { false } }
  }

  func packets(payloadType: UInt8) -> [ReceivedPacket] {
    packets.filter { $0.header.payloadType.rawValue == payloadType }
  }
}

extension ScriptedClient {
  /// An offer whose last section has two layers, named by RID alone as LiveKit's clients do.
  func simulcastOffer(_ rids: [String] = ["q", "f"]) throws -> String {
    var description = offer()
    let last = description.media.count - 1
    description.media[last].sources = []
    description.media[last].rids = rids.map { RestrictionID(id: $0, isSent: true) }
    description.media[last].simulcast = Simulcast(send: rids)
    return description.description
  }

  func layerPacket(_ layer: inout ScriptedLayer, isKeyFrame: Bool) throws -> [UInt8] {
    let header = RTPHeader(
      marker: true, payloadType: PayloadType(96), sequenceNumber: SequenceNumber(layer.sequence),
      timestamp: RTPTimestamp(layer.timestamp), ssrc: SSRC(layer.ssrc))
    layer.sequence &+= 1
    layer.timestamp &+= 3_000
    layer.pictureID &+= 1
    var values = RTPExtensionValues()
    values.mid = ShortText(tracks[0].cid)
    values.rid = ShortText(layer.rid)
    var ids = RTPExtensionIDs()
    ids.mid = 4
    ids.rid = 10
    let clear = [UInt8](capacity: 200) { output in
      RTPPacketWriter.writeHeader(header, extensions: values, ids: ids, into: &output)
      VP8PayloadDescriptor(startsPartition: true, pictureID: layer.pictureID).write(into: &output)
      output.append(isKeyFrame ? 0x10 : 0x11)
      for _ in 0..<20 { output.append(UInt8(truncatingIfNeeded: layer.ssrc)) }
    }
    return try protected(clear)
  }
}
