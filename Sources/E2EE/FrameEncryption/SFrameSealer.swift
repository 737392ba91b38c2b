import PalbeCrypto

/// How much one key may seal before a new one must be derived (hazard H11).
public struct SealLimits: Equatable, Sendable {
  /// Frames under one key.
  public let frames: UInt64
  /// Sealed bytes under one key, headers and tags not counted.
  public let bytes: UInt64

  /// 2^32 frames and 2^40 bytes: GCM's bounds with room to spare.
  public static let standard = SealLimits(frames: 1 << 32, bytes: 1 << 40)

  /// Lower limits, for tests; `frames` above 2^32 is cut to it.
  public init(frames: UInt64, bytes: UInt64) {
    self.frames = min(frames, 1 << 32)
    self.bytes = bytes
  }
}

/// Seals frames under one SFrame key (RFC 9605 §4.4.3): writes header, ciphertext and tag.
///
/// A nonce cannot repeat: the counter moves before a frame is sealed and never goes back, whatever happens next
/// (hazards H6, H7), and the value cannot be copied. Two values must not be made from one base key and key id.
public struct SFrameSealer: ~Copyable, Sendable {
  /// KID of every frame.
  public let keyID: UInt64
  /// CTR of the next frame.
  public private(set) var nextCounter: UInt64
  /// Bytes sealed so far.
  public private(set) var sealedByteCount: UInt64 = 0
  /// Where this key ends.
  public let limits: SealLimits

  private let salt: FrameSalt
  private var context: AEADContext

  /// Longest frame, 16 MiB: above any encoded picture, below what OpenSSL counts in.
  public static let maximumFrameByteCount = 1 << 24

  /// Derives the key; the first frame has counter 0.
  public init(
    suite: SFrameCipherSuite, keyID: UInt64, baseKey: Span<UInt8>, limits: SealLimits = .standard
  ) throws(CryptoError) {
    try self.init(suite: suite, keyID: keyID, baseKey: baseKey, limits: limits, firstCounter: 0)
  }

  /// Published vectors begin elsewhere.
  init(
    suite: SFrameCipherSuite, keyID: UInt64, baseKey: Span<UInt8>, limits: SealLimits, firstCounter: UInt64
  ) throws(CryptoError) {
    let derived = SFrameKey(suite: suite, keyID: keyID, baseKey: baseKey)
    context = try AEADContext(suite.algorithm, key: derived.key.span, direction: .seal)
    salt = FrameSalt(derived.salt.span)
    self.keyID = keyID
    self.limits = limits
    nextCounter = firstCounter
    remainingFrames = limits.frames
  }

  private var remainingFrames: UInt64

  /// True when `byteCount` more bytes are above a limit.
  public func isExhausted(adding byteCount: Int) -> Bool {
    remainingFrames == 0 || UInt64(max(byteCount, 0)) > limits.bytes - min(sealedByteCount, limits.bytes)
  }

  /// Bytes that the next frame's header takes.
  public var nextHeaderByteCount: Int { SFrameHeader(keyID: keyID, counter: nextCounter).byteCount }

  /// Seals `buffer[body]` in place: the header goes right in front of it, the 16-byte tag right behind.
  ///
  /// `metadata` is authenticated and not sent. Returns where header, ciphertext and tag lie. Throws `noRoom` unless
  /// there are `nextHeaderByteCount` bytes in front of the body and 16 behind, and `exhausted` at the limits;
  /// no counter is used up then.
  @_lifetime(buffer: copy buffer)
  public mutating func seal(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, metadata: Span<UInt8>
  ) throws(SealError) -> Range<Int> {
    let header = try nextHeader(body, in: buffer.count)
    let length = header.byteCount
    let start = body.lowerBound - length
    header.write(into: &buffer, at: start)
    let nonce = FrameNonce(salt: salt, counter: header.counter)
    do throws(CryptoError) {
      if length + metadata.count <= AssociatedData.capacity {
        var aad = AssociatedData()
        aad.set(header, metadata: metadata)
        try context.seal(in: &buffer, body: body, authenticating: aad.span, nonce: nonce.span)
      } else {
        try context.seal(
          in: &buffer, body: body, authenticating: start..<body.lowerBound, metadata, nonce: nonce.span)
      }
    } catch {
      throw .crypto(error)
    }
    return start..<body.upperBound + SFrameCipherSuite.tagByteCount
  }

  /// Seals `buffer[body]` in place with its clear bytes in front: they go in front of the header. The buffer has
  /// `FrameSealer.headroom` bytes in front of them.
  @inline(__always) @_lifetime(buffer: copy buffer)
  mutating func seal(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, source: FrameSource, clear: ClearBytes
  ) throws(SealError) -> Range<Int> {
    let header = try nextHeader(body, in: buffer.count)
    let start = body.lowerBound - header.byteCount
    if header.isWide && clear.count > 0 {
      // Ten bytes of which some are slack: it ends inside the header, which is written over it.
      clear.storeWide(into: &buffer, at: start - clear.count)
      header.writeWide(into: &buffer, at: start)
    } else {
      clear.store(into: &buffer, at: start - clear.count)
      header.write(into: &buffer, at: start)
    }
    var aad = AssociatedData()
    aad.set(header, source: source, clear: clear)
    let nonce = FrameNonce(salt: salt, counter: header.counter)
    do throws(CryptoError) {
      try context.seal(in: &buffer, body: body, authenticating: aad.span, nonce: nonce.span)
    } catch {
      throw .crypto(error)
    }
    return start - clear.count..<body.upperBound + SFrameCipherSuite.tagByteCount
  }

  /// Checks room and limits, and spends a counter (hazard H7): what happens to the frame from here on changes nothing.
  @inline(__always)
  private mutating func nextHeader(_ body: Range<Int>, in count: Int) throws(SealError) -> SFrameHeader {
    let header = SFrameHeader(keyID: keyID, counter: nextCounter)
    guard body.lowerBound >= header.byteCount else {
      throw .noRoom(needed: header.byteCount, have: body.lowerBound)
    }
    guard body.upperBound <= count - SFrameCipherSuite.tagByteCount else {
      throw .noRoom(needed: SFrameCipherSuite.tagByteCount, have: count - body.upperBound)
    }
    guard body.count <= SFrameSealer.maximumFrameByteCount else {
      throw .tooLong(have: body.count, limit: SFrameSealer.maximumFrameByteCount)
    }
    guard !isExhausted(adding: body.count) else { throw .exhausted }
    nextCounter &+= 1
    remainingFrames -= 1
    sealedByteCount += UInt64(body.count)
    return header
  }

  /// Appends header, ciphertext and tag of `plaintext` to `output`. Throws as the form in place.
  @_lifetime(output: copy output)
  public mutating func seal(
    _ plaintext: Span<UInt8>, metadata: Span<UInt8>, into output: inout OutputSpan<UInt8>
  ) throws(SealError) {
    let length = nextHeaderByteCount
    let needed = length + plaintext.count + SFrameCipherSuite.tagByteCount
    guard output.freeCapacity >= needed else { throw .noRoom(needed: needed, have: output.freeCapacity) }
    let start = output.count
    output.append(zeros: length)
    output.append(copying: plaintext)
    output.append(zeros: SFrameCipherSuite.tagByteCount)
    do throws(SealError) {
      let body = start + length..<start + length + plaintext.count
      var bytes = output.mutableSpan
      _ = try seal(in: &bytes, body: body, metadata: metadata)
    } catch {
      output.removeLast(needed)
      throw error
    }
  }
}
