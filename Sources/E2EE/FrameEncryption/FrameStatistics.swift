/// Counts of one participant's frames, or of all.
public struct FrameCounts: Equatable, Sendable {
  /// Frames opened.
  public internal(set) var opened: UInt64 = 0
  /// Frames refused, keys that never came included.
  public internal(set) var failed: UInt64 = 0
  /// Of them: sealed under a key that we do not have, or not authentic.
  public internal(set) var wrongKey: UInt64 = 0
  /// Of them: replayed, too old, or our own come back.
  public internal(set) var replayed: UInt64 = 0
  /// Frames refused since the last one that opened.
  public internal(set) var failedInARow: UInt64 = 0
  /// Why the latest frame was refused.
  public internal(set) var latestFailure: OpenFailure?

  mutating func countOpened() {
    opened += 1
    failedInARow = 0
  }

  mutating func count(_ failure: OpenFailure) {
    failed += 1
    failedInARow += 1
    latestFailure = failure
    switch failure {
    case .keyNeverCame, .unknownKey, .retiredKey, .notAuthentic, .givenUp: wrongKey += 1
    case .replayed, .tooOld, .ownFrame, .closedContext: replayed += 1
    default: break
    }
  }
}

/// Counts of a call's frame encryption.
public struct FrameStatistics: Equatable, Sendable {
  /// Different call keys installed so far.
  public internal(set) var keyEpochs = 0
  /// Frames sealed, and their bytes before sealing.
  public internal(set) var sealedFrames: UInt64 = 0
  /// Bytes of the frames sealed, before sealing.
  public internal(set) var sealedBytes: UInt64 = 0
  /// Frames not sealed for want of a key.
  public internal(set) var withheldFrames: UInt64 = 0
  /// Keys derived for sending, one for each call key, track and layer.
  public internal(set) var sendContexts = 0
  /// Frames of all participants.
  public internal(set) var received = FrameCounts()
  /// Frames that wait for their key right now.
  public internal(set) var waitingFrames = 0
}

/// What a call key ring reports.
public enum CallKeyEvent: Equatable, Sendable {
  /// From now on frames are sealed under the key with this identifier.
  case sendKeyChanged(keyIdentifier: UInt32)
  /// So many frames of a participant in a row could not be opened.
  case unreadable(identity: String, frames: Int, latest: OpenFailure)
  /// A participant reported unreadable can be read again.
  case readable(identity: String)
  /// A participant's frames opened under a later step of the key in that slot (LiveKit's format).
  case ratcheted(identity: String, index: Int)
}
