import PalbeUnits

/// The queue before a link's slowest part: first come, first served, and what finds it full is dropped. A change of rate
/// counts for what comes after it.
struct Bottleneck: Sendable {
  private var free = Instant(nanoseconds: .min)
  private var last = Instant(nanoseconds: .min)

  /// When a datagram has passed; nil: dropped.
  mutating func pass(_ byteCount: Int, _ link: Link, _ bandwidth: DataRate, at now: Instant) -> Instant? {
    if let cross = link.crossTraffic, last.nanoseconds > .min {
      let seconds = cross.bits(from: last, to: now) / Double(bandwidth.bitsPerSecond)
      free = min(max(free, last) + .seconds(seconds), now + link.queue + .milliseconds(20))
    }
    last = now
    let start = max(now, free)
    guard start - now <= link.queue else { return nil }
    free = start + .seconds(Double(byteCount * 8) / Double(bandwidth.bitsPerSecond))
    return free
  }
}
