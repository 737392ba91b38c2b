import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// What happens on signaling connections and data channels: joining, requests, leaving, messages. Media runs past it.
struct SignalPlane {
  let context: WorkerContext
  let directory: Directory

  /// Takes one message of a participant's. What cannot be read is dropped, what is not known ignored.
  func handle(_ bytes: [UInt8], on connection: ConnectionID, at now: Instant) {
    guard let participant = directory.participant(on: connection) else { return }
    guard participant.mayAsk(at: now) else { return remove(participant, .flooding, at: now) }
    let request: LiveKit.SignalRequest
    do throws(ProtobufError) { request = try LiveKit.SignalRequest(serialized: bytes) } catch {
      context.log(.warning, "unreadable signal message", participant.logFields)
      return
    }
    participant.lastSignalAt = now
    guard let message = request.message else { return }
    switch message {
    case .offer, .answer:
      guard participant.mayAsk(19, at: now) else { return remove(participant, .flooding, at: now) }
    default: break
    }
    handle(message, of: participant, at: now)
  }

  func handle(_ message: LiveKit.SignalRequest.Message, of participant: Participant, at now: Instant) {
    switch message {
    case .offer(let offer): answer(offer, of: participant, at: now)
    case .answer(let answer): takeUp(answer, of: participant, at: now)
    case .addTrack(let request): addTrack(request, of: participant, at: now)
    case .mute(let request): mute(request, of: participant, at: now)
    case .subscription(let request): updateSubscription(request, of: participant, at: now)
    case .trackSetting(let request): updateTrackSettings(request, of: participant, at: now)
    case .subscriptionPermission(let request):
      updateSubscriptionPermission(request, of: participant, at: now)
    case .updateMetadata(let request): updateMetadata(request, of: participant, at: now)
    case .updateAudioTrack(let request): updateAudioTrack(request, of: participant)
    case .updateVideoTrack(let request): updateVideoTrack(request, of: participant)
    case .ping: participant.send(.pong(context.clock.unixMilliseconds(at: now)))
    case .pingReq(let ping):
      participant.send(
        .pongResp(
          .with {
            $0.lastPingTimestamp = ping.timestamp
            $0.timestamp = context.clock.unixMilliseconds(at: now)
          }))
    case .leave: remove(participant, .clientLeft, at: now)
    case .syncState(let state): synchronize(state, of: participant, at: now)
    case .publishDataTrackRequest(let request): publishDataTrack(request, of: participant)
    case .unpublishDataTrackRequest(let request): unpublishDataTrack(request, of: participant)
    case .updateDataSubscription(let request): updateDataSubscription(request, of: participant)
    case .storeDataBlobRequest(let request): storeDataBlob(request, of: participant)
    case .getDataBlobRequest(let request): getDataBlob(request, of: participant)
    case .simulate(let request): simulate(request, of: participant, at: now)
    // A lite agent needs none of the client's candidates: its checks show where it is.
    case .trickle: break
    // Told in `add_track` and in offers.
    case .updateLayers: break
    }
  }
}

extension Participant {
  /// False when it has asked for too much by signaling.
  func mayAsk(_ cost: Int = 1, at now: Instant) -> Bool {
    context.configuration.signalAllowance.admits(cost, on: &signals, at: now)
  }

  var logFields: [(name: String, value: String)] {
    [("room", room.name), ("identity", identity), ("participant", sid)]
  }
}
