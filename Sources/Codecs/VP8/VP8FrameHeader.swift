/// What the clear bytes at the start of a VP8 frame say (RFC 6386 §9.1).
public struct VP8FrameHeader: Equatable, Sendable {
  /// True for a frame that needs no other.
  public var isKeyFrame: Bool
  /// False for a frame that is only referred to.
  public var isShown: Bool
  /// Bytes of the first partition.
  public var firstPartitionByteCount: Int
  /// A key frame's picture, 1 to 16,383 on each side; nil otherwise.
  public var size: (width: Int, height: Int)? { width == 0 ? nil : (width, height) }

  private var width: Int
  private var height: Int

  /// Reads 3 bytes of a frame, 10 of a key frame; throws `invalidFrame` when they are missing or not VP8.
  public static func parse(_ frame: Span<UInt8>) throws(VP8Error) -> VP8FrameHeader {
    guard frame.count >= 3 else { throw .invalidFrame }
    let tag = Int(frame[0]) | Int(frame[1]) << 8 | Int(frame[2]) << 16
    // Versions above 3 are reserved.
    guard tag >> 1 & 7 <= 3 else { throw .invalidFrame }
    var header = VP8FrameHeader(
      isKeyFrame: tag & 1 == 0, isShown: tag >> 4 & 1 == 1, firstPartitionByteCount: tag >> 5, width: 0,
      height: 0)
    let clear = header.isKeyFrame ? 10 : 3
    guard frame.count > clear, header.firstPartitionByteCount > 0,
      header.firstPartitionByteCount <= frame.count - clear
    else { throw .invalidFrame }
    if header.isKeyFrame {
      guard frame[3] == 0x9d, frame[4] == 0x01, frame[5] == 0x2a else { throw .invalidFrame }
      // The upper two bits of each side are a hint for scaling.
      header.width = (Int(frame[6]) | Int(frame[7]) << 8) & 0x3fff
      header.height = (Int(frame[8]) | Int(frame[9]) << 8) & 0x3fff
      guard header.width > 0, header.height > 0 else { throw .invalidFrame }
    }
    return header
  }
}
