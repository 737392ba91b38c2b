import PalbeCrypto
import PalbeUnits

/// What became of a sealed frame.
public enum OpenResult: Equatable, Sendable {
  /// The frame lies at this range of the buffer, clear bytes and plaintext side by side.
  case opened(Range<Int>)
  /// Its key is not here yet: a copy waits for up to 500 ms and comes back from `pollReleased`.
  case waiting
  /// It was refused; the bytes may be wiped.
  case failed(OpenFailure)
}

extension CallKeyRing {
  /// A handle for one source of one participant, by the identity that signaling gives: an SFU that swaps two people's
  /// tracks makes frames that do not open, and the failures name those people.
  ///
  /// `streams` is how many sealed streams of this source the participant may have at once: its tracks times their
  /// simulcast layers, 1 to 7. When more appear under one key, the oldest is superseded and closes after 10 s. The same
  /// participant, source and codec give the same handle, with its replay windows. Throws `invalidName` and `tooMany`.
  public mutating func makeReceiver(
    identity: String, source: FrameSource, codec: FrameCodec, streams: Int = 1
  ) throws(FrameKeyError) -> FrameReceiverID {
    let streams = min(max(streams, 1), configuration.contexts - 1)
    let participant = try participant(identity)
    participant.hasLeft = false
    for entry in participant.receivers
    where entry.receiver.source == source && entry.receiver.codec == codec {
      entry.receiver.streams = streams
      return entry.id
    }
    state.generation &+= 1
    let receiver = Receiver(
      participant: participant, source: source, codec: codec, generation: state.generation, streams: streams)
    let index = state.receivers.firstIndex { $0 == nil } ?? state.receivers.count
    guard index < CallKeyRing.handleLimit else { throw .tooMany(limit: CallKeyRing.handleLimit) }
    if index == state.receivers.count {
      state.receivers.append(receiver)
    } else {
      state.receivers[index] = receiver
    }
    let id = FrameReceiverID(index: index, generation: state.generation)
    participant.receivers.append((id, receiver))
    return id
  }

  private mutating func participant(_ identity: String) throws(FrameKeyError) -> Participant {
    if let known = state.participants[identity] { return known }
    guard state.participants.count < CallKeyRing.handleLimit else {
      throw .tooMany(limit: CallKeyRing.handleLimit)
    }
    let name = try ParticipantIdentity(identity)
    let participant = Participant(
      identity: name, isLocal: name.user == localIdentity.user && name.device == localIdentity.device,
      derivations: configuration.failedDerivations)
    state.participants[identity] = participant
    return participant
  }

  /// A participant left. What keeps its frames from being played again stays until its keys are gone.
  public mutating func participantLeft(identity: String) {
    guard let participant = state.participants[identity] else { return }
    participant.hasLeft = true
    forgetParticipants()
    updateDeadline()
  }

  /// Counts of one participant; nil when nothing of it was ever to be opened, or all of it is forgotten.
  public func counts(identity: String) -> FrameCounts? { state.participants[identity]?.counts }

  /// Opens `buffer[frame]` in place.
  ///
  /// `tag` is the caller's own, such as an RTP timestamp: it comes back with a frame that had to wait.
  @_lifetime(buffer: copy buffer)
  public mutating func open(
    _ id: FrameReceiverID, in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, tag: UInt64 = 0,
    at now: Instant
  ) -> OpenResult {
    advance(to: now)
    guard let receiver = receiver(id) else { return .failed(.unknownReceiver) }
    guard frame.lowerBound >= 0, frame.upperBound <= buffer.count else { return refuse(.malformed, receiver) }
    guard frame.count <= SFrameSealer.maximumFrameByteCount else { return refuse(.tooLong, receiver) }
    let located = locate(buffer.span.extracting(frame), receiver)
    guard let parts = located else { return refuse(.malformed, receiver) }
    if let context = receiver.context(for: parts.header.keyID) {
      do throws(OpenFailure) {
        let opened = try context.opener.open(in: &buffer, frame: frame, parts: parts)
        countOpened(receiver.participant)
        return .opened(opened)
      } catch {
        return refuse(error, receiver)
      }
    }
    let keyID = CallKeyID(rawValue: parts.header.keyID)
    if let key = state.key(named: keyID.keyIdentifier) {
      do throws(OpenFailure) {
        let opened = try openFirst(in: &buffer, frame: frame, parts: parts, receiver, under: key, at: now)
        countOpened(receiver.participant)
        return .opened(opened)
      } catch {
        return refuse(error, receiver)
      }
    }
    guard !state.retired.contains(where: { $0.identifier == keyID.keyIdentifier }) else {
      return refuse(.retiredKey, receiver)
    }
    return wait(buffer.span.extracting(frame), id, receiver, keyID, tag: tag, at: now)
  }

  private func locate(_ frame: Span<UInt8>, _ receiver: Receiver) -> FrameParts? {
    FrameParts.locate(in: frame, codec: receiver.codec) { keyID in
      receiver.context(for: keyID) != nil
        || state.key(named: CallKeyID(rawValue: keyID).keyIdentifier) != nil
    }
  }

  /// The first frame of a context: the key is chosen by its name alone (hazard H8), and the context exists only when the
  /// frame authenticates (hazard H12).
  @_lifetime(buffer: copy buffer)
  private mutating func openFirst(
    in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, parts: FrameParts, _ receiver: Receiver,
    under key: HeldKey, at now: Instant
  ) throws(OpenFailure) -> Range<Int> {
    let keyID = parts.header.keyID
    let participant = receiver.participant
    guard !participant.isLocal, !state.ownContexts.contains(CallKeyID(rawValue: keyID).context) else {
      throw .ownFrame
    }
    guard !receiver.isClosed(keyID) else { throw .closedContext }
    guard !receiver.isFull(for: key) else { throw .contextLimit }
    guard participant.mayDerive(at: now, limit: configuration.failedDerivations) else {
      throw .derivationLimit
    }
    do throws(OpenFailure) {
      let context = ReceiveContext(
        keyID: keyID, key: key, opener: try opener(keyID: keyID, receiver, under: key))
      let opened = try context.opener.open(in: &buffer, frame: frame, parts: parts)
      receiver.open(context, closing: now + configuration.retention, limit: configuration.contexts)
      seen(key)
      updateDeadline()
      return opened
    } catch {
      participant.countFailedDerivation()
      throw error
    }
  }

  private func opener(
    keyID: UInt64, _ receiver: Receiver, under key: HeldKey
  ) throws(OpenFailure) -> FrameOpener {
    // Room and identity were checked when they were taken in, and the key has its suite's length.
    guard let base = try? key.key.senderBaseKey(room: room, identity: receiver.participant.identity) else {
      throw .notAuthentic
    }
    do throws(CryptoError) {
      return try FrameOpener(keyID: keyID, baseKey: base.span, source: receiver.source, codec: receiver.codec)
    } catch {
      throw .notAuthentic
    }
  }

  func receiver(_ id: FrameReceiverID) -> Receiver? {
    guard id.index < state.receivers.count, let receiver = state.receivers[id.index] else { return nil }
    return receiver.generation == id.generation ? receiver : nil
  }

  mutating func closeContexts(at now: Instant) {
    for receiver in state.receivers { receiver?.closeContexts(at: now) }
    forgetParticipants()
  }

  private mutating func forgetParticipants() {
    for participant in state.participants.values where participant.hasLeft {
      guard participant.receivers.allSatisfy({ $0.receiver.isForgettable }) else { continue }
      for entry in participant.receivers { state.receivers[entry.id.index] = nil }
      statistics.waitingFrames -= participant.waiting.count
      state.participants[participant.identity.text] = nil
    }
  }

  // MARK: Counting

  private mutating func countOpened(_ participant: Participant) {
    statistics.received.countOpened()
    participant.counts.countOpened()
    if participant.isUnreadable {
      participant.isUnreadable = false
      state.report(.readable(identity: participant.identity.text))
    }
  }

  private mutating func refuse(_ failure: OpenFailure, _ receiver: Receiver) -> OpenResult {
    count(failure, receiver.participant)
    return .failed(failure)
  }

  mutating func count(_ failure: OpenFailure, _ participant: Participant) {
    statistics.received.count(failure)
    participant.counts.count(failure)
    let inARow = Int(truncatingIfNeeded: participant.counts.failedInARow)
    if inARow >= configuration.unreadableAfter, !participant.isUnreadable {
      participant.isUnreadable = true
      state.report(.unreadable(identity: participant.identity.text, frames: inARow, latest: failure))
    }
  }
}
