public import PalbeUnits

/// How many lines one thread may log in a second, so that no client fills the log by misbehaving.
public struct LogBudget: Sendable {
  /// More are counted only.
  public static let linesPerSecond = 200

  private var windowStart = Instant.zero
  private var used = 0
  private var suppressed = 0

  /// What to do with a line.
  public enum Verdict: Equatable, Sendable {
    case write
    /// Write it, and before it that so many were left out.
    case writeAfter(suppressed: Int)
    case suppress
  }

  /// None written yet.
  public init() {}

  /// Asks for a line.
  public mutating func take(at now: Instant) -> Verdict {
    if now - windowStart >= .seconds(1) {
      windowStart = now
      used = 0
    }
    guard used < Self.linesPerSecond else {
      suppressed += 1
      return .suppress
    }
    used += 1
    guard suppressed > 0 else { return .write }
    defer { suppressed = 0 }
    return .writeAfter(suppressed: suppressed)
  }
}
