/// Opus in RTP (RFC 7587): one Opus packet is one RTP payload, on a 48 kHz clock whatever the bandwidth.
public enum OpusPayload {
  /// Ticks of the RTP clock in a second.
  public static let clockRate = 48_000

  /// Samples at 48 kHz that a packet holds, by its table of contents (RFC 6716 §3.1 and §3.2).
  ///
  /// Nil for an empty or malformed packet, and for more than the allowed 120 ms.
  @inlinable public static func samples(in packet: Span<UInt8>) -> Int? {
    guard packet.count > 0 else { return nil }
    let toc = packet[0]
    let frames: Int
    switch toc & 3 {
    case 0: frames = 1
    case 1, 2: frames = 2
    default:
      guard packet.count > 1 else { return nil }
      frames = Int(packet[1] & 0x3f)
    }
    let samples = frames * samplesPerFrame(configuration: toc >> 3)
    return samples > 0 && samples <= 5_760 ? samples : nil
  }

  /// Samples at 48 kHz of one frame in one of the 32 configurations.
  @inlinable static func samplesPerFrame(configuration: UInt8) -> Int {
    switch configuration {
    case 0..<12:  // SILK: 10, 20, 40, 60 ms
      switch configuration & 3 {
      case 0: 480
      case 1: 960
      case 2: 1_920
      default: 2_880
      }
    case 12..<16: configuration & 1 == 0 ? 480 : 960  // hybrid: 10, 20 ms
    default: 120 << Int(configuration & 3)  // CELT: 2.5, 5, 10, 20 ms
    }
  }
}
