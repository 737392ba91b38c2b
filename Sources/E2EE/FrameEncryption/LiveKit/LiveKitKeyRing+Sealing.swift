import PalbeCrypto
import PalbeUnits
import PalbeWire

extension LiveKitKeyRing {
  /// A handle for one track, or one simulcast layer of it, by the SSRC of its packets.
  ///
  /// The SSRC goes into its IVs unless this process used it before: then, and when a track has used its timestamps up (after 13
  /// hours at 90 kHz), a random number stands for it, which no receiver minds. Throws `tooMany` above 4,096 at once.
  public mutating func makeSender(codec: LiveKitFrameCodec, ssrc: UInt32) throws(FrameKeyError)
    -> FrameSenderID
  {
    let index = state.senders.firstIndex { $0 == nil } ?? state.senders.count
    guard index < Self.handleLimit else { throw .tooMany(limit: Self.handleLimit) }
    state.generation &+= 1
    let sender = LiveKitSender(codec: codec, generation: state.generation, ivs: freshIVs(preferring: ssrc))
    if index == state.senders.count { state.senders.append(sender) } else { state.senders[index] = sender }
    return FrameSenderID(index: index, generation: sender.generation)
  }

  /// The track ended.
  public mutating func removeSender(_ id: FrameSenderID) {
    if sender(id) != nil { state.senders[id.index] = nil }
  }

  private func sender(_ id: FrameSenderID) -> LiveKitSender? {
    guard id.index < state.senders.count, let sender = state.senders[id.index] else { return nil }
    return sender.generation == id.generation ? sender : nil
  }

  /// IVs of a source that nothing in this process used, counted from a random number on.
  mutating func freshIVs(preferring source: UInt32?) -> LiveKitIVSequence {
    let source = ledger.freshSource(preferring: source, using: &random)
    if state.ownSources.count == LiveKitRingState.ownSourceLimit { state.ownSources.removeFirst() }
    state.ownSources.append(source)
    statistics.sendContexts += 1
    return LiveKitIVSequence(source: source, firstCount: UInt32(truncatingIfNeeded: random.next() >> 32))
  }

  /// Room that a frame needs behind it when it is sealed in place: 30 bytes, and what escaping may add.
  public static func tailroom(forFrameOf byteCount: Int, codec: LiveKitFrameCodec) -> Int {
    let fixed = LiveKitFrameFormat.overhead
    return codec.escapes ? fixed + NALUnits.maximumEscapes(byteCount + fixed) : fixed
  }

  /// Seals `buffer[frame]` in place; returns where the sealed frame lies, from the same start. An empty frame stays empty.
  ///
  /// The buffer needs `tailroom(forFrameOf:codec:)` bytes behind the frame. `timestamp` is the RTP timestamp of the frame's
  /// packets. Throws `noKey` when the send slot is empty: the frame must not leave then.
  @_lifetime(buffer: copy buffer)
  public mutating func seal(
    _ id: FrameSenderID, in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, timestamp: UInt32
  ) throws(SealError) -> Range<Int> {
    guard let sender = sender(id) else { throw .unknownSender }
    let tailroom = Self.tailroom(forFrameOf: frame.count, codec: sender.codec)
    guard frame.lowerBound >= 0, frame.upperBound <= buffer.count - tailroom else {
      throw .noRoom(needed: tailroom, have: buffer.count - frame.upperBound)
    }
    guard frame.count <= SFrameSealer.maximumFrameByteCount else {
      throw .tooLong(have: frame.count, limit: SFrameSealer.maximumFrameByteCount)
    }
    let step = try sendStep()
    guard !frame.isEmpty else { return frame }
    let clear = sender.codec.clearByteCount(of: buffer.span.extracting(frame))
    let iv = try nextIV(sender, timestamp: timestamp)
    let body = frame.lowerBound + clear..<frame.upperBound
    do throws(CryptoError) {
      try step.seal(in: &buffer, body: body, clear: frame.lowerBound..<body.lowerBound, iv: iv)
    } catch {
      throw .crypto(error)
    }
    var end = LiveKitFrameFormat.writeTrailer(
      into: &buffer, at: frame.upperBound + LiveKitFrameFormat.tagByteCount, iv: iv, keyIndex: sendIndex)
    if sender.codec.escapes { end = escape(&buffer, frame.lowerBound + clear..<end) }
    statistics.sealedFrames += 1
    statistics.sealedBytes += UInt64(frame.count)
    return frame.lowerBound..<end
  }

  /// The step that we seal under.
  mutating func sendStep() throws(SealError) -> LiveKitKeyStep {
    guard let chain = state.chain(of: state.local, sendIndex),
      let step = chain.step(state.local.slots[sendIndex].step)
    else {
      statistics.withheldFrames += 1
      throw .noKey
    }
    return step
  }

  /// An IV never given out before: of a new source when the track's own are used up.
  private mutating func nextIV(_ sender: LiveKitSender, timestamp: UInt32) throws(SealError) -> LiveKitIV {
    if let iv = sender.ivs.next(timestamp: timestamp) { return iv }
    sender.ivs = freshIVs(preferring: nil)
    guard let iv = sender.ivs.next(timestamp: timestamp) else { throw .exhausted }
    return iv
  }

  @_lifetime(buffer: copy buffer)
  private mutating func escape(_ buffer: inout MutableSpan<UInt8>, _ range: Range<Int>) -> Int {
    state.reserveScratch(range.count)
    var scratch: [UInt8] = []
    swap(&scratch, &state.scratch)
    defer { swap(&scratch, &state.scratch) }
    var copy = scratch.mutableSpan
    copy.copy(buffer.span.extracting(range), at: 0)
    return NALUnits.escape(copy.span.extracting(0..<range.count), into: &buffer, at: range.lowerBound)
  }

  // MARK: Data packets

  /// Appends ciphertext and tag of a data packet's serialized payload to `output`: 16 bytes more, nothing else authenticated.
  ///
  /// IV and key index go into `DataPacket.encrypted_packet` beside it. `unixMilliseconds` is the wall clock's; a clock that goes
  /// back repeats no IV. Throws `noKey`, `noRoom` and `tooLong`.
  @_lifetime(output: copy output)
  public mutating func sealData(
    _ payload: Span<UInt8>, unixMilliseconds: UInt64, into output: inout OutputSpan<UInt8>
  ) throws(SealError) -> (iv: LiveKitIV, keyIndex: Int) {
    let needed = payload.count + LiveKitFrameFormat.tagByteCount
    guard output.freeCapacity >= needed else { throw .noRoom(needed: needed, have: output.freeCapacity) }
    guard payload.count <= SFrameSealer.maximumFrameByteCount else {
      throw .tooLong(have: payload.count, limit: SFrameSealer.maximumFrameByteCount)
    }
    let step = try sendStep()
    let iv = try nextDataIV(UInt32(truncatingIfNeeded: unixMilliseconds))
    let start = output.count
    output.append(copying: payload)
    output.append(zeros: LiveKitFrameFormat.tagByteCount)
    do throws(CryptoError) {
      var bytes = output.mutableSpan
      try step.seal(in: &bytes, body: start..<start + payload.count, clear: 0..<0, iv: iv)
    } catch {
      output.removeLast(needed)
      throw .crypto(error)
    }
    return (iv, sendIndex)
  }

  private mutating func nextDataIV(_ timestamp: UInt32) throws(SealError) -> LiveKitIV {
    if let iv = state.dataIVs?.next(timestamp: timestamp) { return iv }
    var ivs = freshIVs(preferring: nil)
    let first = ivs.next(timestamp: timestamp)
    state.dataIVs = ivs
    guard let first else { throw .exhausted }
    return first
  }
}
