import PalbeUnits

/// A few packets to be sent at a given rate, media first and the rest padding or repeated packets, to learn whether the
/// link carries it.
public struct ProbeCluster: Hashable, Sendable {
  /// The rate to send at, media included.
  public var rate: DataRate
  /// Bytes to send.
  public var byteCount: Int
  /// Tells clusters under way apart; never zero.
  var id: UInt8
}

/// Says when to probe, and at which rate.
///
/// ## Overview
///
///     start ─► 3 × and 6 × the start rate
///     a cluster that got through ─► twice its result, until one does not or nobody wants more
///     one that did not ─► 1.5 × the estimate, after 1 s and then after longer pauses, up to 2.25 s
///
/// Nothing is probed that nobody wants.
struct Prober: Sendable {
  private static let duration = TimeDelta.milliseconds(100)
  private static let smallest = 6_000
  /// Padding is asked for in full packets: small ones would measure their headers.
  private static let chunk = 1_200
  private static let pauses = TimeDelta.seconds(1)...TimeDelta.milliseconds(2_250)
  /// A result of at least this part of the cluster's rate got through.
  private static let success = 0.7

  /// What to do with a result.
  struct Finding {
    var result: ProbeMeter.Result
    var cluster: ProbeCluster
  }

  /// The cluster being sent.
  private(set) var sending: ProbeMeter?
  /// The one that was sent, until it is reported on.
  private var waiting: ProbeMeter?
  private var waitUntil = Instant.zero
  /// When the cluster being sent was begun.
  private var begun = Instant.zero
  private var lastID: UInt8 = 0
  private var hasStarted = false
  /// Rates still to be probed, bits per second.
  private var planned: (first: Double?, second: Double?) = (nil, nil)
  private var pause = Self.pauses.lowerBound
  private var nextProbe: Instant?
  private var factor = 2.0
  private var quietUntil = Instant(nanoseconds: .min)

  /// True while a queue may be of our probe's making.
  func isDisturbing(at now: Instant) -> Bool { sending != nil || waiting != nil || now < quietUntil }

  /// Begins a cluster when one is due.
  mutating func poll(
    estimate: Double, desired: Double, maximum: Double, isQuiet: Bool, jitter: Double, at now: Instant
  ) {
    expire(at: now)
    guard sending == nil, waiting == nil else { return }
    guard desired > 0 else {
      nextProbe = nil
      return
    }
    if !hasStarted {
      hasStarted = true
      planned = (3 * estimate, 6 * estimate)
    }
    let ceiling = min(maximum, 1.2 * desired)
    while let rate = planned.first {
      planned = (planned.second, nil)
      if begin(min(rate, ceiling), above: estimate, jitter: jitter, at: now) { return }
    }
    guard desired > 1.05 * estimate else {
      nextProbe = nil
      return
    }
    let due = nextProbe ?? now + pause
    nextProbe = due
    guard now >= due else { return }
    guard isQuiet else {
      nextProbe = now + .milliseconds(100)
      return
    }
    nextProbe = nil
    _ = begin(min(factor * estimate, ceiling), above: estimate, jitter: jitter, at: now)
  }

  private mutating func begin(
    _ rate: Double, above estimate: Double, jitter: Double, at now: Instant
  ) -> Bool {
    guard rate > 1.02 * estimate else { return false }
    lastID = lastID == 255 ? 1 : lastID + 1
    // Jitter blurs the arrival times; a longer cluster is measured better.
    let seconds = Self.duration.inSeconds + min(7 * jitter, 250) / 1_000
    let bytes = max(Double(Self.smallest), rate / 8 * seconds)
    sending = ProbeMeter(
      ProbeCluster(rate: DataRate(bitsPerSecond: Int64(rate)), byteCount: Int(bytes), id: lastID))
    begun = now
    return true
  }

  /// Counts a packet that leaves, and returns the cluster it belongs to; zero: none.
  mutating func sent(byteCount: Int, at now: Instant) -> UInt8 {
    guard var meter = sending else { return 0 }
    meter.sent(byteCount: byteCount, at: now)
    let id = meter.cluster.id
    if meter.sentBytes >= meter.cluster.byteCount || meter.sentPackets >= 250 {
      sending = nil
      waiting = meter
      waitUntil = now + .seconds(1)
    } else {
      sending = meter
    }
    return id
  }

  /// Bytes of padding that the cluster wants sent now.
  func padding(at now: Instant) -> Int {
    guard let meter = sending else { return 0 }
    guard meter.sentPackets > 0 else { return Self.chunk }
    let due = Double(meter.cluster.rate.bitsPerSecond) / 8 * min(max((now - meter.firstSent).inSeconds, 0), 1)
    let bytes = min(Int(due) + Self.chunk, meter.cluster.byteCount) - meter.sentBytes
    return bytes >= min(Self.chunk, meter.cluster.byteCount - meter.sentBytes) ? bytes : 0
  }

  /// When `padding` has something.
  var nextPadding: Instant? {
    guard let meter = sending else { return nil }
    guard meter.sentPackets > 0 else { return begun }
    let rate = max(1, Double(meter.cluster.rate.bitsPerSecond) / 8)
    let chunk = min(Self.chunk, meter.cluster.byteCount - meter.sentBytes)
    let due = Double(meter.sentBytes + chunk - Self.chunk) / rate
    return meter.firstSent + .seconds(min(max(due, 0), 10)) + .microseconds(1)
  }

  /// When `poll` has something to do.
  var nextDeadline: Instant? {
    if let waiting = waiting { return waiting.sentPackets > 0 ? waitUntil + .seconds(1) : nil }
    if let meter = sending { return meter.sentPackets > 0 ? meter.firstSent + Self.sendLimit : nil }
    return nextProbe
  }

  mutating func lost(_ cluster: UInt8) {
    if waiting?.cluster.id == cluster {
      waiting?.lost()
    } else if sending?.cluster.id == cluster {
      sending?.lost()
    }
  }

  mutating func received(_ cluster: UInt8, byteCount: Int, arrival: Instant, isLate: Bool) {
    if waiting?.cluster.id == cluster {
      waiting?.received(byteCount: byteCount, arrival: arrival, isLate: isLate)
    } else if sending?.cluster.id == cluster {
      sending?.received(byteCount: byteCount, arrival: arrival, isLate: isLate)
    }
  }

  /// What the cluster under way showed, when it is reported on.
  mutating func finding(loss: Double, estimate: Double, at now: Instant) -> Finding? {
    guard let meter = waiting, meter.isComplete || now >= waitUntil else { return nil }
    waiting = nil
    quietUntil = now + .milliseconds(200)
    guard let result = meter.result(loss: loss) else {
      nextProbe = now + pause
      return nil
    }
    let wanted = Double(meter.cluster.rate.bitsPerSecond)
    if result.rate >= Self.success * wanted, !result.isSaturated || result.rate > 1.1 * estimate {
      pause = Self.pauses.lowerBound
      factor = 2
      if planned.first == nil, !result.isSaturated { planned = (2 * result.rate, nil) }
      nextProbe = now + pause
    } else {
      planned = (nil, nil)
      factor = 1.5
      nextProbe = now + pause
      pause = min(pause + pause / 2, Self.pauses.upperBound)
    }
    return Finding(result: result, cluster: meter.cluster)
  }

  /// The link is full: what was planned is off.
  mutating func overused(at now: Instant) {
    planned = (nil, nil)
    factor = 1.5
    nextProbe = max(nextProbe ?? now, now + .seconds(1))
  }

  private static let sendLimit = TimeDelta.milliseconds(700)

  /// Gives up a cluster that cannot be sent, and one that nobody reports on.
  private mutating func expire(at now: Instant) {
    if let meter = sending, meter.sentPackets > 0, now - meter.firstSent >= Self.sendLimit {
      sending = nil
      waiting = meter
      waitUntil = now + .seconds(1)
    }
    if waiting != nil, now >= waitUntil + .seconds(1) {
      waiting = nil
      nextProbe = now + pause
    }
  }
}
