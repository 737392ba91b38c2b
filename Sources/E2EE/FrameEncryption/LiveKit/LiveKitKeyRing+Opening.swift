import PalbeCrypto
import PalbeUnits
import PalbeWire

extension LiveKitKeyRing {
  /// A handle for the tracks of one codec of one participant, by the identity that signaling gives.
  ///
  /// The same participant and codec give the same handle, with its memory of replays. Throws `invalidName` and `tooMany`.
  public mutating func makeReceiver(
    identity: String, codec: LiveKitFrameCodec
  ) throws(FrameKeyError) -> FrameReceiverID {
    let participant = try keptParticipant(identity)
    for id in participant.receivers where state.receivers[id.index]?.codec == codec { return id }
    let index = state.receivers.firstIndex { $0 == nil } ?? state.receivers.count
    guard index < Self.handleLimit else { throw .tooMany(limit: Self.handleLimit) }
    state.generation &+= 1
    let receiver = LiveKitReceiver(participant: participant, codec: codec, generation: state.generation)
    if index == state.receivers.count {
      state.receivers.append(receiver)
    } else {
      state.receivers[index] = receiver
    }
    let id = FrameReceiverID(index: index, generation: receiver.generation)
    participant.receivers.append(id)
    return id
  }

  /// A participant left. A key of its own stays, in case it comes back.
  public mutating func participantLeft(identity: String) {
    guard let participant = state.participants[identity] else { return }
    for id in participant.receivers { state.receivers[id.index] = nil }
    participant.receivers = []
    if !participant.slots.contains(where: { $0.own != nil }) { state.participants[identity] = nil }
  }

  /// Counts of one participant; nil when nothing of it was ever to be opened, or it left.
  public func counts(identity: String) -> FrameCounts? { state.participants[identity]?.counts }

  /// Opens `buffer[frame]` in place; an empty frame is empty. Nothing that is not sealed is ever handed out.
  ///
  /// Without a key for the slot that the frame names it fails at once: there is no `waiting` here.
  @_lifetime(buffer: copy buffer)
  public mutating func open(
    _ id: FrameReceiverID, in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, at now: Instant
  ) -> OpenResult {
    guard let receiver = receiver(id) else { return .failed(.unknownReceiver) }
    let participant = receiver.participant
    guard frame.lowerBound >= 0, frame.upperBound <= buffer.count else {
      return refuse(.malformed, participant)
    }
    guard !frame.isEmpty else { return .opened(frame) }
    // Escaping makes a frame longer by half at most.
    guard frame.count <= SFrameSealer.maximumFrameByteCount * 2 else { return refuse(.tooLong, participant) }
    guard let parts = LiveKitFrameFormat.locate(in: &buffer, frame: frame, codec: receiver.codec) else {
      return refuse(.malformed, participant)
    }
    guard !receiver.seen.contains(parts.iv) else { return refuse(.replayed, participant) }
    if let failure = openBody(
      in: &buffer, body: parts.body, clear: parts.clear, iv: parts.iv, keyIndex: parts.keyIndex, participant,
      at: now)
    {
      return refuse(failure, participant)
    }
    receiver.seen.insert(parts.iv)
    countOpened(participant)
    return .opened(frame.lowerBound..<parts.body.upperBound)
  }

  /// Opens a data packet's `encrypted_value` (ciphertext and tag) at `buffer[sealed]` in place.
  ///
  /// - Parameters:
  ///   - identity: who sent it, as the server says; nothing proves it.
  ///   - iv: 12 bytes; anything else fails as malformed.
  @_lifetime(buffer: copy buffer)
  public mutating func openData(
    from identity: String, in buffer: inout MutableSpan<UInt8>, sealed: Range<Int>, iv: Span<UInt8>,
    keyIndex: Int, at now: Instant
  ) -> OpenResult {
    guard let participant = try? keptParticipant(identity) else { return .failed(.unknownReceiver) }
    guard sealed.lowerBound >= 0, sealed.upperBound <= buffer.count, let iv = LiveKitIV(iv),
      sealed.count >= LiveKitFrameFormat.tagByteCount
    else { return refuse(.malformed, participant) }
    guard sealed.count <= SFrameSealer.maximumFrameByteCount else { return refuse(.tooLong, participant) }
    guard !participant.seenData.contains(iv) else { return refuse(.replayed, participant) }
    let body = sealed.lowerBound..<sealed.upperBound - LiveKitFrameFormat.tagByteCount
    if let failure = openBody(
      in: &buffer, body: body, clear: 0..<0, iv: iv, keyIndex: keyIndex, participant, at: now)
    {
      return refuse(failure, participant)
    }
    participant.seenData.insert(iv)
    countOpened(participant)
    return .opened(body)
  }

  private mutating func keptParticipant(_ identity: String) throws(FrameKeyError) -> LiveKitParticipant {
    let participant = try participant(identity)
    if participant !== state.local { state.participants[identity] = participant }
    return participant
  }

  private func receiver(_ id: FrameReceiverID) -> LiveKitReceiver? {
    guard id.index < state.receivers.count, let receiver = state.receivers[id.index] else { return nil }
    return receiver.generation == id.generation ? receiver : nil
  }

  // MARK: Trying keys

  /// Opens a body under the participant's step of that slot, or a later one of the window; nil when it opened.
  @_lifetime(buffer: copy buffer)
  private mutating func openBody(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, clear: Range<Int>, iv: LiveKitIV, keyIndex: Int,
    _ participant: LiveKitParticipant, at now: Instant
  ) -> OpenFailure? {
    // With one key for all, our own frames would open as anybody's.
    guard participant !== state.local, !state.ownSources.contains(iv.source) else { return .ownFrame }
    guard let chain = state.chain(of: participant, keyIndex) else { return .unknownKey }
    let (current, failures) = (participant.slots[keyIndex].step, participant.slots[keyIndex].failures)
    if let tolerance = configuration.failureTolerance, failures > tolerance { return .givenUp }
    guard let step = chain.step(current) else { return .unknownKey }
    if configuration.ratchetWindow > 0 { keep(buffer.span.extracting(body)) }
    if step.open(in: &buffer, body: body, clear: clear, iv: iv) {
      participant.slots[keyIndex].failures = 0
      return nil
    }
    for ahead in 0..<configuration.ratchetWindow {
      let number = current + ahead + 1
      guard let step = chain.step(number, derivingAt: now) else { break }
      buffer.copy(state.scratch.span.extracting(0..<body.count), at: body.lowerBound)
      guard step.open(in: &buffer, body: body, clear: clear, iv: iv) else { continue }
      participant.advance(keyIndex, to: number)
      participant.slots[keyIndex].failures = 0
      state.report(.ratcheted(identity: participant.identity, index: keyIndex))
      return nil
    }
    participant.slots[keyIndex].failures += 1
    return .notAuthentic
  }

  /// A failed attempt destroys the ciphertext, and the next one needs it.
  private mutating func keep(_ ciphertext: Span<UInt8>) {
    state.reserveScratch(ciphertext.count)
    var scratch = state.scratch.mutableSpan
    scratch.copy(ciphertext, at: 0)
  }

  // MARK: Counting

  private mutating func countOpened(_ participant: LiveKitParticipant) {
    statistics.received.countOpened()
    participant.counts.countOpened()
    if participant.isUnreadable {
      participant.isUnreadable = false
      state.report(.readable(identity: participant.identity))
    }
  }

  private mutating func refuse(_ failure: OpenFailure, _ participant: LiveKitParticipant) -> OpenResult {
    statistics.received.count(failure)
    participant.counts.count(failure)
    let inARow = Int(truncatingIfNeeded: participant.counts.failedInARow)
    if inARow >= configuration.unreadableAfter, !participant.isUnreadable {
      participant.isUnreadable = true
      state.report(.unreadable(identity: participant.identity, frames: inARow, latest: failure))
    }
    return .failed(failure)
  }
}
