public import PalbeUnits

extension CallSession {
  /// The decoder of a remote video track failed, or a frame did not reach it: nothing more of the track is
  /// given out before its next key frame, which is asked for.
  public mutating func decodingFailed(_ track: RemoteTrackID, at now: Instant) {
    guard let state = self.track(track), state.kind == .video else { return }
    videoFrames.removeAll { $0.track == track }
    state.video.giveUp()
  }
}
