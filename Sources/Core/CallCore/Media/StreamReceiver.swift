import PalbeRTP
import PalbeUnits

/// What is counted, reported and asked for again of one RTP stream, whatever it carries.
struct StreamReceiver: Sendable {
  /// Numbers below the highest that are told apart; older packets are of no use.
  static let window: UInt64 = 1_024

  let clockRate: Int
  private(set) var statistics: ReceiverStatistics
  /// Different packets received, and their payload bytes.
  private(set) var packetCount: UInt64 = 0
  private(set) var byteCount: UInt64 = 0
  private(set) var nackedCount: UInt64 = 0
  private var unwrapper = SequenceUnwrapper()
  private var lowest: UInt64?
  private var highest: UInt64 = 0
  /// A bit for each number of the window that was received.
  private var seen = [UInt64](repeating: 0, count: Int(window / 64))
  private var nack: NackTracker?

  /// - Parameter repairTime: how long a packet is asked for; nil when the sender does not repair.
  init(ssrc: SSRC, clockRate: Int, repairTime: TimeDelta?) {
    statistics = ReceiverStatistics(ssrc: ssrc, clockRate: clockRate)
    self.clockRate = clockRate
    guard let repairTime else { return }
    var configuration = NackTracker.Configuration()
    configuration.maximumAge = repairTime
    nack = NackTracker(configuration: configuration)
  }

  /// Takes note of a packet; nil when it came before, or is too old.
  ///
  /// - Parameter isRepair: it came as retransmission (RFC 4588), which is no arrival for the stream's own
  /// loss and jitter.
  mutating func received(
    _ header: RTPHeader, payloadByteCount: Int, isRepair: Bool, at now: Instant
  ) -> ExtendedSequenceNumber? {
    if !isRepair { statistics.update(header, payloadByteCount: payloadByteCount, arrival: now) }
    let sequence = unwrapper.unwrap(header.sequenceNumber)
    guard markSeen(sequence.rawValue) else { return nil }
    _ = nack?.received(sequence, at: now)
    packetCount += 1
    byteCount += UInt64(max(0, payloadByteCount))
    return sequence
  }

  /// Takes note of the sender's report.
  mutating func received(_ report: SenderReport, at now: Instant) {
    statistics.received(senderReport: report, at: now)
  }

  /// The report block for the time since the last one.
  mutating func report(at now: Instant) -> ReportBlock? { statistics.report(at: now) }

  /// Packets that never came, as far as is known now.
  var lostCount: UInt64 {
    guard let lowest else { return 0 }
    let expected = highest - lowest + 1
    return expected > packetCount ? expected - packetCount : 0
  }

  /// RFC 3550 interarrival jitter.
  var jitter: TimeDelta {
    TimeDelta(nanoseconds: Int64(statistics.jitter) * 1_000_000_000 / Int64(max(1, clockRate)))
  }

  /// When there may be something to ask for.
  var nextDeadline: Instant? { nack?.nextDeadline }

  /// The packets to ask for now.
  mutating func pollMissing(at now: Instant, roundTrip: TimeDelta) -> [SequenceNumber] {
    guard let missing = nack?.poll(at: now, roundTrip: roundTrip), !missing.isEmpty else { return [] }
    nackedCount += UInt64(missing.count)
    return missing
  }

  private mutating func markSeen(_ number: UInt64) -> Bool {
    guard let lowest else {
      lowest = number
      highest = number
      setBit(number)
      return true
    }
    if number > highest {
      if number - highest >= Self.window {
        for index in seen.indices { seen[index] = 0 }
      } else {
        for skipped in highest + 1...number { clearBit(skipped) }
      }
      highest = number
    }
    guard highest - number < Self.window, !bit(number) else { return false }
    setBit(number)
    self.lowest = min(lowest, number)
    return true
  }

  private func bit(_ number: UInt64) -> Bool { seen[slot(number)] & 1 << (number % 64) != 0 }
  private mutating func setBit(_ number: UInt64) { seen[slot(number)] |= 1 << (number % 64) }
  private mutating func clearBit(_ number: UInt64) { seen[slot(number)] &= ~(1 << (number % 64)) }
  private func slot(_ number: UInt64) -> Int { Int(number % Self.window / 64) }
}
