import PalbeUnits

/// A frame that waited for its key and is open now.
public struct ReleasedFrame: Equatable, Sendable {
  /// Whose it is.
  public let receiver: FrameReceiverID
  /// The caller's mark from `open`.
  public let tag: UInt64
  /// When it came.
  public let arrival: Instant
  /// The opened frame.
  public let bytes: [UInt8]
}

extension CallKeyRing {
  /// The next frame that waited for a key that is here now, in the order of arrival; nil when there is none.
  ///
  /// Call it until nil after `install`, before more frames are opened, so that none overtakes them.
  public mutating func pollReleased(at now: Instant) -> ReleasedFrame? {
    while state.releasedIndex < state.released.count {
      let frame = state.released[state.releasedIndex]
      state.releasedIndex += 1
      var bytes = frame.bytes
      var buffer = bytes.mutableSpan
      let result = open(frame.receiver, in: &buffer, frame: 0..<buffer.count, tag: frame.tag, at: now)
      guard case .opened(let range) = result else { continue }
      return ReleasedFrame(
        receiver: frame.receiver, tag: frame.tag, arrival: frame.arrival, bytes: Array(bytes[range]))
    }
    state.released = []
    state.releasedIndex = 0
    return nil
  }

  /// Keeps a copy of a frame whose key is not here.
  mutating func wait(
    _ frame: Span<UInt8>, _ id: FrameReceiverID, _ receiver: Receiver, _ keyID: CallKeyID, tag: UInt64,
    at now: Instant
  ) -> OpenResult {
    let participant = receiver.participant
    let waiting = WaitingFrame(
      receiver: id, keyIdentifier: keyID.keyIdentifier, tag: tag, arrival: now, bytes: [UInt8](copying: frame)
    )
    let pushed = participant.wait(
      waiting, limit: configuration.waitingFrames, byteLimit: configuration.waitingBytes)
    statistics.waitingFrames += 1 - pushed
    for _ in 0..<pushed { count(.keyNeverCame, participant) }
    state.deadline = min(state.deadline, now + configuration.waitingTime)
    return .waiting
  }

  /// Moves the frames whose key has come to where `pollReleased` takes them.
  mutating func releaseWaiting() {
    var taken = [WaitingFrame]()
    for participant in state.participants.values {
      taken += participant.take { state.key(named: $0.keyIdentifier) != nil }
    }
    guard !taken.isEmpty else { return }
    statistics.waitingFrames -= taken.count
    // Stable within a participant; across participants by arrival.
    state.released += taken.enumerated().sorted {
      ($0.element.arrival, $0.offset) < ($1.element.arrival, $1.offset)
    }.map(\.element)
  }

  mutating func dropWaiting(at now: Instant) {
    for participant in state.participants.values {
      let dropped = participant.dropWaiting(upTo: now - configuration.waitingTime)
      statistics.waitingFrames -= dropped
      for _ in 0..<dropped { count(.keyNeverCame, participant) }
    }
  }
}
