import PalbeRTP
import PalbeUnits

/// A publisher's own clock beside the clock of one of its streams, by its last sender report.
///
/// Subscribers get reports on the publisher's clock, so that they can play its audio and video in step.
struct SourceClock {
  private let ntpTime: NTPTime
  private let rtpTimestamp: RTPTimestamp
  private let receivedAt: Instant

  init(_ report: SenderReport, receivedAt: Instant) {
    ntpTime = report.ntpTime
    rtpTimestamp = report.rtpTimestamp
    self.receivedAt = receivedAt
  }

  /// The publisher's wall clock; off by one way through the network.
  func ntpTime(at now: Instant) -> NTPTime {
    let elapsed = max(0, (now - receivedAt).nanoseconds)
    let seconds = UInt64(elapsed / 1_000_000_000)
    let fraction = (UInt64(elapsed % 1_000_000_000) << 32) / 1_000_000_000
    return NTPTime(rawValue: ntpTime.rawValue &+ (seconds << 32 | fraction))
  }

  /// What to add to the timestamps of `other`, another stream of the same publisher's, to make them this stream's.
  func offset(to other: SourceClock, clockRate: Int) -> UInt32 {
    let elapsed = Int64(bitPattern: other.ntpTime.rawValue &- ntpTime.rawValue)
    let ticks = ((elapsed >> 12) &* Int64(clockRate)) >> 20
    return rtpTimestamp.rawValue &+ UInt32(truncatingIfNeeded: ticks) &- other.rtpTimestamp.rawValue
  }

  /// The same moment on the stream's media clock.
  func rtpTimestamp(at now: Instant, clockRate: Int) -> RTPTimestamp {
    let elapsed = max(0, (now - receivedAt).nanoseconds)
    let seconds = elapsed / 1_000_000_000
    let rest = elapsed % 1_000_000_000
    let ticks = seconds &* Int64(clockRate) &+ (rest &* Int64(clockRate)) / 1_000_000_000
    return RTPTimestamp(rtpTimestamp.rawValue &+ UInt32(truncatingIfNeeded: ticks))
  }
}
