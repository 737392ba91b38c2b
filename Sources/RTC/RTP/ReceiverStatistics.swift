import PalbeUnits

/// Reception statistics of one source (RFC 3550 appendix A.1, A.3 and A.8).
///
/// Two departures: a source is valid from its first packet on (it was authenticated by SRTP, so probation has
/// nothing to keep out), and the round-trip fields are fed by `received(senderReport:at:)`.
public struct ReceiverStatistics: Sendable, BitwiseCopyable {
  /// A.1's MAX_DROPOUT and MAX_MISORDER.
  static let maximumDropout = 3_000
  static let maximumMisorder = 100

  let ssrc: SSRC
  let clockRate: Int
  var base: UInt64 = 0
  var highest: UInt64?
  /// The number that would confirm a restart of the sender.
  var restartCandidate: UInt16?
  var expectedBefore: UInt64 = 0
  var receivedBefore: UInt64 = 0
  var transit: UInt32?
  /// The jitter times sixteen (A.8).
  var scaledJitter: UInt32 = 0
  var lastSenderReport: UInt32 = 0
  var lastSenderReportAt: Instant?

  /// Packets received, duplicates included.
  public private(set) var packetCount: UInt64 = 0
  /// Payload bytes received.
  public private(set) var byteCount: UInt64 = 0

  /// - Parameters:
  ///   - ssrc: the source.
  ///   - clockRate: ticks of its media clock in a second.
  public init(ssrc: SSRC, clockRate: Int) {
    self.ssrc = ssrc
    self.clockRate = max(1, clockRate)
  }

  /// Takes note of a packet.
  public mutating func update(_ header: RTPHeader, payloadByteCount: Int, arrival: Instant) {
    guard updateSequence(header.sequenceNumber) else { return }
    packetCount += 1
    byteCount += UInt64(max(0, payloadByteCount))
    let transit = clockTicks(arrival) &- header.timestamp.rawValue
    if let before = self.transit {
      let difference = Int32(bitPattern: transit &- before).magnitude
      scaledJitter &+= min(difference, 1 << 24) &- ((scaledJitter &+ 8) >> 4)
    }
    self.transit = transit
  }

  /// Takes note of the source's sender report, for the report block's LSR and DLSR.
  public mutating func received(senderReport: SenderReport, at now: Instant) {
    lastSenderReport = senderReport.ntpTime.middle
    lastSenderReportAt = now
  }

  /// The report block for the time since the last one; nil before the first packet.
  public mutating func report(at now: Instant) -> ReportBlock? {
    guard let highest else { return nil }
    let expected = highest - base + 1
    let expectedInterval = expected - expectedBefore
    let receivedInterval = packetCount - receivedBefore
    expectedBefore = expected
    receivedBefore = packetCount
    let lostInterval = Int64(expectedInterval) - Int64(receivedInterval)
    let fraction =
      expectedInterval == 0 || lostInterval <= 0 ? 0 : (lostInterval << 8) / Int64(expectedInterval)
    var delay: UInt32 = 0
    if let lastSenderReportAt {
      let nanoseconds = UInt64(max(0, (now - lastSenderReportAt).nanoseconds))
      let seconds = min(nanoseconds / 1_000_000_000, 0xffff)
      delay = UInt32(seconds << 16 | (nanoseconds % 1_000_000_000) << 16 / 1_000_000_000)
    }
    return ReportBlock(
      ssrc: ssrc, fractionLost: UInt8(min(255, fraction)), cumulativeLost: cumulativeLost,
      highestSequence: UInt32(truncatingIfNeeded: highest), jitter: jitter,
      lastSenderReport: lastSenderReport,
      delaySinceLastSenderReport: delay)
  }

  /// Packets lost since the beginning; negative when there were more duplicates than losses.
  public var cumulativeLost: Int32 {
    guard let highest else { return 0 }
    let lost = Int64(highest - base + 1) - Int64(packetCount)
    return Int32(max(-0x80_0000, min(0x7f_ffff, lost)))
  }

  /// Interarrival jitter in ticks of the media clock.
  public var jitter: UInt32 { scaledJitter >> 4 }

  /// A.1: follows the highest number; refuses one far off, unless the next one confirms that the sender restarted.
  private mutating func updateSequence(_ number: SequenceNumber) -> Bool {
    guard let highest else {
      restart(at: number)
      return true
    }
    let step = number.distance(from: SequenceNumber(UInt16(truncatingIfNeeded: highest)))
    if step > 0 && step < Self.maximumDropout {
      self.highest = highest + UInt64(step)
    } else if step > 0 || step < -Self.maximumMisorder {
      guard number.rawValue == restartCandidate else {
        restartCandidate = number.rawValue &+ 1
        return false
      }
      restart(at: number)
    }
    return true
  }

  private mutating func restart(at number: SequenceNumber) {
    base = UInt64(number.rawValue)
    highest = base
    restartCandidate = nil
    packetCount = 0
    expectedBefore = 0
    receivedBefore = 0
    transit = nil
  }

  /// The arrival on the media clock, modulo 2^32.
  private func clockTicks(_ instant: Instant) -> UInt32 {
    let seconds = instant.nanoseconds / 1_000_000_000
    let rest = instant.nanoseconds % 1_000_000_000
    let ticks = seconds &* Int64(clockRate) &+ (rest &* Int64(clockRate)) / 1_000_000_000
    return UInt32(truncatingIfNeeded: ticks)
  }
}
