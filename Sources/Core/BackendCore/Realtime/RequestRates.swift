import PalbeUnits

/// How fast somebody does something: each time moves a clock of its own on by an interval, and one that is a burst ahead waits
/// (the generic cell rate algorithm).
struct RequestRates<Key: Hashable> {
  private var clocks: [Key: Instant] = [:]

  /// Counts one; returns how long to wait when it is one too many, and then it does not count.
  mutating func spend(_ key: Key, at now: Instant, interval: TimeDelta, burst: Int) -> TimeDelta? {
    let clock = max(clocks[key] ?? now, now)
    let ahead = clock - now - interval * (burst - 1)
    guard ahead <= .zero else { return ahead }
    clocks[key] = clock + interval
    return nil
  }

  /// Forgets who is not ahead any more.
  mutating func forget(at now: Instant) { clocks = clocks.filter { $0.value > now } }
}

/// Who claims whose key packages.
struct Claim: Hashable {
  var asker: UserID
  var target: UserID
}
