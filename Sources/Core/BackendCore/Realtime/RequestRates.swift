import PalbeUnits

/// How fast devices ask: each request moves a device's own clock on by an interval, and one that is a burst ahead waits
/// (the generic cell rate algorithm).
struct RequestRates {
  private var clocks: [DeviceID: Instant] = [:]

  /// Counts a request; returns how long to wait when it is one too many, and then it does not count.
  mutating func spend(_ device: DeviceID, at now: Instant, _ limits: BackendLimits) -> TimeDelta? {
    let interval = TimeDelta.seconds(1) / limits.requestsPerSecond
    let clock = max(clocks[device] ?? now, now)
    let ahead = clock - now - interval * (limits.requestBurst - 1)
    guard ahead <= .zero else { return ahead }
    clocks[device] = clock + interval
    return nil
  }

  /// Forgets who is not ahead any more.
  mutating func forget(at now: Instant) { clocks = clocks.filter { $0.value > now } }
}
