import PalbeLiveKit

/// Whom a publisher lets receive its tracks.
enum SubscriptionPermission {
  case everyone
  /// Whoever one of these names.
  case listed([LiveKit.TrackPermission])

  static let limit = 1_000

  init(_ request: LiveKit.SubscriptionPermission) {
    self =
      request.allParticipants ? .everyone : .listed(Array(request.trackPermissions.prefix(Self.limit)))
  }

  func allows(_ track: PublishedTrack, to participant: Participant) -> Bool {
    allows(track.sid, to: participant)
  }

  /// By the sid of a track of any kind.
  func allows(_ sid: String, to participant: Participant) -> Bool {
    // Who records was sent by somebody who may; it cannot ask each publisher.
    guard case .listed(let permissions) = self, !participant.isRecorder else { return true }
    return permissions.contains { permission in
      let isNamed =
        permission.participantIdentity.isEmpty
        ? permission.participantSid == participant.sid
        : permission.participantIdentity == participant.identity
      return isNamed && (permission.allTracks || permission.trackSids.contains(sid))
    }
  }
}
