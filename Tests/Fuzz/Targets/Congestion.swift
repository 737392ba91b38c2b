import PalbeCongestion
import PalbeRTP
import PalbeUnits

extension FuzzTarget {
  /// A script of packets sent, reports and times: nothing traps, and the estimate stays between its limits.
  ///
  /// Each step is a byte that says what happens, a byte of time, and for a report its RTCP bytes after a length.
  static let bandwidthEstimator = FuzzTarget(name: "bandwidth-estimator") { bytes in
    let limits = BandwidthEstimator.Limits()
    var estimator = BandwidthEstimator(limits: limits, historyCapacity: 128)
    var now = Instant.zero
    var at = 0
    while at + 3 <= bytes.count {
      let (kind, time, value) = (bytes[at], Int(Int8(bitPattern: bytes[at + 1])), Int(bytes[at + 2]))
      at += 3
      // Mostly milliseconds, now and then years, forwards and backwards.
      now += kind & 0x80 == 0 ? .milliseconds(time) : TimeDelta(nanoseconds: Int64(time) << 54)
      switch kind & 0x07 {
      case 0:
        let end = min(bytes.count, at + value)
        var reader = RTCPReader(bytes.span.extracting(at..<end))
        if let packet = try? reader.next(), case .transportFeedback(let feedback) = packet {
          estimator.receive(feedback, at: now)
        }
        at = end
      case 1: estimator.receive(receiverEstimate: DataRate(bitsPerSecond: Int64(value) << 50), at: now)
      case 2: estimator.setDesired(DataRate(bitsPerSecond: Int64(value) << 18), at: now)
      case 3: estimator.handleTimeout(at: now)
      default: for _ in 0...value % 16 { _ = estimator.packetSent(byteCount: value * 8, at: now) }
      }
      _ = (estimator.probePadding(at: now), estimator.nextProbePadding, estimator.nextDeadline)
      precondition(estimator.estimate >= limits.minimum && estimator.estimate <= limits.maximum)
    }
  }
}
