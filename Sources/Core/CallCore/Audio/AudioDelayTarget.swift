import PalbeUnits

/// How long audio waits before it is played, learnt from how unevenly its packets arrive.
///
/// The fastest packet of the last seconds is the base; every other one lies some time behind it. A
/// histogram of those times, in steps of 10 ms and forgetting slowly, gives the delay that all but one in a
/// hundred keep.
struct AudioDelayTarget: Sendable {
  static let step = TimeDelta.milliseconds(10)
  static let stepCount = 52
  /// What is left of a packet's weight after the next one: about 330 packets (7 s) count.
  static let remembered = 0.997
  /// What the initial delay counts, in packets that were seen: it is forgotten after some 20 s.
  static let initialWeight = 0.2
  /// The share of packets that shall be in time.
  static let share = 0.99
  /// How long the fastest packet counts, at least; at most twice that. Clocks drift.
  static let baseWindow = TimeDelta.seconds(5)
  /// Media time stays far from what an `Int64` of nanoseconds holds.
  private static let tickLimit: Int64 = 1 << 40

  let minimum: TimeDelta
  let maximum: TimeDelta
  /// What most packets need, within the bounds.
  private(set) var target: TimeDelta
  private var weights: [Double]
  private var lastTimestamp: RTPTimestamp?
  /// Ticks of `lastTimestamp` since the first packet.
  private var lastTicks: Int64 = 0
  /// The least transit time (arrival less media time) of this window and of the one before.
  private var base: (current: Int64, previous: Int64) = (.max, .max)
  private var windowEnd = Instant.zero

  init(minimum: TimeDelta, maximum: TimeDelta, initial: TimeDelta) {
    self.minimum = minimum
    self.maximum = max(minimum, maximum)
    target = min(max(initial, minimum), self.maximum)
    weights = [Double](repeating: 0, count: Self.stepCount)
    weights[Self.bucket(target - Self.step)] = Self.initialWeight
  }

  /// Takes note of a packet.
  mutating func observe(_ timestamp: RTPTimestamp, at arrival: Instant) {
    let ticks = ticks(of: timestamp)
    if lastTimestamp == nil || ticks.magnitude > UInt64(Self.tickLimit) {
      forgetBase()
      lastTimestamp = timestamp
      lastTicks = 0
      windowEnd = arrival + Self.baseWindow
      base.current = arrival.nanoseconds
    } else {
      if ticks > lastTicks {
        lastTimestamp = timestamp
        lastTicks = ticks
      }
      if arrival >= windowEnd {
        base = (.max, base.current)
        windowEnd = arrival + Self.baseWindow
      }
      base.current = min(base.current, Self.transit(arrival, ticks))
    }
    for index in weights.indices { weights[index] *= Self.remembered }
    weights[Self.bucket(delay(of: timestamp, at: arrival))] += 1 - Self.remembered
    updateTarget()
  }

  /// How long after the fastest packet's way it is now, for the packet with that timestamp.
  func delay(of timestamp: RTPTimestamp, at now: Instant) -> TimeDelta {
    let base = min(base.current, base.previous)
    guard lastTimestamp != nil, base != .max else { return .zero }
    return TimeDelta(nanoseconds: Self.transit(now, ticks(of: timestamp)) &- base)
  }

  /// The sender's clock may have stood still: the fastest packet is looked for anew, the histogram stays.
  mutating func forgetBase() {
    lastTimestamp = nil
    lastTicks = 0
    base = (.max, .max)
  }

  private func ticks(of timestamp: RTPTimestamp) -> Int64 {
    guard let lastTimestamp else { return 0 }
    return lastTicks + Int64(timestamp.distance(from: lastTimestamp))
  }

  private mutating func updateTarget() {
    var sum = 0.0
    for weight in weights { sum += weight }
    var reached = 0.0
    var index = 0
    while index < weights.count - 1 {
      reached += weights[index]
      if reached >= Self.share * sum { break }
      index += 1
    }
    target = min(max(Self.step * (index + 1), minimum), maximum)
  }

  private static func bucket(_ delay: TimeDelta) -> Int {
    Int(min(max(delay.nanoseconds / step.nanoseconds, 0), Int64(stepCount - 1)))
  }

  /// 48 ticks are a millisecond. The ticks are bounded by `tickLimit` and one timestamp's distance.
  private static func transit(_ instant: Instant, _ ticks: Int64) -> Int64 {
    instant.nanoseconds &- ticks &* 62_500 / 3
  }
}
