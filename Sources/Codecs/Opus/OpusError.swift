import CPalbeOpus

/// Why Opus refused.
public enum OpusError: Error, Equatable, Sendable {
  /// The number of channels is neither 1 nor 2, or another value is out of its documented range.
  case invalidConfiguration
  /// The samples are not a whole frame of 2.5, 5, 10, 20, 40 or 60 ms, or a loss is not a multiple of 2.5 ms.
  case invalidFrameLength(samples: Int)
  /// The caller's buffer cannot hold the result.
  case outputTooSmall(needed: Int, have: Int)
  /// The packet is empty or breaks the format (RFC 6716 §3.4).
  case invalidPacket
  /// The library failed; `code` is one of its OPUS_ error codes.
  case library(code: Int32)
}

/// Throws for a negative result of the library, else returns it.
func checked(_ result: Int32, needed: Int = 0, have: Int = 0) throws(OpusError) -> Int {
  if result >= 0 { return Int(result) }
  switch result {
  case OPUS_INVALID_PACKET: throw .invalidPacket
  case OPUS_BUFFER_TOO_SMALL: throw .outputTooSmall(needed: needed, have: have)
  default: throw .library(code: result)
  }
}
