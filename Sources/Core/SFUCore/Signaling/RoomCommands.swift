import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// An operator's commands.
extension SignalPlane {
  /// Nil: the answer comes later.
  func carryOut(_ command: RoomCommand, as id: CommandID, at now: Instant) -> RoomAnswer? {
    do throws(RoomRefusal) { return try answer(command, as: id, at: now) } catch { return .refused(error) }
  }

  private func answer(_ command: RoomCommand, as id: CommandID, at now: Instant) throws(RoomRefusal)
    -> RoomAnswer?
  {
    switch command {
    case .create(let settings): return .room(try create(settings, at: now).info)
    case .list(let names):
      let rooms =
        names.isEmpty ? Array(directory.rooms.values) : Set(names).compactMap { directory.rooms[$0] }
      return .rooms(rooms.sorted { $0.name < $1.name }.map(\.info))
    case .delete(let name):
      let room = try room(name)
      for participant in room.participants {
        remove(participant, .roomDeleted, at: now, keepingRoom: true)
      }
      end(room, .apiDelete, at: now)
      return .done
    case .listParticipants(let name): return .participants(try room(name).participants.map(\.info))
    case .participant(let name, let identity): return .participant(try participant(name, identity).info)
    case .remove(let name, let identity):
      remove(try participant(name, identity), .removed, at: now)
      return .done
    case .mute(let name, let identity, let sid, let isMuted):
      return .track(try mute(sid, isMuted, of: try participant(name, identity), at: now))
    case .update(let name, let identity, let change):
      return .participant(try update(try participant(name, identity), change, at: now))
    case .subscribe(let name, let identity, let tracks, let isSubscribed):
      let request = LiveKit.UpdateSubscription.with {
        $0.trackSids = tracks
        $0.subscribe = isSubscribed
      }
      updateSubscription(request, of: try participant(name, identity), at: now)
      return .done
    case .sendData(let request):
      try send(request, at: now)
      return .done
    case .setMetadata(let name, let metadata):
      let room = try room(name)
      guard TextLimits.accepts(metadata: metadata) else { throw .tooLong(field: "metadata") }
      room.metadata = metadata
      room.broadcast()
      return .room(room.info)
    case .move(let name, let identity, let destination):
      try move(try participant(name, identity), to: destination, at: now)
      return .done
    case .call(let request):
      try call(request, as: id, at: now)
      return nil
    }
  }

  /// Rooms live on workers, and a transport cannot change its worker: the participant gets a token for the other room and
  /// joins there anew, as its SDK does after any `leave` with RECONNECT. What it publishes it publishes again.
  private func move(_ participant: Participant, to room: String, at now: Instant) throws(RoomRefusal) {
    guard let connection = participant.connection else { throw .notReachable }
    var grant = participant.presentGrant
    grant.room = room
    context.events.append(.refreshToken(connection, grant))
    remove(participant, .moved, at: now)
  }

  /// A packet without a sender.
  private func send(_ request: LiveKit.SendDataRequest, at now: Instant) throws(RoomRefusal) {
    let room = try room(request.room)
    guard request.data.count <= DataLink.offeredMessageSize else { throw .tooLong(field: "data") }
    // Who did not get our answer asks again.
    guard request.nonce.isEmpty || room.nonces.insert(request.nonce) else { return }
    let packet = LiveKit.DataPacket.with {
      $0.kind = request.kind == .lossy ? .lossy : .reliable
      $0.destinationIdentities = request.destinationIdentities
      $0.value = .user(
        .with {
          $0.payload = request.data
          $0.destinationSids = request.destinationSids
          $0.destinationIdentities = request.destinationIdentities
          $0.topic = request.topic
          $0.nonce = request.nonce
        })
    }
    room.deliver(packet, request.kind == .lossy ? .lossy : .reliable, from: nil, at: now)
  }

  private func room(_ name: String) throws(RoomRefusal) -> Room {
    guard let room = directory.rooms[name] else { throw .noSuchRoom }
    return room
  }

  func participant(_ name: String, _ identity: String) throws(RoomRefusal) -> Participant {
    guard let participant = try room(name).participant(identity: identity) else { throw .noSuchParticipant }
    return participant
  }

  private func create(_ settings: RoomSettings, at now: Instant) throws(RoomRefusal) -> Room {
    guard TextLimits.accepts(name: settings.name) else { throw .tooLong(field: "name") }
    guard TextLimits.accepts(metadata: settings.metadata ?? "") else { throw .tooLong(field: "metadata") }
    let existing = directory.rooms[settings.name]
    guard existing != nil || !context.isDraining else { throw .draining }
    guard let room = existing ?? makeRoom(named: settings.name, at: now) else { throw .tooManyRooms }
    apply(settings, to: room)
    if room.requiresE2EE { unpublishClearTracks(in: room) }
    if existing == nil { directory.wait(room, afterDeparture: false, from: now) }
    return room
  }

  /// What was published in the clear before the room required encryption ends.
  private func unpublishClearTracks(in room: Room) {
    for participant in room.participants {
      let clear = participant.uplink.tracks.filter { $0.info.encryption == .none }
      let clearData = participant.dataTracks.published.filter { $0.info.encryption == .none }
      guard !clear.isEmpty || !clearData.isEmpty else { continue }
      for track in clear { withdraw(track, of: participant) }
      unpublish(clearData, of: participant)
      room.broadcastInfo(of: participant)
    }
  }

  /// Ends a track that its publisher goes on with, which is told.
  private func withdraw(_ track: PublishedTrack, of participant: Participant) {
    unpublish(track, of: participant)
    participant.send(.trackUnpublished(.with { $0.trackSid = track.sid }))
  }

  /// What is not there stays, and so does a text that is too long.
  func apply(_ settings: RoomSettings, to room: Room) {
    if let seconds = settings.emptyTimeout { room.emptyTimeout = .seconds(Int(seconds)) }
    if let seconds = settings.departureTimeout { room.departureTimeout = .seconds(Int(seconds)) }
    if let count = settings.maxParticipants, count > 0 {
      room.maxParticipants = min(Int(count), context.configuration.maxParticipantsPerRoom)
    }
    if let requires = settings.requiresE2EE { room.requiresE2EE = requires || room.requiresE2EE }
    if let metadata = settings.metadata, metadata != room.metadata, TextLimits.accepts(metadata: metadata) {
      room.metadata = metadata
      room.broadcast()
    }
  }

  /// The publisher is asked and obeys; others are told at once.
  private func mute(
    _ sid: String, _ isMuted: Bool, of participant: Participant, at now: Instant
  ) throws(RoomRefusal) -> LiveKit.TrackInfo {
    guard let track = participant.uplink.track(sid: sid) else { throw .noSuchTrack }
    guard isMuted || !track.info.muted || context.configuration.allowsRemoteUnmute else {
      throw .mayNotUnmute
    }
    if track.info.muted != isMuted {
      let request = LiveKit.MuteTrackRequest.with {
        $0.sid = sid
        $0.muted = isMuted
      }
      participant.send(.mute(request))
      mute(request, of: participant, at: now)
    }
    return track.info
  }

  private func update(
    _ participant: Participant, _ change: ParticipantChange, at now: Instant
  ) throws(RoomRefusal) -> LiveKit.ParticipantInfo {
    let attributes = participant.attributes(changedBy: change.attributes)
    guard TextLimits.accepts(name: change.name ?? "") else { throw .tooLong(field: "name") }
    guard TextLimits.accepts(metadata: change.metadata ?? "") else { throw .tooLong(field: "metadata") }
    guard TextLimits.accepts(attributes: attributes) else { throw .tooLong(field: "attributes") }
    guard participant.mayBeTold(metadata: change.metadata ?? participant.metadata, attributes: attributes)
    else {
      throw .tooLong(field: "all metadata of the room together")
    }
    if let name = change.name { participant.name = name }
    if let metadata = change.metadata { participant.metadata = metadata }
    participant.attributes = attributes
    if let permission = change.permission { apply(permission, to: participant, at: now) }
    participant.wantToken(by: now)
    participant.room.broadcastInfo(of: participant)
    return participant.info
  }

  /// What is taken away stops at once; what is given works from now on.
  private func apply(
    _ permission: LiveKit.ParticipantPermission, to participant: Participant, at now: Instant
  ) {
    let couldSubscribe = participant.grant.canSubscribe
    participant.grant.canSubscribe = permission.canSubscribe
    participant.grant.canPublish = permission.canPublish
    participant.grant.canPublishData = permission.canPublishData
    participant.grant.canUpdateOwnMetadata = permission.canUpdateMetadata
    participant.grant.canSubscribeMetrics = permission.canSubscribeMetrics
    participant.grant.hidden = permission.hidden
    participant.grant.canPublishSources = permission.canPublishSources.compactMap(\.grantName)
    for track in participant.uplink.tracks where !participant.mayPublish(track.info.source) {
      withdraw(track, of: participant)
    }
    if !permission.canPublishData { unpublish(participant.dataTracks.published, of: participant) }
    if !permission.canSubscribe {
      participant.room.unsubscribeFromDataTracks(participant)
      for downTrack in participant.downlink.downTracks {
        participant.room.unsubscribe(participant, from: downTrack.track)
      }
    } else if !couldSubscribe {
      participant.room.subscribeToAll(participant)
      participant.room.subscribeToDataTracks(participant)
      participant.requestSections()
    }
  }
}
