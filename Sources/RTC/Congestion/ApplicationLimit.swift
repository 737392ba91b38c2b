import PalbeUnits

/// Tells whether the application sends clearly less than the estimate: a budget that fills at a part of the estimate
/// and is emptied by what is sent.
struct ApplicationLimit: Sendable {
  /// The part of the estimate that counts as using it.
  private static let usage = 0.65
  private static let windowSeconds = 0.5
  private static let startLevel = 0.80
  private static let stopLevel = 0.50

  private(set) var isLimited = false
  /// Bits, between minus and plus one window.
  private var level = 0.0
  private var last: Instant?

  /// Takes in what was sent since the last call; zero bytes for the time alone.
  mutating func sent(byteCount: Int, estimate: Double, at now: Instant) {
    let window = Self.usage * estimate * Self.windowSeconds
    if let last { level += Self.usage * estimate * min(max((now - last).inSeconds, 0), 1) }
    last = now
    level = min(max(level - Double(byteCount) * 8, -window), window)
    let ratio = window > 0 ? level / window : 0
    if isLimited {
      if ratio < Self.stopLevel { isLimited = false }
    } else if ratio > Self.startLevel {
      isLimited = true
    }
  }
}
