import PalbeUnits

/// Whether a picture ever stood still: notes each frame that could be shown.
public struct ContinuityMeter: Sendable {
  private var times: [Instant] = []

  /// Nothing was shown so far.
  public init() {}

  /// A frame was shown.
  public mutating func frame(at now: Instant) { times.append(now) }

  /// Frames shown.
  public var frameCount: Int { times.count }

  /// The longest time without a new frame between two instants, both ends included.
  public func longestFreeze(from start: Instant, to end: Instant) -> TimeDelta {
    var longest = TimeDelta.zero
    var last = start
    for time in times where time >= start && time <= end {
      longest = max(longest, time - last)
      last = time
    }
    return max(longest, end - last)
  }
}

/// How often something changes.
public struct ChangeMeter<Value: Equatable & Sendable>: Sendable {
  /// Each value, and since when.
  public private(set) var changes: [(at: Instant, value: Value)] = []

  /// Nothing was noted so far.
  public init() {}

  /// Notes the present value.
  public mutating func note(_ value: Value, at now: Instant) {
    if changes.last?.value != value { changes.append((now, value)) }
  }

  /// The largest number of changes within a span of time, counted from an instant on.
  public func mostChanges(within span: TimeDelta, from start: Instant) -> Int {
    // The first value is not a change.
    let times = changes.dropFirst().map(\.at).filter { $0 >= start }
    return times.indices.map { first in times[first...].prefix { $0 - times[first] < span }.count }.max() ?? 0
  }
}
