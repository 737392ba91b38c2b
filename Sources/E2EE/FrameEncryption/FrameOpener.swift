import PalbeCrypto
import PalbeWire

/// Where the parts of a sealed frame lie.
struct FrameParts {
  /// Bytes in front of the header.
  let clearByteCount: Int
  let header: SFrameHeader

  /// Finds the header behind the clear bytes.
  ///
  /// A frame shorter than its clear part was sealed with nothing inside, so its header ends right in front of the
  /// tag. That form is taken only when the usual place holds no header of a key that `isKnown`; which of the two it was
  /// is authenticated, since the clear bytes are.
  @inline(__always)
  static func locate(
    in frame: Span<UInt8>, codec: FrameCodec, isKnown: (UInt64) -> Bool
  ) -> FrameParts? {
    guard !frame.isEmpty else { return nil }
    let clear = codec.clearByteCount(firstByte: frame[0])
    let usual = header(in: frame, at: clear)
    if let usual, isKnown(usual.keyID) { return FrameParts(clearByteCount: clear, header: usual) }
    return locateShort(in: frame, below: clear, usual: usual, isKnown: isKnown)
  }

  @inline(never)
  private static func locateShort(
    in frame: Span<UInt8>, below clear: Int, usual: SFrameHeader?, isKnown: (UInt64) -> Bool
  ) -> FrameParts? {
    for short in 0..<clear {
      guard let header = header(in: frame, at: short) else { continue }
      guard short + header.byteCount + SFrameCipherSuite.tagByteCount == frame.count else { continue }
      if isKnown(header.keyID) { return FrameParts(clearByteCount: short, header: header) }
    }
    return usual.map { FrameParts(clearByteCount: clear, header: $0) }
  }

  @inline(__always)
  private static func header(in frame: Span<UInt8>, at offset: Int) -> SFrameHeader? {
    guard offset < frame.count else { return nil }
    guard let header = try? SFrameHeader.parse(frame, at: offset) else { return nil }
    guard frame.count - offset - header.byteCount >= SFrameCipherSuite.tagByteCount else { return nil }
    return header
  }
}

/// Opens the frames of one track and layer under one key; see `FrameSealer` for their form.
public struct FrameOpener: ~Copyable, Sendable {
  /// What the frames must show.
  public let source: FrameSource
  /// Their format.
  public let codec: FrameCodec
  private var opener: SFrameOpener

  /// Derives the key.
  public init(
    suite: SFrameCipherSuite = .aes256GCM, keyID: UInt64, baseKey: Span<UInt8>, source: FrameSource,
    codec: FrameCodec
  ) throws(CryptoError) {
    opener = try SFrameOpener(suite: suite, keyID: keyID, baseKey: baseKey)
    self.source = source
    self.codec = codec
  }

  /// KID of the frames it opens.
  public var keyID: UInt64 { opener.keyID }

  /// Opens `buffer[frame]` in place without an allocation; returns where clear bytes and plaintext lie, side by side.
  ///
  /// A frame that is not authentic is destroyed, and moves nothing.
  @_lifetime(buffer: copy buffer)
  public mutating func open(
    in buffer: inout MutableSpan<UInt8>, frame: Range<Int>
  ) throws(OpenFailure) -> Range<Int> {
    guard frame.lowerBound >= 0, frame.upperBound <= buffer.count else { throw .malformed }
    let keyID = opener.keyID
    let located = FrameParts.locate(in: buffer.span.extracting(frame), codec: codec) { $0 == keyID }
    guard let parts = located else { throw .malformed }
    return try open(in: &buffer, frame: frame, parts: parts)
  }

  /// As above with the parts already found.
  @_lifetime(buffer: copy buffer)
  mutating func open(
    in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, parts: FrameParts
  ) throws(OpenFailure) -> Range<Int> {
    guard parts.header.counter < SealLimits.standard.frames else { throw .counterTooHigh }
    let start = frame.lowerBound + parts.clearByteCount
    // A located frame has at least 17 bytes behind its clear ones.
    let clear = ClearBytes(buffer, at: frame.lowerBound, count: parts.clearByteCount)
    let body = try opener.open(
      in: &buffer, from: start, to: frame.upperBound, header: parts.header, source: source, clear: clear)
    let first = body.lowerBound - parts.clearByteCount
    clear.store(into: &buffer, at: first)
    return first..<body.upperBound
  }
}
