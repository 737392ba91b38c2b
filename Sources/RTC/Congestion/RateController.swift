import PalbeUnits

/// Additive increase near the link's capacity, multiplicative far from it, multiplicative decrease
/// (draft-ietf-rmcat-gcc-02 §5.5). Rates are in bits per second.
///
/// What is delivered proves what the link carries: the rate grows to `headroom` times that and no further. More must be
/// proven by a probe, so a sender that sends little never believes in a rate that it has not seen.
struct RateController: Sendable {
  private static let headroom = 1.15
  private static let headroomConstant = 10_000.0
  private static let decrease = 0.9
  /// Growth a second while the capacity is not known.
  private static let growth = 0.08
  private static let packetBits = 9_600.0

  private(set) var rate: Double
  let range: ClosedRange<Double>
  private var capacity = LinkCapacity()
  private var lastUpdate: Instant?
  private var lastDecrease: Instant?
  private var isHolding = false

  init(start: Double, range: ClosedRange<Double>) {
    self.range = range
    rate = min(max(start, range.lowerBound), range.upperBound)
  }

  /// Applies what a feedback packet showed.
  ///
  /// - Parameters:
  ///   - delivered: the rate that arrived lately; nil while it is not known.
  ///   - isLimited: true when the application sends less than it might; then nothing is learned by waiting.
  mutating func update(
    _ usage: LinkUsage, delivered: Double?, roundTrip: TimeDelta, isLimited: Bool, at now: Instant
  ) {
    defer { lastUpdate = now }
    switch usage {
    case .over:
      isHolding = true
      reduce(delivered: delivered, roundTrip: roundTrip, at: now)
    case .under: isHolding = true
    case .normal:
      // The first normal report after a decrease only ends it: the queue has just drained.
      if isHolding {
        isHolding = false
        return
      }
      guard !isLimited, let delivered, let lastUpdate else { return }
      increase(delivered: delivered, elapsed: min((now - lastUpdate).inSeconds, 1), roundTrip: roundTrip)
    }
  }

  /// Sets the rate that a probe proved.
  ///
  /// - Parameter capacity: what the link carries, when the probe filled it.
  mutating func setProbed(_ probed: Double, capacity found: Double?) {
    if probed > rate { capacity.reset() }
    if let found { capacity.add(found) }
    rate = clamped(probed)
  }

  /// Lowers the rate, never below the minimum.
  mutating func lower(to lower: Double, delivered: Double?, at now: Instant) {
    guard lower < rate else { return }
    rate = clamped(lower)
    if let delivered { capacity.add(delivered) }
    lastDecrease = now
  }

  /// Gives back what was taken for a reason that proved wrong.
  mutating func restore(to before: Double) { rate = clamped(max(rate, before)) }

  /// Takes over what the receiver computed.
  mutating func setReceiverEstimate(_ estimate: Double) { rate = clamped(estimate) }

  private mutating func reduce(delivered: Double?, roundTrip: TimeDelta, at now: Instant) {
    // A decrease shows in the next feedback but one; another one before that would answer the same queue.
    let wait = min(max(roundTrip, .milliseconds(50)), .milliseconds(250))
    let isCollapsed = (delivered ?? rate) < rate / 2
    if let lastDecrease, now - lastDecrease < wait, !isCollapsed { return }
    let target: Double
    if let delivered {
      target = Self.decrease * delivered
      if let lower = capacity.lower, delivered < lower { capacity.reset() }
      capacity.add(delivered)
    } else {
      target = rate / 2
    }
    rate = clamped(min(rate, target))
    lastDecrease = now
  }

  private mutating func increase(delivered: Double, elapsed: Double, roundTrip: TimeDelta) {
    if let upper = capacity.upper, delivered > upper { capacity.reset() }
    let limit = Self.headroom * delivered + Self.headroomConstant
    guard rate < limit, elapsed > 0 else { return }
    let step: Double
    if capacity.mean != nil {
      // About half a packet each response time.
      let response = max(roundTrip.inSeconds, 0) + 0.1
      step = max(4_000, Self.packetBits / (2 * response)) * elapsed
    } else {
      step = max(1_000, rate * Self.growth * elapsed)
    }
    rate = clamped(min(rate + step, limit))
  }

  private func clamped(_ value: Double) -> Double {
    value.isFinite ? min(max(value, range.lowerBound), range.upperBound) : range.lowerBound
  }
}

/// What the link delivered whenever it was full: mean and deviation.
struct LinkCapacity: Sendable {
  private static let weight = 0.05
  private static let deviationRange = 0.4...2.5

  /// Bits per second.
  private(set) var mean: Double?
  /// The variance over the mean, in kbit/s.
  private var deviation = 0.4

  /// Takes in what a full link delivered.
  mutating func add(_ delivered: Double) {
    guard let mean else {
      self.mean = delivered
      return
    }
    let next = (1 - Self.weight) * mean + Self.weight * delivered
    let error = (next - delivered) / 1_000
    let sample = error * error / max(next / 1_000, 1)
    deviation = (1 - Self.weight) * deviation + Self.weight * sample
    deviation = min(max(deviation, Self.deviationRange.lowerBound), Self.deviationRange.upperBound)
    self.mean = next
  }

  /// Three deviations above the mean.
  var upper: Double? { mean.map { $0 + 3_000 * (deviation * $0 / 1_000).squareRoot() } }
  /// Three deviations below the mean.
  var lower: Double? { mean.map { max(0, $0 - 3_000 * (deviation * $0 / 1_000).squareRoot()) } }

  /// Forgets the link, as when it carried more or less than it should.
  mutating func reset() { self = LinkCapacity() }
}
