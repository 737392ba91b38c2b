import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// Why a participant is taken out of its room.
enum Departure {
  case clientLeft, connectionClosed, replaced, pingTimeout, connectTimeout, consentExpired, transportFailed,
    transportClosed, serverShutdown, unknownTrack, removed, roomDeleted, noAnswer,
    flooding, tooSlow, dataFailed, simulatedFailure, simulatedLeave, simulatedReconnect,
    roomClosed, moved

  var reason: LiveKit.DisconnectReason {
    switch self {
    case .clientLeft, .transportClosed, .simulatedReconnect: .clientInitiated
    case .connectionClosed: .signalClose
    case .replaced: .duplicateIdentity
    case .pingTimeout, .connectTimeout, .consentExpired: .connectionTimeout
    case .transportFailed, .noAnswer, .tooSlow, .dataFailed: .mediaFailure
    case .unknownTrack: .stateMismatch
    case .removed, .flooding: .participantRemoved
    case .roomDeleted: .roomDeleted
    case .roomClosed: .roomClosed
    case .serverShutdown, .simulatedFailure, .simulatedLeave: .serverShutdown
    case .moved: .migration
    }
  }

  /// What the client is told to do; nil when it need not be told.
  var action: LiveKit.LeaveRequest.Action? {
    switch self {
    case .clientLeft, .connectionClosed, .transportClosed, .simulatedFailure: nil
    case .replaced, .removed, .roomDeleted, .flooding, .simulatedLeave, .roomClosed: .disconnect
    // Its network may have come back, or another server may take it: everything from the start.
    case .serverShutdown, .pingTimeout, .connectTimeout, .consentExpired, .transportFailed, .unknownTrack,
      .noAnswer, .tooSlow, .dataFailed, .simulatedReconnect, .moved:
      .reconnect
    }
  }

  var message: String {
    switch self {
    case .clientLeft: "participant left"
    case .connectionClosed: "signaling connection closed"
    case .removed: "participant removed by an operator"
    case .flooding: "participant removed for flooding its signaling"
    case .roomClosed: "participant told to leave a room without people"
    case .roomDeleted: "participant told to leave a deleted room"
    case .noAnswer: "participant answered no offer in time"
    case .tooSlow: "participant did not read its messages in time"
    case .dataFailed: "participant's data channels failed"
    case .unknownTrack: "participant resumed with a track that is not known"
    case .replaced: "participant replaced by its own identity"
    case .pingTimeout: "participant sent no ping in time"
    case .connectTimeout: "participant's transport did not come up in time"
    case .consentExpired: "participant's consent expired"
    case .transportFailed: "participant's handshake failed"
    case .transportClosed: "participant closed its transport"
    case .serverShutdown: "participant told to leave"
    case .simulatedFailure: "participant's session dropped as it asked"
    case .simulatedLeave, .simulatedReconnect: "participant told to leave as it asked"
    case .moved: "participant moved to another room by an operator"
    }
  }
}

extension LiveKit.SignalResponse.Message {
  /// Tells a client why its session ends and what to do next; older clients read only whether to come back.
  static func leave(
    _ reason: LiveKit.DisconnectReason, _ action: LiveKit.LeaveRequest.Action
  ) -> Self {
    .leave(
      .with {
        $0.reason = reason
        $0.action = action
        $0.canReconnect = action != .disconnect
      })
  }
}

extension SignalPlane {
  /// The WebSocket is gone.
  func closed(_ connection: ConnectionID, at now: Instant) {
    guard let participant = directory.participant(on: connection) else { return }
    guard participant.isConnected, participant.isHeard(at: now) else {
      return remove(participant, .connectionClosed, at: now)
    }
    context.log(.info, "signaling connection lost", participant.logFields)
    directory.detach(participant, until: now + context.configuration.resumeTimeout)
  }

  /// A participant's timers had something to say.
  func handle(_ expiry: Expiry, of participant: Participant, at now: Instant) {
    switch expiry {
    case .departure(let departure): remove(participant, departure, at: now)
    case .signaling:
      // Media flows: only signaling has to be made anew.
      askToResume(participant, until: now + context.configuration.resumeTimeout)
    case .consent:
      // Nothing may be sent there any more (RFC 7675 §5.1).
      for transport in participant.transports { transport.loseConsent() }
      askToResume(participant, until: now + context.configuration.consentGrace)
    }
  }

  private func askToResume(_ participant: Participant, until deadline: Instant) {
    context.log(.info, "participant told to resume", participant.logFields)
    participant.send(.leave(.connectionTimeout, .resume))
    endSignaling(of: participant, until: deadline)
  }

  /// The connection is closed, and the participant stays until then.
  func endSignaling(of participant: Participant, until deadline: Instant) {
    if let connection = participant.connection { context.events.append(.close(connection)) }
    directory.detach(participant, until: deadline)
  }

  /// Drops a room; whoever is still there was there for others.
  func end(_ room: Room, _ reason: LiveKit.RoomEndReason = .idleTimeout, at now: Instant) {
    guard directory.rooms[room.name] === room else { return }
    for participant in room.participants { remove(participant, .roomClosed, at: now, keepingRoom: true) }
    directory.remove(room)
    context.totals.roomEnded(after: now - room.createdAt)
    context.notify(.roomFinished, room, endReason: reason)
  }

  func shutDown(at now: Instant) {
    for participant in directory.participants {
      remove(participant, .serverShutdown, at: now, keepingRoom: true)
    }
    // In one order, so that a run replays.
    for room in directory.rooms.values.sorted(by: { $0.name < $1.name }) {
      end(room, .serverShutdown, at: now)
    }
  }

  /// Takes a participant out, tells it and the others, and drops the room with the last one.
  ///
  /// One that is replaced is announced as gone to older clients alone: the others learn of its successor under the same identity.
  func remove(
    _ participant: Participant, _ departure: Departure, at now: Instant, keepingRoom: Bool = false
  ) {
    guard !participant.isClosed else { return }
    let room = participant.room
    let wasActive = participant.state == .active
    context.log(.info, departure.message, participant.logFields)
    context.totals.departed(participant, at: now)
    if let action = departure.action {
      participant.send(.leave(departure.reason, action))
    }
    participant.state = .disconnected
    participant.close(at: now)
    room.remove(participant)
    directory.remove(participant)
    endCalls(to: participant)
    if let connection = participant.connection { context.events.append(.close(connection)) }
    let isReplaced = if case .replaced = departure { true } else { false }
    room.broadcastDeparture(of: participant, reason: departure.reason, isReplaced: isReplaced)
    context.notify(wasActive ? .participantLeft : .participantConnectionAborted, room, participant)
    guard room.isDeserted, !keepingRoom, !room.isWaiting else { return }
    directory.wait(room, afterDeparture: true, from: now)
    if room.isOver(at: now) { end(room, at: now) }
  }
}
