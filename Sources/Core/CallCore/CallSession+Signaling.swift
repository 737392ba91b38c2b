import PalbeFrameEncryption
import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
public import PalbeUnits

/// The signaling side: what the server says, and what we answer.
extension CallSession {
  /// One binary WebSocket message of the server.
  public mutating func handleSignal(_ message: Span<UInt8>, at now: Instant) {
    guard !isEnded else { return }
    guard let response = try? LiveKit.SignalResponse(serialized: message) else {
      // Once joined, what cannot be read is passed over as a message of a later protocol.
      if phase == .joining { end(.protocolViolation, at: now) }
      return
    }
    link.heard(at: now)
    handle(response, at: now)
    sendOffer()
    work(at: now)
  }

  /// The WebSocket is gone. Media that flows goes on; the path's own silence ends it.
  public mutating func signalingClosed(at now: Instant) {
    guard !isEnded else { return }
    link.close()
    if phase != .connected { end(.signalingLost, at: now) }
  }

  /// The next binary WebSocket message for the server.
  public mutating func pollSignal() -> [UInt8]? { link.poll() }

  /// Mutes or unmutes a track of our own; nothing is sent on a muted track.
  public mutating func setMuted(_ track: LocalTrack, _ muted: Bool, at now: Instant) {
    guard let sender = sender(track), sender.isMuted != muted else { return }
    sender.isMuted = muted
    announceMute(sender)
    // Others may have stopped decoding meanwhile.
    if !muted, track == .camera { sender.throttle.request() }
  }

  /// Ends the session: drain signals and datagrams once more, then drop it.
  public mutating func leave(at now: Instant) {
    guard !isEnded else { return }
    sendLeave()
    end(.left, at: now)
  }

  private mutating func handle(_ response: LiveKit.SignalResponse, at now: Instant) {
    if case .leave(let leave) = response.message { return end(.server(code: leave.reason.rawValue), at: now) }
    guard phase != .joining else {
      guard case .join(let join) = response.message else { return end(.protocolViolation, at: now) }
      return handle(join, at: now)
    }
    switch response.message {
    case .answer(let answer): handle(answer, at: now)
    case .trickle(let trickle): handle(trickle, at: now)
    case .update(let update): handle(update.participants, at: now)
    case .trackPublished(let published):
      guard let sender = senders.first(where: { $0.cid == published.cid }), let track = published.track else {
        return
      }
      sender.sid = track.sid
      sender.announcedMute = track.muted
      announceMute(sender)
    case .trackUnpublished(let gone):
      for sender in senders where sender.sid == gone.trackSid {
        sender.sid = nil
        sender.parameters = nil
      }
    case .mute(let mute): handle(mute)
    case .requestResponse(let answer): handle(answer)
    case .speakersChanged(let change):
      let sids = speakers.update(change.speakers)
      report(.activeSpeakersChanged(identities: sids.compactMap { roster.identity(sid: $0) }))
    case .mediaSectionsRequirement(let need):
      negotiation.require(audios: need.numAudios, videos: need.numVideos)
    case .pongResp(let pong): link.received(pong, unixMilliseconds: unixNanoseconds(at: now) / 1_000_000)
    default: break
    }
  }

  private mutating func handle(_ join: LiveKit.JoinResponse, at now: Instant) {
    phase = .joined
    link.open(pingInterval: join.pingInterval, pingTimeout: join.pingTimeout, at: now)
    roster.setLocal(sid: join.participant?.sid ?? "")
    trickle()
    handle(join.otherParticipants, at: now)
  }

  private mutating func handle(_ answer: LiveKit.SessionDescription, at now: Instant) {
    do throws(AnswerError) {
      guard let answer = try negotiation.accept(answer) else { return }
      for sender in senders { sender.parameters = answer.sending[sender.track] }
      receiving = answer.receiving
      transport.begin(answer.transport, at: now)
      bindTracks(at: now)
    } catch {
      end(.protocolViolation, at: now)
    }
  }

  private mutating func handle(_ trickle: LiveKit.TrickleRequest, at now: Instant) {
    guard trickle.target == .publisher, let json = try? LiveKit.CandidateInit(json: trickle.candidateInit),
      let candidate = try? ICECandidate.parse(json.candidate)
    else { return }
    transport.addRemoteCandidate(candidate, at: now)
  }

  private mutating func handle(_ participants: [LiveKit.ParticipantInfo], at now: Instant) {
    for participant in participants {
      for change in roster.update(participant) {
        switch change {
        case .connected(let identity): report(.participantConnected(identity: identity))
        case .disconnected(let identity):
          protection.participantLeft(identity: identity)
          report(.participantDisconnected(identity: identity))
        case .updated(let identity, let audioMuted, let videoEnabled):
          report(
            .participantUpdated(identity: identity, audioMuted: audioMuted, videoEnabled: videoEnabled))
        }
      }
    }
    bindTracks(at: now)
  }

  /// A track that the server does not take. `queued` is one that it has already, and takes.
  private mutating func handle(_ answer: LiveKit.RequestResponse) {
    guard answer.reason != .ok, answer.reason != .queued, let cid = answer.request?.addTrack?.cid,
      let sender = senders.first(where: { $0.cid == cid }), sender.sid == nil, !sender.isRefused
    else { return }
    sender.isRefused = true
    report(.refusedByServer(sender.track, reason: answer.reason.name ?? "\(answer.reason.rawValue)"))
  }

  /// The server mutes or unmutes a track of ours: we obey, and say so.
  private mutating func handle(_ mute: LiveKit.MuteTrackRequest) {
    guard let sender = senders.first(where: { $0.sid == mute.sid }) else { return }
    guard sender.isMuted != mute.muted else { return }
    sender.isMuted = mute.muted
    report(.mutedByServer(sender.track, mute.muted))
    announceMute(sender)
  }

  private mutating func announceMute(_ sender: MediaSender) {
    guard let sid = sender.sid, sender.announcedMute != sender.isMuted else { return }
    sender.announcedMute = sender.isMuted
    link.send(
      .mute(
        .with {
          $0.sid = sid
          $0.muted = sender.isMuted
        }))
  }

  /// Our candidates again, one by one, for servers that look there.
  private mutating func trickle() {
    for (index, candidate) in candidates.enumerated() {
      let json = LiveKit.CandidateInit(candidate: candidate.attribute, sdpMid: "0", sdpMLineIndex: 0).json
      link.send(
        .trickle(
          .with {
            $0.candidateInit = json
            $0.final = index == candidates.count - 1
          }))
    }
  }

  mutating func sendOffer() {
    guard phase != .joining, !isEnded, let offer = negotiation.pollOffer(senders: senders) else { return }
    link.send(.offer(offer))
  }

  mutating func sendLeave() {
    link.send(
      .leave(
        .with {
          $0.reason = .clientInitiated
          $0.action = .disconnect
        }))
  }
}
