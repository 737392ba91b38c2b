import PalbeCongestion
import PalbeRTP
import PalbeUnits
import Testing

@Suite("Estimator against garbage")
struct EstimatorRobustnessTests {
  @Test("Random reports, times that go backwards and jump: within the limits, no trap", arguments: 0..<20)
  func garbage(seed: Int) {
    var random = RandomSource(seed: UInt64(seed))
    let limits = BandwidthEstimator.Limits()
    var estimator = BandwidthEstimator(limits: limits, historyCapacity: seed * 10)
    var number: UInt16 = 0
    for _ in 0..<3_000 {
      let now = Instant(
        nanoseconds: Int64(bitPattern: random.next()) >> Int64.random(in: 0...40, using: &random))
      switch Int.random(in: 0..<6, using: &random) {
      case 0:
        estimator.setDesired(DataRate(bitsPerSecond: Int64(bitPattern: random.next())), at: now)
      case 1:
        estimator.receive(
          receiverEstimate: DataRate(bitsPerSecond: Int64(bitPattern: random.next())), at: now)
      case 2: estimator.handleTimeout(at: now)
      case 3:
        var feedback = TransportFeedback(
          sender: SSRC(1), media: SSRC(2),
          baseSequence: number &+ UInt16.random(in: 0...40, using: &random) &- 40,
          statusCount: UInt16.random(in: 0...UInt16.max, using: &random),
          referenceTime: Int32(truncatingIfNeeded: random.next()), feedbackCount: 0)
        for _ in 0..<Int.random(in: 0..<60, using: &random) {
          feedback.arrivals.append(
            .init(
              sequence: feedback.baseSequence &+ UInt16.random(in: 0...50, using: &random),
              ticks: Int32(truncatingIfNeeded: random.next())))
        }
        estimator.receive(feedback, at: now)
      default: number = estimator.packetSent(byteCount: Int(truncatingIfNeeded: random.next()), at: now)
      }
      _ = (estimator.probePadding(at: now), estimator.nextProbePadding, estimator.nextDeadline)
      _ = (estimator.roundTripTime, estimator.queueingDelay, estimator.deliveredRate)
      #expect(estimator.estimate >= limits.minimum && estimator.estimate <= limits.maximum)
      #expect((0...1).contains(estimator.lossRatio) && (0...1).contains(estimator.inherentLossRatio))
    }
  }

  @Test("Reports on packets that were never sent, or long forgotten, change nothing")
  func unknown() {
    var estimator = BandwidthEstimator(historyCapacity: 64)
    var feedback = TransportFeedback(
      sender: SSRC(1), media: SSRC(2), baseSequence: 500, referenceTime: 5, feedbackCount: 0)
    for number in 500..<600 as Range<UInt16> { _ = feedback.append(number, ticks: Int32(number)) }
    estimator.receive(feedback, at: .zero)
    #expect(estimator.roundTripTime == nil && estimator.nextDeadline == nil)
    for _ in 0..<2_000 { _ = estimator.packetSent(byteCount: 100, at: .zero) }
    estimator.receive(feedback, at: .zero)
    #expect(estimator.roundTripTime == nil && estimator.deliveredRate == nil)
  }

  @Test("transport-wide-cc-01: the numbers wrap at 16 bits")
  func wrap() {
    var estimator = BandwidthEstimator()
    var now = Instant.zero
    var last: UInt16 = 0
    for _ in 0..<70_000 {
      now += .milliseconds(1)
      last = estimator.packetSent(byteCount: 100, at: now)
    }
    #expect(last == UInt16(truncatingIfNeeded: 69_999))
    var feedback = TransportFeedback(
      sender: SSRC(1), media: SSRC(2), baseSequence: last &- 9, referenceTime: 5, feedbackCount: 0)
    for offset in 0..<10 { _ = feedback.append(last &- 9 &+ UInt16(offset), ticks: Int32(offset * 4)) }
    estimator.receive(feedback, at: now + .milliseconds(30))
    #expect(estimator.roundTripTime == .milliseconds(30))
  }
}
