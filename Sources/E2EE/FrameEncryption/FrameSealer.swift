import PalbeCrypto

/// Seals the frames of one track and layer under one key.
///
/// A sealed frame is `clear || SFrame header || ciphertext || tag`. The header is authenticated with the source and the
/// clear bytes, which the SFU may read and nobody may change. A frame is sealed once, before it is packetized;
/// whoever repairs a loss sends the same bytes again (hazard H6).
public struct FrameSealer: ~Copyable, Sendable {
  /// What the frames show.
  public let source: FrameSource
  /// Their format.
  public let codec: FrameCodec
  private var sealer: SFrameSealer

  /// Room that a frame needs in front of it when it is sealed in place.
  public static let headroom = SFrameHeader.maximumByteCount
  /// Room that it needs behind it.
  public static let tailroom = SFrameCipherSuite.tagByteCount
  /// The most bytes by which a frame grows.
  public static let maximumOverhead = headroom + tailroom

  /// `keyID` must be fresh for this base key: see `CallKeyRing`, which sees to that.
  public init(
    suite: SFrameCipherSuite = .aes256GCM, keyID: UInt64, baseKey: Span<UInt8>, source: FrameSource,
    codec: FrameCodec, limits: SealLimits = .standard
  ) throws(CryptoError) {
    self.init(
      sealer: try SFrameSealer(suite: suite, keyID: keyID, baseKey: baseKey, limits: limits), source: source,
      codec: codec)
  }

  init(sealer: consuming SFrameSealer, source: FrameSource, codec: FrameCodec) {
    self.sealer = sealer
    self.source = source
    self.codec = codec
  }

  /// KID of every frame.
  public var keyID: UInt64 { sealer.keyID }
  /// CTR of the next frame.
  public var nextCounter: UInt64 { sealer.nextCounter }
  /// True when `byteCount` more bytes are above a limit.
  public func isExhausted(adding byteCount: Int) -> Bool { sealer.isExhausted(adding: byteCount) }

  /// Seals `buffer[frame]` in place without an allocation; returns where the sealed frame lies.
  ///
  /// The buffer needs `headroom` bytes in front of the frame and `tailroom` behind it.
  @_lifetime(buffer: copy buffer)
  public mutating func seal(
    in buffer: inout MutableSpan<UInt8>, frame: Range<Int>
  ) throws(SealError) -> Range<Int> {
    guard frame.lowerBound >= FrameSealer.headroom else {
      throw .noRoom(needed: FrameSealer.headroom, have: frame.lowerBound)
    }
    guard frame.upperBound <= buffer.count - FrameSealer.tailroom else {
      throw .noRoom(needed: FrameSealer.tailroom, have: buffer.count - frame.upperBound)
    }
    let clear =
      frame.isEmpty ? 0 : min(codec.clearByteCount(firstByte: buffer[frame.lowerBound]), frame.count)
    let body = frame.lowerBound + clear..<frame.upperBound
    let bytes = ClearBytes(buffer, at: frame.lowerBound, count: clear)
    return try sealer.seal(in: &buffer, body: body, source: source, clear: bytes)
  }

  /// Appends the sealed form of `frame` to `output`, at most `maximumOverhead` bytes longer, without an allocation.
  @_lifetime(output: copy output)
  public mutating func seal(
    _ frame: Span<UInt8>, into output: inout OutputSpan<UInt8>
  ) throws(SealError) {
    let clear = frame.isEmpty ? 0 : min(codec.clearByteCount(firstByte: frame[0]), frame.count)
    let length = sealer.nextHeaderByteCount
    let needed = length + frame.count + FrameSealer.tailroom
    guard output.freeCapacity >= needed else { throw .noRoom(needed: needed, have: output.freeCapacity) }
    let start = output.count
    output.append(zeros: length)
    output.append(copying: frame)
    output.append(zeros: FrameSealer.tailroom)
    do throws(SealError) {
      let body = start + length + clear..<start + length + frame.count
      var bytes = output.mutableSpan
      let held = ClearBytes(bytes, at: start + length, count: clear)
      _ = try sealer.seal(in: &bytes, body: body, source: source, clear: held)
    } catch {
      output.removeLast(needed)
      throw error
    }
  }
}
