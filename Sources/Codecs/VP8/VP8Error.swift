import CPalbeVPX

/// Why VP8 refused.
public enum VP8Error: Error, Equatable, Sendable {
  /// A value of the configuration is out of its documented range.
  case invalidConfiguration
  /// The picture does not have the encoder's size.
  case wrongSize(width: Int32, height: Int32)
  /// The caller's buffer cannot hold the frame, which is lost: the next frame must be a key frame.
  case outputTooSmall(needed: Int, have: Int)
  /// The encoder gave no frame for a picture.
  case noOutput
  /// A frame came before the first key frame.
  case needsKeyFrame
  /// The frame is too short or breaks the format (RFC 6386 §9).
  case invalidFrame
  /// The key frame's picture is larger than the decoder was made for.
  case pictureTooLarge(width: Int32, height: Int32)
  /// The frame ended early or refers to damaged frames: the picture is not what was sent. Ask for a key
  /// frame.
  case corruptFrame
  /// The library failed; `code` is its `vpx_codec_err_t`.
  case library(code: UInt32)
}

/// Throws for any result but success.
func checked(_ result: vpx_codec_err_t) throws(VP8Error) {
  switch result {
  case VPX_CODEC_OK: return
  case VPX_CODEC_INVALID_PARAM: throw .invalidConfiguration
  default: throw .library(code: result.rawValue)
  }
}
