import PalbeDTLS
import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeUnits

/// Our offers in a session of two connections: one section for each track the client receives.
///
///     wanted ── 10 ms after the join, else 150 ms ──▶ offered ── answer ──▶ settled
///
/// One offer is under way at a time; what changes meanwhile is in the next one. A section whose track is gone is inactive
/// in one offer at least, and is used again for another track of its kind: without a pause some clients see no new track.
struct SubscriberOffers {
  /// An `m=` section of ours.
  struct Section {
    let mid: String
    let kind: TrackKind
    /// The track it was made for, whose sid the client's receiver keeps.
    let firstTrack: String
    /// Nil while inactive.
    var downTrack: DownTrack?
  }

  private static let firstDelay = TimeDelta.milliseconds(10)
  private static let delay = TimeDelta.milliseconds(150)
  private static let answerTimeout = TimeDelta.seconds(15)

  private let sessionID: UInt64
  /// Number of the last offer, and the version of its description.
  private(set) var id: UInt32 = 0
  private(set) var sections: [Section] = []
  /// When the answer to the offer under way must be here.
  private var answerDeadline: Instant?
  /// When to make the next offer.
  private var dueAt: Instant?
  /// Our extension ids.
  static let extensions: [(id: UInt8, uri: String)] = [
    (1, RTPExtensionIDs.audioLevelURI), (2, RTPExtensionIDs.absoluteSendTimeURI),
    (3, RTPExtensionIDs.transportSequenceNumberURI),
    (4, RTPExtensionIDs.midURI), (12, RTPExtensionIDs.dependencyDescriptorURI),
    (13, RTPExtensionIDs.videoOrientationURI),
  ]

  init(sessionID: UInt64) { self.sessionID = sessionID }

  /// The client receives something else from now on.
  mutating func want(at now: Instant) {
    guard dueAt == nil else { return }
    dueAt = now + (id == 0 ? Self.firstDelay : Self.delay)
  }

  var nextDeadline: Instant? { answerDeadline ?? dueAt }

  /// An offer that should have been answered; the client is beyond our help.
  func isOverdue(at now: Instant) -> Bool { answerDeadline.map { now >= $0 } ?? false }

  func isDue(at now: Instant) -> Bool { answerDeadline == nil && (dueAt.map { now >= $0 } ?? false) }

  /// The answer to the offer under way will not come: its signaling broke.
  mutating func forgetAnswer() {
    answerDeadline = nil
    dueAt = nil
  }

  /// True for the answer to the offer under way. Some clients leave the number out.
  mutating func settle(_ answer: LiveKit.SessionDescription) -> Bool {
    guard answerDeadline != nil, answer.id == id || answer.id == 0 else { return false }
    answerDeadline = nil
    return true
  }

  /// The next offer.
  mutating func make(
    for downlink: Downlink, transport: TransportParameters, candidates: [String], at now: Instant
  ) -> SessionDescription {
    dueAt = nil
    answerDeadline = now + Self.answerTimeout
    id += 1
    assign(downlink.downTracks)
    var media = sections.map { section in Self.media(section, transport) }
    var data = MediaSection.dataChannel(
      mid: "data", maxMessageSize: UInt64(DataLink.offeredMessageSize))
    data.set(transport)
    // First, so that every section stays where it was as more of them come (RFC 8829 §5.2.2).
    media.insert(data, at: 0)
    media[0].candidates = candidates
    media[0].isEndOfCandidates = true
    var offer = SessionDescription(
      offering: media, origin: SDPOrigin(sessionID: sessionID, version: UInt64(id)))
    offer.isICELite = true
    return offer
  }

  private mutating func assign(_ downTracks: [DownTrack]) {
    var free = sections.indices.filter { sections[$0].downTrack == nil }
    for index in sections.indices where sections[index].downTrack?.isEnded == true {
      sections[index].downTrack = nil
    }
    for downTrack in downTracks where !sections.contains(where: { $0.downTrack === downTrack }) {
      let (kind, sid) = (downTrack.track.kind, downTrack.track.sid)
      // Where a repeated subscription has no sid in its name, the client finds it in its receiver.
      let place = free.firstIndex { index in
        sections[index].kind == kind && (!downTrack.isRepeated || sections[index].firstTrack == sid)
      }
      if let place {
        sections[free.remove(at: place)].downTrack = downTrack
      } else {
        sections.append(
          Section(mid: "\(sections.count)", kind: kind, firstTrack: sid, downTrack: downTrack))
      }
    }
  }

  private static func media(_ section: Section, _ transport: TransportParameters) -> MediaSection {
    var media = MediaSection.rtp(
      section.kind == .audio ? .audio : .video, mid: section.mid,
      direction: section.downTrack == nil ? .inactive : .sendonly)
    media.headerExtensions = extensions.map { HeaderExtension(id: $0.id, uri: $0.uri) }
    media.codecs = section.kind.offeredCodecs(section.downTrack?.track)
    if let downTrack = section.downTrack { media.carry(downTrack, hasRepairs: section.kind == .video) }
    media.set(transport)
    return media
  }
}

extension TrackKind {
  /// What we offer to send: the track's codec, under numbers that mean one thing each in the whole offer.
  func offeredCodecs(_ track: PublishedTrack?) -> [RTPCodec] {
    let media = track?.section?.media ?? (self == .audio ? .opus : .vp8)
    guard media == .opus else { return Self.withRepairs(media.offer(of: track?.section?.codec)) }
    var opus = RTPCodec(
      111, "opus", clockRate: 48_000, channels: 2, parameters: "minptime=10;useinbandfec=1",
      feedback: ["transport-cc"])
    opus.append(track?.toldParameters ?? [])
    guard track?.section?.redundantPayloadType != nil else { return [opus] }
    return [RTPCodec(63, "red", clockRate: 48_000, channels: 2, parameters: "111/111"), opus]
  }

  private static func withRepairs(_ codec: RTPCodec) -> [RTPCodec] {
    let number = codec.payloadType.rawValue
    return [codec, RTPCodec(number + 1, "rtx", clockRate: 90_000, parameters: "apt=\(number)")]
  }
}

extension MediaCodec {
  /// A video codec in our offers. Formats that differ have numbers that differ, and those that do not one text: in a bundle a
  /// number means one thing (RFC 8843 §9.1).
  fileprivate func offer(of published: RTPCodec?) -> RTPCodec {
    let codec = published ?? RTPCodec(0, rawValue, clockRate: 90_000)
    let profile = self.profile(codec)
    let (number, parameters): (UInt8, String)
    switch self {
    case .opus, .vp8: (number, parameters) = (96, "")
    case .vp9:
      (number, parameters) = (profile == "2" ? 100 : 98, "profile-id=\(profile)")
    case .av1:
      (number, parameters) = (profile == "0" ? 45 : 47, "level-idx=5;profile=\(profile);tier=0")
    case .h264:
      let mode = Self.mode(codec)
      let isWhole = mode == "1"
      // Its level is what the publisher may send; what the client takes is its own answer's (RFC 6184 §8.1).
      let level: String
      switch profile {
      case "42": (number, level) = (isWhole ? 102 : 108, "42e01f")
      case "4d": (number, level) = (isWhole ? 106 : 39, "4d001f")
      case "64": (number, level) = (isWhole ? 123 : 104, "640032")
      default: (number, level) = (125, codec.parameter("profile-level-id") ?? "42e01f")
      }
      parameters = "level-asymmetry-allowed=1;packetization-mode=\(mode);profile-level-id=\(level)"
    }
    return RTPCodec(
      number, rawValue, clockRate: 90_000, parameters: parameters,
      feedback: ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"])
  }
}

extension Participant {
  /// The client receives something else from now on. It will be offered that where offers are ours; else it is asked for
  /// an offer when a section has lost its track: nothing else would make it offer, and see the end of the track.
  func wantOffer(at now: Instant) {
    offers?.want(at: now)
    if let deadline = offers?.nextDeadline { wake(at: deadline) }
    if downlink.hasEmptiedSections, downlink.restDueAt == nil {
      downlink.restDueAt = now + Downlink.restDelay
    }
    if let due = downlink.restDueAt { wake(at: due) }
  }

  /// Asks for the offer in which emptied sections become inactive, when it is time.
  func askForRest(at now: Instant) {
    if downlink.takeRest(at: now) { send(.mediaSectionsRequirement(LiveKit.MediaSectionsRequirement())) }
    if let due = downlink.restDueAt { wake(at: due) }
  }

  /// Makes an offer when one is due. Says so when the last one was not answered.
  func makeOffer(at now: Instant) -> Departure? {
    guard offers != nil else { return nil }
    if offers?.isOverdue(at: now) == true, connection != nil { return .noAnswer }
    if offers?.isDue(at: now) == true, connection != nil { sendOffer(at: now) }
    if let deadline = offers?.nextDeadline, deadline > now { wake(at: deadline) }
    return nil
  }

  private func sendOffer(at now: Instant) {
    let local = downTransport.parameters(context.identity, setup: .actpass)
    let candidates = self.candidates.map { ICECandidate(.host, $0).attribute }
    guard
      let offer = offers?.make(for: downlink, transport: local, candidates: candidates, at: now),
      let id = offers?.id
    else { return }
    send(
      .offer(
        .with {
          $0.type = "offer"
          $0.sdp = offer.description
          $0.id = id
        }))
  }
}

extension SignalPlane {
  /// The client's answer to an offer of ours: what it accepted begins.
  func takeUp(_ message: LiveKit.SessionDescription, of participant: Participant, at now: Instant) {
    guard participant.offers?.settle(message) == true else { return }
    let answer: SessionDescription
    do throws(SDPError) { answer = try SessionDescription(parsing: message.sdp) } catch {
      context.log(.warning, "answer refused", participant.logFields + [("error", "\(error)")])
      return remove(participant, .noAnswer, at: now)
    }
    guard let (remote, fingerprint) = answer.usableTransport else {
      context.log(.warning, "answer without a usable transport", participant.logFields)
      return remove(participant, .noAnswer, at: now)
    }
    let transport = participant.downTransport
    // The certificate stays for the whole session.
    if transport.expectedFingerprint == nil { transport.expectedFingerprint = fingerprint.bytes }
    transport.take(remote)
    if transport.ice.nextCheckAt != nil { participant.wake(at: now) }
    if transport.dataParameters == nil { transport.dataParameters = DataParameters(answer) }
    openData(over: transport, of: participant)
    for section in participant.offers?.sections ?? [] {
      guard let downTrack = section.downTrack, !downTrack.isEnded,
        let index = answer.index(ofMid: section.mid), !answer.media[index].isRejected
      else { continue }
      guard let codec = AcceptedCodec(in: answer.media[index], receiving: downTrack.track) else {
        participant.refuseUnknownCodecs([downTrack])
        continue
      }
      let isNew = downTrack.placement == nil
      downTrack.place(codec.placement(mid: section.mid, in: answer.media[index]))
      if isNew { start([downTrack], of: participant, at: now) }
    }
    participant.wantOfferIfChanged(at: now)
  }
}

extension Participant {
  /// What changed while an offer was under way is in the next one.
  func wantOfferIfChanged(at now: Instant) {
    guard let offers else { return }
    let offered = offers.sections.compactMap(\.downTrack)
    let isSettled =
      offered.allSatisfy { !$0.isEnded }
      && downlink.downTracks.allSatisfy { downTrack in offered.contains { $0 === downTrack } }
    if !isSettled { wantOffer(at: now) }
    if let deadline = offers.nextDeadline { wake(at: deadline) }
  }
}
