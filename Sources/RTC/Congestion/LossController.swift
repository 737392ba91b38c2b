import PalbeUnits

/// Answers loss that sending too much causes, and lives with loss that it does not.
///
/// ## Overview
///
///     steady ── more loss than the link's own, time and again ──► testing: the rate is cut by the excess
///     testing ── less is lost ──► steady, the cut stands       (a queue overflowed)
///             ── as much is lost ──► steady, the rate is given back, and this loss is the link's own (radio)
///
/// Loss while packets queue needs no test. Only transport-wide feedback counts: a receiver report speaks of one
/// stream, whose gaps may have come from the publisher's uplink (livekit-protocol.md §4 item 29).
struct LossController: Sendable {
  /// What to do with the rate.
  enum Verdict: Equatable {
    case keep
    case cut(to: Double)
    case restore(to: Double)
  }

  private enum State {
    case steady
    /// `before`: the rate that was cut; `excess`: the part of packets lost for no known reason; `isFelt`: the cut lowers
    /// what is sent, so that it can tell something.
    case testing(before: Double, excess: Double, isFelt: Bool)
  }

  private static let shortestWindow = TimeDelta.milliseconds(400)
  private static let longestWindow = TimeDelta.seconds(2)
  private static let packetCount = 20
  /// No link is taken to lose more than this by itself.
  private static let inherentLimit = 0.35

  /// The part of packets, 0 to 1, that the link loses whatever the rate.
  private(set) var inherent = 0.0
  /// The part of packets lost in the last window.
  private(set) var ratio = 0.0
  /// The part lost without a queue in the long run: bursts come and go.
  private var average = 0.0
  private var state = State.steady
  private var received = 0
  private var lost = 0
  private var bursts = 0
  private var wasLost = false
  /// Packets lost in a row, on average.
  private var burstLength = 1.0
  private var windowStart: Instant?
  private var exceeded = 0
  /// Packets sent before the cut say nothing of it.
  private var countFrom = Instant(nanoseconds: .min)
  private var sawQueue = false

  /// Counts a packet that a report names for the first time.
  mutating func count(isLost: Bool, sentAt: Instant) {
    guard sentAt >= countFrom else { return }
    if isLost {
      lost += 1
      if !wasLost { bursts += 1 }
    } else {
      received += 1
    }
    wasLost = isLost
  }

  /// A packet that was reported lost came after all.
  mutating func recovered(sentAt: Instant) {
    guard sentAt >= countFrom, lost > 0 else { return }
    lost -= 1
    received += 1
  }

  /// Judges the window when it is full.
  ///
  /// - Parameter isQueueing: packets waited in the network.
  mutating func evaluate(rate: Double, delivered: Double?, isQueueing: Bool, at now: Instant) -> Verdict {
    sawQueue = sawQueue || isQueueing
    let start = windowStart ?? now
    windowStart = start
    let age = now - start
    let total = received + lost
    guard age >= Self.shortestWindow, total >= Self.packetCount || (age >= Self.longestWindow && total > 0)
    else { return .keep }
    ratio = Double(lost) / Double(total)
    if bursts > 0 { burstLength += 0.3 * (min(max(1, Double(lost) / Double(bursts)), 20) - burstLength) }
    let verdict = judge(total: Double(total), rate: rate, delivered: delivered, at: now)
    received = 0
    lost = 0
    bursts = 0
    sawQueue = false
    windowStart = now
    return verdict
  }

  private mutating func judge(total: Double, rate: Double, delivered: Double?, at now: Instant) -> Verdict {
    let usual = min(max(inherent, average), Self.inherentLimit)
    let excess = max(0, (ratio - usual) / (1 - usual))
    // Two and a half deviations of a binomial count, wider when losses come in bursts.
    let deviation = (total * usual * (1 - usual) * max(1, 2 * burstLength - 1)).squareRoot()
    let isExcess = ratio * total > usual * total + 2.5 * deviation + max(2, 0.02 * total)
    if sawQueue {
      if case .testing = state { state = .steady }
      exceeded = 0
      guard isExcess, excess > 0.05, let delivered else { return .keep }
      return .cut(to: min(rate, 0.95 * delivered / (1 - inherent)))
    }
    average += 0.05 * (ratio - average)
    switch state {
    case .steady:
      guard isExcess else {
        exceeded = 0
        inherent += (ratio < inherent ? 0.2 : 0.1) * (ratio - inherent)
        return .keep
      }
      exceeded += 1
      // Where losses come in bursts, a few bad windows in a row are chance; a full link stays full.
      let isBursty = burstLength > 2
      guard exceeded >= (isBursty ? 4 : 2) || (excess > 0.4 && exceeded >= (isBursty ? 2 : 1)) else {
        return .keep
      }
      exceeded = 0
      countFrom = now
      let sent = delivered.map { $0 / max(1 - ratio, 0.1) } ?? rate
      let lower = max(0.75 * rate, min(rate, sent * (1 - excess)))
      state = .testing(before: rate, excess: excess, isFelt: lower < sent)
      return .cut(to: lower)
    case .testing(let before, let excessBefore, let isFelt):
      state = .steady
      guard excess > excessBefore / 2 else { return isFelt ? .keep : .restore(to: before) }
      let own = min(ratio, inherent + excessBefore * (1 - inherent))
      guard own <= Self.inherentLimit else {
        inherent = Self.inherentLimit
        return .cut(to: rate * (1 - excess / 2))
      }
      inherent = own
      return .restore(to: before)
    }
  }
}
