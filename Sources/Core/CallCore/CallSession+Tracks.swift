import PalbeFrameEncryption
import PalbeLiveKit
import PalbeRTP
import PalbeUnits

/// Which remote tracks there are: what an answer sends us and signaling has named.
extension CallSession {
  /// Compares the last answer and the roster with the tracks that are received.
  mutating func bindTracks(at now: Instant) {
    for track in tracks where !isCurrent(track) { drop(track) }
    // In the order of the sections, so that a run replays from its seed.
    for section in negotiation.sections {
      let mid = section.mid
      guard let parameters = receiving[mid], !tracks.contains(where: { $0.mid == mid }),
        let named = roster.track(parameters.sid)
      else {
        continue
      }
      add(mid, parameters, identity: named.identity, info: named.info)
    }
    routes = [:]
    for track in tracks {
      if let ssrc = track.ssrc { routes[ssrc] = Route(track: track, isRepair: false) }
      if let ssrc = track.parameters.repairSSRC { routes[ssrc] = Route(track: track, isRepair: true) }
    }
  }

  private func isCurrent(_ track: RemoteTrack) -> Bool {
    guard let named = roster.track(track.sid), named.identity == track.identity,
      let parameters = receiving[track.mid]
    else { return false }
    return parameters == track.parameters && track.isEncrypted == (named.info.encryption != .none)
  }

  private mutating func add(
    _ mid: String, _ parameters: ReceivingParameters, identity: String, info: LiveKit.TrackInfo
  ) {
    let kind: MediaKind = info.type == .video ? .video : .audio
    guard negotiation.kind(mid: mid) == kind else { return }
    let id = RemoteTrackID(nextTrack)
    nextTrack += 1
    let track = RemoteTrack(
      id: id, mid: mid, identity: identity, info: info, kind: kind,
      protection: protection.protection(of: info, identity: identity, kind: kind), parameters: parameters,
      configuration: configuration)
    // Nothing is decoded of a track that is refused, so nobody is asked for anything.
    if kind == .audio || track.protection == .refused { track.video.asker.rest() }
    tracks.append(track)
  }

  private mutating func drop(_ track: RemoteTrack) {
    tracks.removeAll { $0 === track }
    videoFrames.removeAll { $0.track == track.id }
    guard track.isAnnounced else { return }
    if endedTracks.count == Self.endedTrackLimit { endedTracks.removeFirst() }
    endedTracks.append(track.statistics)
    report(.trackUnsubscribed(track.id))
  }

  /// The track of that number, while it lasts.
  func track(_ id: RemoteTrackID) -> RemoteTrack? { tracks.first { $0.id == id } }

  /// Whose packet this is: by its SSRC, or by the MID it carries when the answer did not name the SSRC.
  mutating func route(_ header: RTPHeader, mid: ShortText?) -> Route? {
    if let route = routes[header.ssrc] { return route }
    guard let mid = mid?.text,
      let track = tracks.first(where: { $0.mid == mid }),
      header.payloadType == track.parameters.payloadType
    else { return nil }
    if let old = track.ssrc { routes[old] = nil }
    track.receive(header.ssrc)
    let route = Route(track: track, isRepair: false)
    routes[header.ssrc] = route
    return route
  }
}
