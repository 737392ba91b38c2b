import PalbeDTLS
import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeUnits

extension SignalPlane {
  /// Answers a client's offer, announces what it published with it, and starts what it subscribed to.
  func answer(_ message: LiveKit.SessionDescription, of participant: Participant, at now: Instant) {
    let offer: SessionDescription
    do throws(SDPError) {
      offer = try SessionDescription(parsing: message.sdp)
      try offer.validate(as: .offer)
    } catch {
      context.log(.warning, "offer refused", participant.logFields + [("error", "\(error)")])
      return
    }
    guard let (remote, fingerprint) = offer.usableTransport else {
      context.log(.warning, "offer without a usable transport", participant.logFields)
      return
    }
    let transport = participant.transport
    if let previous = participant.negotiation.offer?.transport {
      // The certificate stays for the whole session; new ICE credentials are a restart (RFC 8445 §9).
      if previous.iceUsernameFragment != remote.iceUsernameFragment {
        transport.restartICE(using: &context.random)
        directory.insertFragment(of: transport, participant)
      }
    } else {
      transport.expectedFingerprint = fingerprint.bytes
    }
    transport.take(remote)
    if transport.ice.nextCheckAt != nil { participant.wake(at: now) }
    let isFirst = participant.negotiation.offer == nil
    let gone = withdrawn(by: offer, of: participant)
    let local = transport.parameters(context.identity, setup: .passive)
    var builder = AnswerBuilder(participant: participant, offer: offer, transport: local)
    let origin = participant.negotiation.takeUp(offer)
    let answer = builder.build(origin: origin, candidates: participant.candidates)
    participant.send(
      .answer(
        .with {
          $0.type = "answer"
          $0.sdp = answer.description
          $0.id = message.id
          $0.midToTrackId = builder.midToTrackID
        }))
    if isFirst { sendCandidate(to: participant, answer) }
    if transport.dataParameters == nil { transport.dataParameters = DataParameters(offer) }
    openData(over: transport, of: participant)
    announce(builder.published, anyGone: gone, of: participant, at: now)
    start(builder.placed, of: participant, at: now)
    participant.requestSections()
  }

  /// The client must see our last candidate with `final`; it is the first one again, because an empty one is more than
  /// some clients can read.
  private func sendCandidate(to participant: Participant, _ answer: SessionDescription) {
    guard let index = answer.media.firstIndex(where: { !$0.candidates.isEmpty }),
      let candidate = answer.media[index].candidates.first
    else { return }
    let candidateInit = LiveKit.CandidateInit(
      candidate: candidate, sdpMid: answer.media[index].mid ?? "",
      sdpMLineIndex: UInt16(truncatingIfNeeded: index))
    participant.send(
      .trickle(
        .with {
          $0.candidateInit = candidateInit.json
          $0.target = .publisher
          $0.final = true
        }))
  }

  /// Unpublishes what the offer does not send any more. True when there was something.
  private func withdrawn(by offer: SessionDescription, of participant: Participant) -> Bool {
    var isAny = false
    for track in participant.uplink.tracks {
      guard let mid = track.section?.mid else { continue }
      if let index = offer.index(ofMid: mid), !offer.media[index].isRejected,
        offer.direction(of: offer.media[index]).sends,
        !participant.isReplaced(track, by: offer.media[index])
      {
        continue
      }
      unpublish(track, of: participant)
      isAny = true
    }
    return isAny
  }

  func unpublish(_ track: PublishedTrack, of participant: Participant) {
    let info = track.info
    participant.room.withdraw(track)
    participant.uplink.remove(track, transport: participant.transport)
    context.notify(.trackUnpublished, participant.room, participant, info)
    context.log(.info, "track unpublished", participant.logFields + [("track", track.sid)])
  }

  /// Tells the room what is new, and lets it subscribe.
  func announce(_ tracks: [PublishedTrack], anyGone: Bool, of participant: Participant, at now: Instant) {
    guard anyGone || !tracks.isEmpty else { return }
    for track in tracks {
      track.isAnnounced = true
      context.notify(.trackPublished, participant.room, participant, track.info)
      context.log(.info, "track published", participant.logFields + [("track", track.sid)])
    }
    participant.room.broadcastInfo(of: participant)
    participant.room.noteChange()
    for track in tracks { participant.room.offer(track, at: now) }
  }

  /// Subscriptions that got a section: their publishers learn of them, and are asked for a key frame.
  func start(_ placed: [DownTrack], of participant: Participant, at now: Instant) {
    if participant.downTransport.isConnected { participant.allocate(at: now) }
    for downTrack in placed {
      let track = downTrack.track
      track.wantKeyFrame(for: downTrack, at: now)
      if track.kind == .audio, track.publisher.speechLevel > 0 {
        // Others were told when it began.
        participant.send(.speakersChanged(.with { $0.speakers = [track.publisher.speakerInfo] }))
      }
      guard !track.isSubscribed else { continue }
      track.isSubscribed = true
      track.publisher.send(.trackSubscribed(.with { $0.trackSid = track.sid }))
    }
  }
}

extension Participant {
  /// Asks for an offer with room for the subscriptions that wait for a section, or makes one.
  func requestSections() {
    guard offers == nil else { return wantOffer(at: context.now) }
    guard negotiation.offer != nil, let (audio, video) = downlink.takeRequirement() else { return }
    send(
      .mediaSectionsRequirement(
        .with {
          $0.numAudios = UInt32(audio)
          $0.numVideos = UInt32(video)
        }))
  }

  /// True when the section of a track now carries another one that waits for a section.
  func isReplaced(_ track: PublishedTrack, by offered: MediaSection) -> Bool {
    guard let name = offered.msids.first?.track, !name.isEmpty, !track.isNamed(name) else { return false }
    return uplink.pendingTracks.contains { $0.isNamed(name) }
  }
}
