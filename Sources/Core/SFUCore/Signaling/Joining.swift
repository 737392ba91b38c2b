import PalbeDTLS
import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

extension SignalPlane {
  /// Lets a participant in: `join` is the first thing it gets, then what its request asked for.
  func join(_ details: JoinDetails, on connection: ConnectionID, at now: Instant) {
    guard directory.participant(on: connection) == nil else { return }
    guard !details.request.reconnect else { return resume(details, on: connection, at: now) }
    guard let room = room(for: details.grant, at: now) else {
      guard context.isDraining else {
        return refuse(connection, reason: .joinFailure, action: .disconnect)
      }
      // Another server may take it.
      return refuse(connection, reason: .serverShutdown, action: .reconnect)
    }
    if let previous = room.participant(identity: details.grant.identity) {
      remove(previous, .replaced, at: now, keepingRoom: true)
    }
    guard room.participants.count < room.maxParticipants(for: details.grant) else {
      return refuse(connection, reason: .joinFailure, action: .disconnect)
    }
    let participant: Participant
    do throws(DTLSError) {
      participant = try Participant(details, connection: connection, room: room, context: context, at: now)
    } catch {
      context.log(.warning, "no transport for a participant", [("error", "\(error)")])
      if room.isEmpty { end(room, at: now) }
      return refuse(connection, reason: .joinFailure, action: .disconnect)
    }
    if !participant.mayBeTold(metadata: participant.metadata, attributes: participant.attributes) {
      context.log(
        .warning, "participant's metadata left out: the room has as much as it may", participant.logFields)
      participant.metadata = ""
      participant.attributes = [:]
    }
    room.append(participant)
    directory.insert(participant)
    if room.isDeserted, !room.isWaiting { directory.wait(room, afterDeparture: false, from: now) }
    context.totals.joins += 1
    participant.send(.join(response(to: participant, in: room)))
    participant.wake(at: now + context.configuration.pingTimeout)
    participant.wantToken(by: now)
    context.log(.info, "participant joined", participant.logFields)

    room.subscribeToAll(participant)
    room.subscribeToDataTracks(participant)
    participant.wantOffer(at: now)
    for request in details.request.addTrackRequests.prefix(context.configuration.maxPendingTracks) {
      addTrack(request, of: participant, at: now)
    }
    if let offer = details.request.publisherOffer { answer(offer, of: participant, at: now) }
    // Whoever published with the join was announced with its tracks already.
    if !participant.uplink.tracks.contains(where: \.isAnnounced) {
      room.broadcastInfo(of: participant, includingSelf: false)
    }
  }

  private func room(for grant: AccessGrant, at now: Instant) -> Room? {
    if let room = directory.rooms[grant.room] { return room }
    guard context.configuration.createsRooms, let room = makeRoom(named: grant.room, at: now) else {
      return nil
    }
    if let settings = grant.roomSettings { apply(settings, to: room) }
    if grant.requiresE2EE { room.requiresE2EE = true }
    return room
  }

  /// Nil when there are too many.
  func makeRoom(named name: String, at now: Instant) -> Room? {
    guard !context.isDraining, directory.rooms.count < context.configuration.maxRooms else { return nil }
    let room = Room(name: name, context: context, at: now)
    directory.insert(room)
    context.notify(.roomStarted, room)
    return room
  }

  func refuse(
    _ connection: ConnectionID, reason: LiveKit.DisconnectReason, action: LiveKit.LeaveRequest.Action
  ) {
    context.totals.joinsRefused += 1
    context.send(.leave(reason, action), to: connection)
    context.events.append(.close(connection))
  }

  private func response(to participant: Participant, in room: Room) -> LiveKit.JoinResponse {
    let configuration = context.configuration
    return .with {
      $0.room = room.info
      $0.participant = participant.info
      $0.otherParticipants = room.participants.filter { $0 !== participant && !$0.grant.hidden }.map(\.info)
      $0.serverVersion = configuration.serverVersion
      $0.pingInterval = Int32(max(1, configuration.pingInterval.wholeMilliseconds / 1_000))
      $0.pingTimeout = Int32(max(1, configuration.pingTimeout.wholeMilliseconds / 1_000))
      $0.iceServers = context.iceServers(for: participant)
      $0.clientConfiguration = participant.clientConfiguration
      $0.serverInfo = serverInfo(for: participant)
      $0.subscriberPrimary = participant.offers != nil && participant.grant.canSubscribe
      $0.fastPublish = true
      // Frames of AV1 cannot be encrypted by many clients.
      let codecs = MediaCodec.allCases.filter { codec in
        configuration.enables(codec.mimeType) && (codec != .av1 || !participant.mustEncrypt)
      }
      $0.enabledPublishCodecs = codecs.map { codec in .with { $0.mime = codec.mimeType } }
      if !participant.mustEncrypt, configuration.enables(MediaCodec.redundantMimeType) {
        $0.enabledPublishCodecs.append(.with { $0.mime = MediaCodec.redundantMimeType })
      }
    }
  }
}
