import PalbeUnits

/// What an `OpusEncoder` is told. The clock is 48 kHz always (RFC 7587 §4.1).
public struct OpusConfiguration: Equatable, Sendable {
  /// What the encoder optimises for (RFC 6716 §2.1.4 to §2.1.9).
  public enum Application: Sendable {
    /// Speech: intelligible first. Low frequencies are filtered out, so a waveform is not kept exactly.
    case voice
    /// Any sound: faithful to the waveform first.
    case audio
  }

  /// 1 or 2.
  public var channels: Int
  /// The target, 6 to 510 kbit/s, in-band FEC included.
  public var bitrate: DataRate
  /// What the encoder optimises for.
  public var application: Application
  /// Each packet carries a coarse copy of the one before it when losses are expected and the mode allows it.
  public var usesInbandFEC: Bool
  /// 0 to 100: how much of the bitrate FEC may take.
  public var expectedLossPercent: Int
  /// Silence is sent as almost nothing, a packet every 400 ms.
  public var usesDTX: Bool
  /// 0 (cheapest) to 10 (best).
  public var complexity: Int

  /// A voice call: one channel, 48 kbit/s, FEC for 5 % of loss.
  public init(
    channels: Int = 1, bitrate: DataRate = .kilobitsPerSecond(48), application: Application = .voice,
    usesInbandFEC: Bool = true, expectedLossPercent: Int = 5, usesDTX: Bool = false, complexity: Int = 9
  ) {
    self.channels = channels
    self.bitrate = bitrate
    self.application = application
    self.usesInbandFEC = usesInbandFEC
    self.expectedLossPercent = expectedLossPercent
    self.usesDTX = usesDTX
    self.complexity = complexity
  }
}

/// Facts of the format (RFC 6716, RFC 7587).
public enum Opus {
  /// Samples a second and channel.
  public static let sampleRate = 48_000
  /// Samples a channel in the usual packet of 20 ms.
  public static let samplesPerFrame = 960
  /// Samples a channel in the longest packet, 120 ms.
  public static let maximumSamplesPerPacket = 5_760
  /// Bytes of the longest packet of one frame: TOC and 1,275 bytes (RFC 6716 §3.2.1).
  public static let maximumFrameByteCount = 1_276

  static func isFrameLength(_ samples: Int) -> Bool {
    switch samples {
    case 120, 240, 480, 960, 1_920, 2_880: true
    default: false
    }
  }
}
