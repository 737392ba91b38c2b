import PalbeCrypto
import PalbeUnits

extension CallKeyRing {
  /// A handle for one track, or one simulcast layer of it. Each gets keys of its own (hazard H5).
  ///
  /// Throws `tooMany` above 4,096 at once.
  public mutating func makeSender(source: FrameSource, codec: FrameCodec) throws(FrameKeyError)
    -> FrameSenderID
  {
    let sender = Sender(source: source, codec: codec)
    state.generation &+= 1
    sender.generation = state.generation
    if let free = state.senders.firstIndex(where: { $0 == nil }) {
      state.senders[free] = sender
      return FrameSenderID(index: free, generation: sender.generation)
    }
    guard state.senders.count < CallKeyRing.handleLimit else {
      throw .tooMany(limit: CallKeyRing.handleLimit)
    }
    state.senders.append(sender)
    return FrameSenderID(index: state.senders.count - 1, generation: sender.generation)
  }

  /// The track ended: its key is wiped.
  public mutating func removeSender(_ id: FrameSenderID) {
    if sender(id) != nil { state.senders[id.index] = nil }
  }

  /// Seals `buffer[frame]` in place; returns where the sealed frame lies.
  ///
  /// The buffer needs `FrameSealer.headroom` bytes in front and `FrameSealer.tailroom` behind. Throws `noKey` before the
  /// first key: the frame must not leave then.
  @_lifetime(buffer: copy buffer)
  public mutating func seal(
    _ id: FrameSenderID, in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, at now: Instant
  ) throws(SealError) -> Range<Int> {
    let sender = try ready(id, byteCount: frame.count, at: now)
    let sealed = try sender.sealer!.seal(in: &buffer, frame: frame)
    countSealed(frame.count)
    return sealed
  }

  /// Appends the sealed form of `frame` to `output`, at most `FrameSealer.maximumOverhead` bytes longer.
  @_lifetime(output: copy output)
  public mutating func seal(
    _ id: FrameSenderID, _ frame: Span<UInt8>, into output: inout OutputSpan<UInt8>, at now: Instant
  ) throws(SealError) {
    let sender = try ready(id, byteCount: frame.count, at: now)
    try sender.sealer!.seal(frame, into: &output)
    countSealed(frame.count)
  }

  private mutating func countSealed(_ byteCount: Int) {
    statistics.sealedFrames += 1
    statistics.sealedBytes += UInt64(byteCount)
  }

  private func sender(_ id: FrameSenderID) -> Sender? {
    guard id.index < state.senders.count, let sender = state.senders[id.index] else { return nil }
    return sender.generation == id.generation ? sender : nil
  }

  /// The sender with a sealer under the send key that has room for `byteCount` more bytes.
  private mutating func ready(
    _ id: FrameSenderID, byteCount: Int, at now: Instant
  ) throws(SealError) -> Sender {
    advance(to: now)
    guard let sender = sender(id) else { throw .unknownSender }
    guard let key = state.sendKey else {
      statistics.withheldFrames += 1
      throw .noKey
    }
    if sender.keySerial != key.serial || sender.sealer!.isExhausted(adding: byteCount) {
      try derive(sender, under: key)
    }
    return sender
  }

  /// A new context, so a new cipher key: counters need not survive anything (hazards H3, H4, H11).
  private mutating func derive(_ sender: Sender, under key: HeldKey) throws(SealError) {
    let context = ledger.freshContext(using: &random)
    let keyID = CallKeyID(context: context, keyIdentifier: key.key.keyIdentifier)
    let base: SymmetricKey
    do throws(FrameKeyError) {
      base = try key.key.senderBaseKey(room: room, identity: localIdentity)
    } catch {
      throw .noKey
    }
    do throws(CryptoError) {
      sender.sealer = try FrameSealer(
        keyID: keyID.rawValue, baseKey: base.span, source: sender.source, codec: sender.codec,
        limits: configuration.limits)
    } catch {
      throw .crypto(error)
    }
    sender.keySerial = key.serial
    state.ownContexts.insert(context)
    statistics.sendContexts += 1
  }
}
