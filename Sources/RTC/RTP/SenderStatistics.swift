import PalbeUnits

/// What one source sent, for its sender reports, and what its receivers say about it (RFC 3550 §6.4).
public struct SenderStatistics: Sendable, BitwiseCopyable {
  let ssrc: SSRC
  let clockRate: Int
  /// Of the last packet.
  public private(set) var lastTimestamp = RTPTimestamp(0)
  var lastSentAt: Instant?

  /// Packets sent.
  public private(set) var packetCount: UInt64 = 0
  /// Payload bytes sent.
  public private(set) var byteCount: UInt64 = 0
  /// From the newest report block that answers one of our sender reports.
  public private(set) var roundTrip: TimeDelta?
  /// From the newest report block, in 1/256.
  public private(set) var fractionLost: UInt8 = 0
  /// From the newest report block.
  public private(set) var cumulativeLost: Int32 = 0
  /// From the newest report block, in ticks of the media clock.
  public private(set) var remoteJitter: UInt32 = 0

  /// - Parameters:
  ///   - ssrc: the source.
  ///   - clockRate: ticks of its media clock in a second.
  public init(ssrc: SSRC, clockRate: Int) {
    self.ssrc = ssrc
    self.clockRate = max(1, clockRate)
  }

  /// Takes note of a packet.
  @inlinable public mutating func sent(_ header: RTPHeader, payloadByteCount: Int, at now: Instant) {
    sent(timestamp: header.timestamp, payloadByteCount: payloadByteCount, at: now)
  }

  /// Takes note of a packet with that timestamp, which is sampled about when it is sent.
  public mutating func sent(timestamp: RTPTimestamp, payloadByteCount: Int, at now: Instant) {
    packetCount += 1
    byteCount += UInt64(max(0, payloadByteCount))
    lastTimestamp = timestamp
    lastSentAt = now
  }

  /// The report for now; nil before the first packet.
  ///
  /// - Parameter ntpTime: the wall clock at `now`.
  public func report(at now: Instant, ntpTime: NTPTime, blocks: [ReportBlock] = []) -> SenderReport? {
    guard let lastSentAt else { return nil }
    let elapsed = (now - lastSentAt).nanoseconds
    let seconds = elapsed / 1_000_000_000
    let rest = elapsed % 1_000_000_000
    let ticks = seconds &* Int64(clockRate) &+ (rest &* Int64(clockRate)) / 1_000_000_000
    return SenderReport(
      ssrc: ssrc, ntpTime: ntpTime, rtpTimestamp: lastTimestamp + Int(ticks),
      packetCount: UInt32(truncatingIfNeeded: packetCount), octetCount: UInt32(truncatingIfNeeded: byteCount),
      blocks: blocks)
  }

  /// Takes up a report block on this source.
  ///
  /// - Parameter ntpTime: the wall clock when the report arrived.
  public mutating func received(_ block: ReportBlock, ntpTime: NTPTime) {
    guard block.ssrc == ssrc else { return }
    fractionLost = block.fractionLost
    cumulativeLost = block.cumulativeLost
    remoteJitter = block.jitter
    guard block.lastSenderReport != 0 else { return }
    let units = ntpTime.middle &- block.lastSenderReport &- block.delaySinceLastSenderReport
    // A round trip below zero is a clock's rounding; one above a minute is not one of ours.
    let signed = max(0, Int64(Int32(bitPattern: units)))
    guard signed < 60 << 16 else { return }
    roundTrip = TimeDelta(nanoseconds: signed * 1_000_000_000 >> 16)
  }
}
