import PalbeUnits

/// What a `VP8Encoder` is told.
///
/// The encoder runs in real time with one pass, no look-ahead, constant bitrate and no frame dropping; a key
/// frame comes first and then only on demand. Temporal layers and libvpx's error resilience are off: a lost
/// frame is sent again or answered with a key frame, and the bits go into quality.
public struct VP8Configuration: Equatable, Sendable {
  /// Pixels in a row, 2 to 4,096.
  public var width: Int
  /// Rows, 2 to 4,096.
  public var height: Int
  /// Pictures a second that the encoder may expect, 1 to 120.
  public var framesPerSecond: Int
  /// The target, 30 kbit/s to 50 Mbit/s.
  public var bitrate: DataRate
  /// 1 to 8.
  public var threads: Int
  /// How much quality is traded for time: 0 (slowest) to 16 (fastest). Fixed: it does not follow the
  /// processor's load, so that the same pictures give the same bytes.
  public var speed: Int

  /// 640x360 at 30 pictures a second and 1 Mbit/s unless told otherwise.
  public init(
    width: Int = 640, height: Int = 360, framesPerSecond: Int = 30, bitrate: DataRate = .megabitsPerSecond(1),
    threads: Int = 1, speed: Int = 6
  ) {
    self.width = width
    self.height = height
    self.framesPerSecond = framesPerSecond
    self.bitrate = bitrate
    self.threads = threads
    self.speed = speed
  }

  var isValid: Bool {
    (2...4_096).contains(width) && (2...4_096).contains(height) && (1...120).contains(framesPerSecond)
      && Self.allowedRates.contains(bitrate.bitsPerSecond) && (1...8).contains(threads)
      && (0...16).contains(speed)
  }

  static let allowedRates: ClosedRange<Int64> = 30_000...50_000_000
}

/// What `VP8Encoder.encode` appended.
public struct VP8EncodedFrame: Equatable, Sendable {
  /// Bytes appended.
  public var byteCount: Int
  /// True when the frame needs no other.
  public var isKeyFrame: Bool
  /// The mean quantizer, 0 (finest) to 63 (coarsest).
  public var quantizer: Int
}
