import PalbeUnits

/// How long packets wait in the network: the lowest delay of the last moments above the lowest of the last while.
///
/// The two clocks need not agree, and may drift: only differences within `baseWindow` count. What the slope cannot
/// tell is seen here: jitter without a queue, and a queue that is full and stays full.
struct QueueDelay: Sendable {
  /// Milliseconds of a queue that no jitter accounts for.
  private static let noise = 10.0
  /// Milliseconds that the packets of a frame are apart on average.
  private static let frame = 12.0
  /// Milliseconds of a queue that is too long even if it does not grow.
  private static let standing = 80.0

  private var base = WindowedMinimum(spans: 10, of: .seconds(2))
  private var recent = WindowedMinimum(spans: 4, of: .milliseconds(75))
  /// Milliseconds that the mean lies above the recent minimum.
  private(set) var spread = 0.0
  private var last: Instant?

  /// Takes a packet's one-way delay, in milliseconds, with an unknown constant added.
  mutating func add(_ delay: Double, at arrival: Instant) {
    base.add(delay, at: arrival)
    recent.add(delay, at: arrival)
    // By time, not by packet: a queue that builds up must not pass for jitter.
    let weight = min(max((arrival - (last ?? arrival)).inSeconds / 3, 0), 0.2)
    last = max(last ?? arrival, arrival)
    spread += weight * (min(delay - (recent.value ?? delay), 1_000) - spread)
  }

  /// Milliseconds that packets wait.
  var delay: Double {
    guard let base = base.value, let recent = recent.value else { return 0 }
    return max(0, recent - base)
  }

  /// The part of `spread` that the packets of one frame, which wait for each other, do not account for.
  var jitter: Double { max(0, spread - Self.frame) }

  /// False when what the slope shows may well be jitter.
  var isReal: Bool { delay > Self.noise + 1.6 * jitter }

  /// True when the queue must shrink even if it does not grow.
  var isStanding: Bool { delay > max(Self.standing, 2 * spread) }

  /// Takes the present delay as that of an empty queue: sending less did not lower it.
  mutating func rebase(at now: Instant) {
    guard let recent = recent.value else { return }
    base.reset()
    base.add(recent, at: now)
  }

  /// Starts again, as when the receiver's clock jumped.
  mutating func reset() {
    base.reset()
    recent.reset()
    spread = 0
    last = nil
  }
}
