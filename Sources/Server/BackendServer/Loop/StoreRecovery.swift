import PalbeUnits

/// When a store that cannot tell whether its last transaction is there is opened again, and its core told to look.
///
/// Each of the two may fail on its own. A core that was not told is as far behind as one whose store is closed: it knows of no
/// wake and no ended session that the last transaction has left. So what failed is tried again, and only that, every
/// `interval` until both are done.
struct StoreRecovery {
  /// What an attempt came to.
  enum Outcome {
    /// Nothing to do, or not yet.
    case none
    case recovered
    case failed(any Error)
  }

  private let interval: TimeDelta
  private var next = Instant(nanoseconds: .min)
  /// The store was opened again, and its core does not know.
  private var isBehind = false

  init(interval: TimeDelta) { self.interval = interval }

  /// When `attempt` wants to be called; nil while there is nothing to do.
  func deadline(isUsable: Bool) -> Instant? { isUsable && !isBehind ? nil : next }

  /// Does what is due.
  /// - Parameters:
  ///   - isUsable: whether the store works.
  ///   - tell: lets the core look at what is there.
  mutating func attempt(
    at now: Instant, isUsable: Bool, reopen: () throws -> Void, tell: () throws -> Void
  ) -> Outcome {
    guard let due = deadline(isUsable: isUsable), due <= now else { return .none }
    next = now + interval
    do {
      if !isUsable {
        try reopen()
        isBehind = true
      }
      try tell()
      isBehind = false
      return .recovered
    } catch { return .failed(error) }
  }
}
