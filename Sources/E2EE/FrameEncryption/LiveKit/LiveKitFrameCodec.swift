/// The format of a frame before LiveKit's end-to-end encryption seals it: how many bytes stay readable for the SFU
/// (livekit-protocol.md §3). They are authenticated.
///
/// AV1 is missing: LiveKit's own clients do not agree on it.
public enum LiveKitFrameCodec: UInt8, CaseIterable, Hashable, Sendable {
  /// Any sound: one byte.
  case audio
  /// 10 bytes of a key frame, 3 of another.
  case vp8
  /// None.
  case vp9
  /// Annex B: up to the second byte of the first slice; none without a slice.
  case h264
  /// As H.264, with two-byte unit headers.
  case h265

  /// Clear bytes of `frame`, sealed or not, at most all of it.
  public func clearByteCount(of frame: Span<UInt8>) -> Int {
    guard !frame.isEmpty else { return 0 }
    switch self {
    case .audio: return 1
    case .vp8: return min(frame.count, frame[0] & 1 == 0 ? 10 : 3)
    case .vp9: return 0
    case .h264, .h265:
      // Both end two bytes behind the start code: H.264 shows a byte of the slice, H.265 its unit header.
      guard let unit = NALUnits.first(in: frame, where: { isSlice($0) }) else { return 0 }
      return min(frame.count, unit + 2)
    }
  }

  /// True where what follows the clear bytes must not look like a start code.
  var escapes: Bool { self == .h264 || self == .h265 }

  /// True for a unit that holds a slice, by the first byte of its header.
  private func isSlice(_ header: UInt8) -> Bool {
    if self == .h264 { return header & 0x1f == 1 || header & 0x1f == 5 }
    let type = header >> 1 & 0x3f
    return type <= 9 || (16...21).contains(type)
  }
}
