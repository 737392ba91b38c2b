import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeWire

/// What clients ask about data tracks, and their packets.
extension SignalPlane {
  func publishDataTrack(_ request: LiveKit.PublishDataTrackRequest, of participant: Participant) {
    if let (reason, message) = refusal(of: request, by: participant) {
      return participant.respond(reason, to: .publishDataTrack(request), message: message)
    }
    let room = participant.room
    guard participant.dataTracks.published.count < context.configuration.maxTracksPerParticipant,
      let handle = room.dataHandles.take()
    else {
      return participant.respond(
        .limitExceeded, to: .publishDataTrack(request), message: "too many data tracks")
    }
    let info = LiveKit.DataTrackInfo.with {
      $0.pubHandle = request.pubHandle
      $0.sid = LiveKit.Sid.dataTrack(using: &context.random)
      $0.name = request.name
      $0.encryption = request.encryption
      $0.frameEncoding = request.frameEncoding
      $0.schema = request.schema
    }
    let track = DataTrack(info, publisher: participant, handle: handle)
    participant.dataTracks.published.append(track)
    participant.send(.publishDataTrackResponse(.with { $0.info = info }))
    context.log(.info, "data track published", participant.logFields + [("track", track.sid)])
    room.broadcastInfo(of: participant, includingSelf: false)
    room.offer(track)
  }

  private func refusal(
    of request: LiveKit.PublishDataTrackRequest, by participant: Participant
  ) -> (LiveKit.RequestResponse.Reason, String)? {
    guard participant.grant.canPublishData else {
      return (.notAllowed, "does not have permission to publish data")
    }
    guard request.encryption != .none || !participant.mustEncrypt else {
      return (.notAllowed, "this room takes only tracks that are encrypted end to end")
    }
    // Some clients drop what they are told of everybody when it has another one.
    guard request.encryption == .none || request.encryption == .gcm else {
      return (.invalidRequest, "data tracks are encrypted with GCM or not at all")
    }
    guard (1...UInt32(UInt16.max)).contains(request.pubHandle) else {
      return (.invalidHandle, "a handle is from 1 to 65535")
    }
    guard !request.name.isEmpty, TextLimits.accepts(name: request.name) else {
      return (.invalidName, "a name has 1 to 256 bytes")
    }
    guard request.frameEncoding?.isAcceptable ?? true, request.schema?.isAcceptable ?? true else {
      return (.invalidRequest, "an encoding's name has 1 to 32 bytes")
    }
    if participant.dataTrack(publishedAs: request.pubHandle) != nil {
      return (.duplicateHandle, "a data track has this handle already")
    }
    if participant.dataTracks.published.contains(where: { $0.info.name == request.name }) {
      return (.duplicateName, "a data track has this name already")
    }
    return nil
  }

  func unpublishDataTrack(_ request: LiveKit.UnpublishDataTrackRequest, of participant: Participant) {
    guard let track = participant.dataTrack(publishedAs: request.pubHandle) else {
      return participant.respond(.notFound, to: .unpublishDataTrack(request))
    }
    unpublish([track], of: participant)
    participant.room.broadcastInfo(of: participant, includingSelf: false)
  }

  /// Their publisher is told; the others are with the next update.
  func unpublish(_ tracks: [DataTrack], of publisher: Participant) {
    publisher.room.withdraw(tracks)
    for track in tracks {
      publisher.send(.unpublishDataTrackResponse(.with { $0.info = track.info }))
      context.log(.info, "data track unpublished", publisher.logFields + [("track", track.sid)])
    }
  }

  /// Whoever asks for a track again is told its handle again: it may have missed it.
  func updateDataSubscription(_ request: LiveKit.UpdateDataSubscription, of participant: Participant) {
    let room = participant.room
    for update in request.updates.prefix(1_000) {
      guard let track = room.dataTrack(sid: update.trackSid) else { continue }
      if update.subscribe {
        participant.dataTracks.want(track.sid)
        _ = room.subscribe(participant, to: track)
      } else {
        participant.dataTracks.wanted.remove(track.sid)
        _ = room.unsubscribe(participant, from: track)
      }
    }
    if !request.updates.isEmpty { participant.sendDataTrackHandles() }
  }

  /// Forwards a packet to its track's subscribers. Where their channels are full it is lost: nobody waits for it.
  func forwardDataTrack(_ bytes: [UInt8], of participant: Participant) {
    let packet: LiveKit.DataTrackPacket
    do throws(WireError) { packet = try LiveKit.DataTrackPacket(bytes.span) } catch {
      return context.log(.debug, "unreadable data track packet", participant.logFields)
    }
    guard let track = participant.dataTrack(publishedAs: UInt32(packet.handle)), !track.subscribers.isEmpty,
      packet.isEncrypted || !participant.mustEncrypt
    else { return }
    let forwarded = packet.forwarded(bytes, as: track.handle)
    let channels = track.subscribers.compactMap { $0.dataChannel(.track, for: forwarded) }
    if !channels.isEmpty { context.ask(.send(channels, .binary, forwarded)) }
  }
}

extension LiveKit.DataTrackFrameEncoding {
  fileprivate var isAcceptable: Bool { value?.custom.map(TextLimits.accepts(encoding:)) ?? true }
}

extension LiveKit.DataTrackSchemaId {
  var isAcceptable: Bool {
    TextLimits.accepts(name: name) && encoding?.value?.custom.map(TextLimits.accepts(encoding:)) ?? true
  }
}
