import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeUnits

extension SignalPlane {
  /// Answers a request to publish at once; the track is announced when an offer has a section for it.
  func addTrack(_ request: LiveKit.AddTrackRequest, of participant: Participant, at now: Instant) {
    if let reason = refusal(of: request, by: participant) {
      let isClear = reason == .notAllowed && request.encryption == .none && participant.mustEncrypt
      participant.respond(
        reason, to: .addTrack(request),
        message: isClear ? "this room takes only tracks that are encrypted end to end" : "")
      return
    }
    guard let kind = TrackKind(request.type) else { return }
    let info = trackInfo(for: request)
    let track = PublishedTrack(info, cid: request.cid, kind: kind, publisher: participant)
    participant.uplink.append(track)
    participant.send(
      .trackPublished(
        .with {
          $0.cid = request.cid
          $0.track = info
        }))
    claimSection(for: track, of: participant, at: now)
  }

  private func refusal(
    of request: LiveKit.AddTrackRequest, by participant: Participant
  ) -> LiveKit.RequestResponse.Reason? {
    let uplink = participant.uplink
    let texts = [request.cid, request.name, request.stream]
    // One more codec for a track that is there: each has one here.
    guard TrackKind(request.type) != nil, uplink.track(sid: request.sid) == nil else {
      return .unsupportedType
    }
    guard participant.mayPublish(request.source) else { return .notAllowed }
    guard request.encryption != .none || !participant.mustEncrypt else { return .notAllowed }
    guard !request.cid.isEmpty, texts.allSatisfy(TextLimits.accepts(name:)), request.layers.count <= 8,
      request.simulcastCodecs.count <= 8,
      request.simulcastCodecs.allSatisfy({ TextLimits.accepts(name: $0.cid) && $0.layers.count <= 8 })
    else { return .invalidRequest }
    guard uplink.track(cid: request.cid) == nil else { return .queued }
    guard uplink.pendingTracks.count < context.configuration.maxPendingTracks,
      uplink.tracks.count < context.configuration.maxTracksPerParticipant
    else { return .limitExceeded }
    return nil
  }

  private func trackInfo(for request: LiveKit.AddTrackRequest) -> LiveKit.TrackInfo {
    .with {
      $0.sid = LiveKit.Sid.track(request.type, request.source, using: &context.random)
      $0.version = context.version(after: nil)
      $0.type = request.type
      $0.name = request.name
      $0.muted = request.muted
      $0.width = request.width
      $0.height = request.height
      $0.source = request.source
      $0.layers = request.layers
      $0.stereo = request.stereo
      $0.disableDtx = request.disableDtx
      $0.disableRed = request.disableRed || request.encryption != .none
      $0.encryption = request.encryption
      $0.stream = request.stream
      $0.audioFeatures = Array(request.audioFeatures.prefix(16))
      $0.backupCodecPolicy = request.backupCodecPolicy
      for feature in request.packetTrailerFeatures.prefix(16) {
        if !$0.packetTrailerFeatures.contains(feature) { $0.packetTrailerFeatures.append(feature) }
      }
      $0.codecs = request.simulcastCodecs.map { codec in
        .with {
          $0.mimeType = codec.codec
          $0.cid = codec.cid
          $0.layers = codec.layers
          $0.videoLayerMode = codec.videoLayerMode
        }
      }
    }
  }

  /// An offer may have come before its request: then the section is there and waits.
  private func claimSection(for track: PublishedTrack, of participant: Participant, at now: Instant) {
    guard let offer = participant.negotiation.offer else { return }
    let unclaimed = offer.media.filter { section in
      guard let mid = section.mid, !section.isRejected, TrackKind(section.kind) == track.kind else {
        return false
      }
      return offer.direction(of: section).sends && participant.uplink.track(mid: mid) == nil
    }
    guard
      let section = unclaimed.first(where: { track.isNamed($0.msids.first?.track ?? "") }) ?? unclaimed.first,
      let mid = section.mid,
      // What the answer agreed on, before it knew the track.
      let codec = AcceptedCodec(
        in: section, kind: track.kind, publishing: nil, where: context.configuration.enables)
    else { return }
    participant.bind(track, to: section, mid: mid, codec)
    announce([track], anyGone: false, of: participant, at: now)
  }

  /// Nothing of a muted track is forwarded, whatever its publisher goes on sending.
  func mute(_ request: LiveKit.MuteTrackRequest, of participant: Participant, at now: Instant) {
    guard let track = participant.uplink.track(sid: request.sid) else {
      return participant.respond(.notFound, to: .mute(request))
    }
    guard track.info.muted != request.muted else { return }
    track.info.muted = request.muted
    if track.isAnnounced { participant.room.broadcastInfo(of: participant) }
    for downTrack in track.downTracks {
      if request.muted { downTrack.restart() } else { track.wantKeyFrame(for: downTrack, at: now) }
    }
    if !request.muted { participant.wake(at: now) }
  }

  func updateAudioTrack(_ request: LiveKit.UpdateLocalAudioTrack, of participant: Participant) {
    guard let track = participant.uplink.track(sid: request.trackSid), track.kind == .audio else {
      return participant.respond(.notFound, to: .updateAudioTrack(request))
    }
    track.info.audioFeatures = Array(request.features.prefix(16))
    if track.isAnnounced { participant.room.broadcastInfo(of: participant) }
  }

  func updateVideoTrack(_ request: LiveKit.UpdateLocalVideoTrack, of participant: Participant) {
    guard let track = participant.uplink.track(sid: request.trackSid), track.kind == .video else {
      return participant.respond(.notFound, to: .updateVideoTrack(request))
    }
    track.info.width = request.width
    track.info.height = request.height
    if track.isAnnounced { participant.room.broadcastInfo(of: participant) }
  }
}

extension Participant {
  func respond(
    _ reason: LiveKit.RequestResponse.Reason, id: UInt32 = 0, to request: LiveKit.RequestResponse.Request?,
    message: String = ""
  ) {
    send(
      .requestResponse(
        .with {
          $0.requestId = id
          $0.reason = reason
          $0.message = message
          $0.request = request
        }))
  }
}
