/// LiveKit's sealed media frame (livekit-protocol.md §3):
///
///     clear header │ ciphertext │ tag 16 │ IV 12 │ 0x0C │ key index
///
/// AES-GCM; the clear header is the associated data. For H.264 and H.265 everything behind it is escaped as a unit's payload.
/// An empty frame stays empty.
enum LiveKitFrameFormat {
  static let tagByteCount = 16
  /// IV, its length and the key index.
  static let trailerByteCount = LiveKitIV.byteCount + 2
  static let overhead = tagByteCount + trailerByteCount

  /// Where the parts of a sealed frame lie, once it is not escaped any more.
  struct Parts {
    let clear: Range<Int>
    /// The ciphertext; the tag lies behind it.
    let body: Range<Int>
    let iv: LiveKitIV
    let keyIndex: Int
  }

  /// Takes escapes out of `buffer[frame]` and finds the parts; nil when it is not of this form.
  @_lifetime(buffer: copy buffer)
  static func locate(
    in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, codec: LiveKitFrameCodec
  ) -> Parts? {
    guard frame.count >= overhead else { return nil }
    let clear = codec.clearByteCount(of: buffer.span.extracting(frame))
    var end = frame.upperBound
    if codec.escapes { end = NALUnits.unescape(&buffer, frame.lowerBound + clear..<end) }
    let room = end - frame.lowerBound - overhead
    guard room >= 0, buffer[end - 2] == UInt8(LiveKitIV.byteCount) else { return nil }
    // A frame shorter than its clear part was sealed with nothing inside.
    let first = frame.lowerBound + min(clear, room)
    let last = end - overhead
    guard let iv = LiveKitIV(buffer.span.extracting(last + tagByteCount..<end - 2)) else { return nil }
    return Parts(
      clear: frame.lowerBound..<first, body: first..<last, iv: iv, keyIndex: Int(buffer[end - 1]))
  }

  /// Writes what follows the tag, from `end` on. Returns the new end.
  @_lifetime(buffer: copy buffer)
  static func writeTrailer(
    into buffer: inout MutableSpan<UInt8>, at end: Int, iv: LiveKitIV, keyIndex: Int
  ) -> Int {
    let bytes = iv.inlineBytes
    for index in 0..<LiveKitIV.byteCount { buffer[end + index] = bytes[index] }
    buffer[end + LiveKitIV.byteCount] = UInt8(LiveKitIV.byteCount)
    buffer[end + LiveKitIV.byteCount + 1] = UInt8(truncatingIfNeeded: keyIndex)
    return end + trailerByteCount
  }
}
