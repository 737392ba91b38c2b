import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// What a participant's timers found.
enum Expiry {
  /// It must go.
  case departure(Departure)
  /// No ping came in time, but its media still flows.
  case signaling
  /// Nobody answers at its address any more.
  case consent
}

extension SignalPlane {
  /// A client whose signaling broke goes on where it was: same participant, same transport, same tracks.
  ///
  ///     reconnect ─▶ update with everyone, itself included ─▶ room_update
  ///     sync_state, offer with new ICE credentials ◀─
  ///
  /// Whoever left lately is in the snapshot as DISCONNECTED. Source: livekit-protocol, resume.
  func resume(_ details: JoinDetails, on connection: ConnectionID, at now: Instant) {
    let request = details.request
    guard let room = directory.rooms[details.grant.room],
      let participant = room.participant(identity: details.grant.identity),
      request.participantSid.isEmpty || request.participantSid == participant.sid
    else {
      // Its session is gone, so it must begin anew.
      return refuse(connection, reason: .stateMismatch, action: .reconnect)
    }
    // The old connection may be half open.
    if let old = participant.connection { context.events.append(.close(old)) }
    directory.attach(participant, to: connection, at: now)
    context.log(.info, "participant resumed", participant.logFields)
    if participant.simulatedCuts.takeSilent(at: now) { return cutSignaling(of: participant, at: now) }
    participant.send(
      .reconnect(
        .with {
          $0.iceServers = context.iceServers(for: participant)
          $0.clientConfiguration = participant.clientConfiguration
          $0.serverInfo = serverInfo(for: participant)
          $0.lastMessageSeq = participant.dataSequence
        }))
    let known = room.participants.filter { $0 === participant || !$0.grant.hidden }
    let gone = room.departures.infos(
      since: participant.joinedAt, except: Set(room.participants.map(\.identity)))
    participant.send(.update(.with { $0.participants = known.map(\.info) + gone }))
    participant.send(.roomUpdate(.with { $0.room = room.info }))
    if !participant.dataTracks.subscribed.isEmpty { participant.sendDataTrackHandles() }
    if let state = request.syncState { synchronize(state, of: participant, at: now) }
    guard !participant.isClosed else { return }
    if let offer = request.publisherOffer { answer(offer, of: participant, at: now) }
    if participant.offers != nil {
      // A restart of ICE is ours to begin where we offer.
      participant.downTransport.restartICE(using: &context.random)
      directory.insertFragment(of: participant.downTransport, participant)
      participant.offers?.forgetAnswer()
    }
    participant.requestSections()
    if participant.simulatedCuts.takeAnswered(at: now) { cutSignaling(of: participant, at: now) }
  }

  /// What the client believes after a resume.
  func synchronize(_ state: LiveKit.SyncState, of participant: Participant, at now: Instant) {
    let isKnown = state.publishTracks.allSatisfy { published in
      published.track.map { participant.uplink.track(sid: $0.sid) != nil } ?? true
    }
    let isDataKnown = state.publishDataTracks.allSatisfy { published in
      published.info.map { info in participant.dataTracks.published.contains { $0.sid == info.sid } } ?? true
    }
    guard isKnown, isDataKnown else { return remove(participant, .unknownTrack, at: now) }
    // Only what it wants besides: clients were seen to list tracks they do receive as unsubscribed
    // (livekit/client-sdk-swift 860), and what it really unsubscribed from is known here.
    if let subscription = state.subscription, subscription.subscribe {
      updateSubscription(subscription, of: participant, at: now)
    }
    if let subscription = state.dataSubscription {
      updateDataSubscription(
        .with { $0.updates = subscription.updates.filter(\.subscribe) }, of: participant)
    }
    let disabled = Set(state.trackSidsDisabled.prefix(1_000))
    for downTrack in participant.downlink.downTracks where disabled.contains(downTrack.track.sid) {
      if !downTrack.isDisabled { downTrack.isDisabled = true }
    }
    repeatData(state.datachannelReceiveStates, to: participant, at: now)
  }

  func serverInfo(for participant: Participant) -> LiveKit.ServerInfo {
    .with {
      $0.edition = .standard
      $0.version = LiveKit.serverRelease
      $0.protocol = LiveKit.serverProtocol(for: participant.client.protocol)
    }
  }
}

extension Participant {
  /// What this client must do in another way than it would.
  var clientConfiguration: LiveKit.ClientConfiguration? {
    needsRelay ? .with { $0.forceRelay = .enabled } : nil
  }

  /// Both sides know its data channels without a word on the wire.
  var negotiatesChannels: Bool {
    LiveKit.serverProtocol(for: client.protocol) >= LiveKit.negotiatedChannelsProtocol
  }
}
