import PalbeUnits

/// How much work may be asked for over time: a token bucket kept as one instant (the generic cell rate algorithm).
///
///     allowance    rate units a second, and up to `burst` at once after a rest
///     state        the time at which everything asked for so far would be earned: `WorkAccount`
struct WorkAllowance {
  private let unit: Int64
  private let tolerance: Int64

  /// - Parameters:
  ///   - rate: units a second, 1 to a billion.
  ///   - burst: units at once.
  init(rate: Int, burst: Int) {
    unit = 1_000_000_000 / Int64(max(1, min(rate, 1_000_000_000)))
    tolerance = unit * Int64(max(1, burst))
  }

  /// False when the work would go past what is allowed; the account is then unchanged.
  @inline(__always)
  func admits(_ cost: Int, on account: inout WorkAccount, at now: Instant) -> Bool {
    let earned = max(account.earnedAt, now.nanoseconds) + unit * Int64(cost)
    guard earned - now.nanoseconds <= tolerance else { return false }
    account.earnedAt = earned
    return true
  }
}

/// What somebody has asked for, see `WorkAllowance`.
struct WorkAccount {
  /// Nanoseconds of the monotonic clock.
  fileprivate(set) var earnedAt = Int64.min / 2

  /// Nothing is owed: it is as good as a new one.
  func isRested(at now: Instant) -> Bool { earnedAt <= now.nanoseconds }
}
