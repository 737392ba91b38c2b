import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

extension SignalPlane {
  func updateSubscription(
    _ request: LiveKit.UpdateSubscription, of participant: Participant, at now: Instant
  ) {
    let sids = request.trackSids + request.participantTracks.flatMap(\.trackSids)
    for sid in sids.prefix(1_000) {
      guard let track = participant.room.track(sid: sid) else {
        if request.subscribe { participant.refuseSubscription(to: sid, .trackNotfound) }
        continue
      }
      participant.downlink.wish(for: track, request.subscribe)
      if request.subscribe {
        _ = participant.room.subscribe(participant, to: track)
      } else {
        participant.room.unsubscribe(participant, from: track)
      }
    }
    participant.requestSections()
  }

  func updateTrackSettings(
    _ request: LiveKit.UpdateTrackSettings, of participant: Participant, at now: Instant
  ) {
    for sid in request.trackSids.prefix(1_000) {
      guard let track = participant.room.track(sid: sid),
        let downTrack = participant.downlink.subscription(to: track)
      else { continue }
      let isDisabled = request.disabled || request.width == 0 && request.quality == .off
      if downTrack.isDisabled != isDisabled { downTrack.isDisabled = isDisabled }
      downTrack.wantedRank = wantedRank(request, of: track)
      downTrack.wantedFrameRate = request.fps
      downTrack.priority = request.priority
      track.wantsChanged()
      track.wantKeyFrame(for: downTrack, at: now)
    }
    participant.allocate(at: now)
  }

  /// The layer that a subscriber's settings ask for: by its size where that is told, else by its quality.
  private func wantedRank(_ request: LiveKit.UpdateTrackSettings, of track: PublishedTrack) -> Int {
    guard request.width > 0 else {
      switch request.quality {
      case .low: return 0
      case .medium: return 1
      default: return .max
      }
    }
    // A little less is stretched: nobody sees it, and the next size costs several times as much.
    let (width, height) = (UInt64(request.width) * 9, UInt64(request.height) * 9)
    let enough = track.info.layers.filter {
      UInt64($0.width) * 10 >= width && UInt64($0.height) * 10 >= height
    }
    return enough.map { Int($0.quality.rawValue) }.min() ?? .max
  }

  /// Everybody is told all of it again: a KiB counts as much as a message of its own.
  func updateMetadata(
    _ request: LiveKit.UpdateParticipantMetadata, of participant: Participant, at now: Instant
  ) {
    let answer = LiveKit.RequestResponse.Request.updateMetadata(request)
    guard participant.grant.canUpdateOwnMetadata else {
      participant.respond(.notAllowed, id: request.requestId, to: answer)
      return
    }
    let attributes = participant.attributes(changedBy: request.attributes)
    guard TextLimits.accepts(name: request.name), TextLimits.accepts(metadata: request.metadata),
      TextLimits.accepts(attributes: attributes),
      participant.mayBeTold(
        metadata: request.metadata.isEmpty ? participant.metadata : request.metadata, attributes: attributes),
      participant.mayAsk((request.metadata.utf8.count + TextLimits.byteCount(attributes)) / 1_024, at: now)
    else {
      participant.respond(.limitExceeded, id: request.requestId, to: answer)
      return
    }
    if !request.name.isEmpty { participant.name = request.name }
    if !request.metadata.isEmpty { participant.metadata = request.metadata }
    participant.attributes = attributes
    // Some tell their state that way many times a second.
    participant.wantToken(by: now + .seconds(1))
    participant.room.broadcastInfo(of: participant)
    // After the update: clients repeat everything they know of themselves in their next request, as soon as this one
    // is answered. Older ones take any answer for a refusal.
    if participant.client.protocol >= 15 { participant.respond(.ok, id: request.requestId, to: answer) }
  }
}

extension SignalPlane {
  /// A publisher says who may receive its tracks: what is revoked stops at once, what is granted is offered again.
  func updateSubscriptionPermission(
    _ request: LiveKit.SubscriptionPermission, of publisher: Participant, at now: Instant
  ) {
    let before = publisher.permission
    publisher.permission = SubscriptionPermission(request)
    for track in publisher.uplink.tracks where track.isAnnounced {
      for member in publisher.room.participants where member !== publisher {
        let isAllowed = publisher.permission.allows(track, to: member)
        guard isAllowed != before.allows(track, to: member) else { continue }
        member.sendPermission(isAllowed, toReceive: track.sid, of: publisher)
        if !isAllowed { publisher.room.unsubscribe(member, from: track) }
      }
      publisher.room.offer(track, at: now)
    }
    for track in publisher.dataTracks.published { publisher.room.applyPermission(to: track, before: before) }
  }
}

extension Participant {
  /// Tells whether the publisher lets it have the track, where it does not know.
  func sendPermission(_ isAllowed: Bool, toReceive sid: String, of publisher: Participant) {
    guard downlink.noteDenial(of: sid, !isAllowed) else { return }
    send(
      .subscriptionPermissionUpdate(
        .with {
          $0.participantSid = publisher.sid
          $0.trackSid = sid
          $0.allowed = isAllowed
        }))
  }
}
