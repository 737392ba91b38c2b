/// What a frame shows or carries. Authenticated with it, so a camera's frame is no screen's (hazard H10).
public enum FrameSource: UInt8, CaseIterable, Hashable, Sendable {
  /// The camera.
  case camera = 1
  /// The microphone.
  case microphone = 2
  /// A shared screen or window.
  case screen = 3
  /// The sound of a shared screen.
  case screenAudio = 4
  /// Anything else, such as a data message.
  case data = 255
}

/// The format of a frame before it is sealed: how many bytes stay readable for the SFU. They are authenticated.
public enum FrameCodec: UInt8, CaseIterable, Hashable, Sendable {
  /// VP8: 10 bytes of a key frame, 3 of another; the SFU needs the key-frame bit and the size.
  case vp8
  /// Opus: the first byte (the TOC, RFC 6716 §3.1).
  case opus
  /// No clear bytes.
  case data

  /// The most clear bytes of any codec.
  public static let maximumClearByteCount = 10

  /// Clear bytes of a frame that begins with `first`: for VP8 its lowest bit says "no key frame" (RFC 6386 §9.1).
  @inlinable public func clearByteCount(firstByte first: UInt8) -> Int {
    switch self {
    case .vp8: first & 1 == 0 ? 10 : 3
    case .opus: 1
    case .data: 0
    }
  }
}
