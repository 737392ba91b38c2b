import PalbeRTP
import PalbeUnits

/// Estimates what the link to one receiver carries, from what the receiver reports of our packets.
///
/// ## Overview
///
///     send ─► number on every packet ─► receiver ─► transport feedback ─┬─► delay: groups, slope, queue ─┐
///       ▲                                                               ├─► loss: own or ours?            ├─► estimate
///       └───────────── probes: padding at a higher rate ◄───────────────┴─► rate that arrived, probes ────┘
///
/// Sources: draft-ietf-rmcat-gcc-02, draft-holmer-rmcat-transport-wide-cc-extensions-01, and the published behaviour of
/// later implementations. We depart where the draft is known to fail: a slope is believed only when packets really
/// wait (`QueueDelay`), random loss is told apart from overflow (`LossController`), and a rate is believed only when it
/// was delivered or probed (`RateController`).
///
/// A receiver without transport-wide feedback sends REMB; its word is then the estimate. Receiver reports are no input:
/// they speak of streams that may have had gaps before they came to us (livekit-protocol.md §4 item 29).
///
/// Numbering a packet and reading a report allocate nothing. Garbage in a report at worst gives a wrong estimate for
/// its own sender, between the limits.
public struct BandwidthEstimator: Sendable {
  /// Bounds of the estimate, in bits per second of UDP payload.
  public struct Limits: Hashable, Sendable {
    /// The estimate never falls below this.
    public var minimum: DataRate
    /// The estimate before anything is known.
    public var start: DataRate
    /// The estimate never rises above this.
    public var maximum: DataRate

    /// Bounds that suit a subscriber of a call. They are put in order: minimum, start, maximum.
    public init(
      minimum: DataRate = .kilobitsPerSecond(50), start: DataRate = .kilobitsPerSecond(300),
      maximum: DataRate = .megabitsPerSecond(20)
    ) {
      self.minimum = min(max(minimum, .kilobitsPerSecond(5)), .megabitsPerSecond(10_000))
      self.maximum = min(max(maximum, self.minimum), .megabitsPerSecond(10_000))
      self.start = min(max(start, self.minimum), self.maximum)
    }
  }

  /// A report is missed when nothing came for this long.
  static let feedbackTimeout = TimeDelta.seconds(1)
  /// REMB is ignored while transport feedback is younger than this.
  static let feedbackLifetime = TimeDelta.seconds(5)

  let limits: Limits
  var history: SendHistory
  var groups = PacketGroups()
  var trend = TrendDetector()
  var queue = QueueDelay()
  var delivery = DeliveryRate()
  var rate: RateController
  var loss = LossController()
  var limit = ApplicationLimit()
  var prober = Prober()
  var roundTrip = WindowedMinimum(spans: 4, of: .milliseconds(500))
  var desired = 0.0
  /// The latest instant given to us: time never goes backwards in here.
  var now = Instant.zero
  var lastFeedback: Instant?
  /// The receiver has reported something, of whatever kind.
  var isReported = false
  /// When the first packet since the last feedback left.
  var waitingSince: Instant?
  var lastTimeout: Instant?
  /// The number after the highest one reported on.
  var nextReported: UInt64 = 0
  /// The receiver's clock, made continuous.
  var lastReference: Int32?
  var arrivalOrigin = Instant.zero
  /// A standing queue and what it was when we last answered it.
  var standing: (since: Instant?, answered: Instant?, delay: Double) = (nil, nil, 0)
  /// The end of the last probe, and the longest queue that it made; nil once that is gone.
  var aftermath: (until: Instant, delay: Double)?
  /// When less was sent than the estimate allowed; the rate that arrived says little of the link for a while then.
  var limitedAt: Instant?
  var lowProbes = 0
  /// The mean of the rate that arrived over about a second, and as of when.
  var usualDelivery: (rate: Double, at: Instant)?

  /// - Parameters:
  ///   - limits: bounds of the estimate.
  ///   - historyCapacity: packets remembered at most until they are reported on, eight bytes each; must cover a round
  ///     trip and the time between two reports.
  public init(limits: Limits = Limits(), historyCapacity: Int = 2_048) {
    self.limits = limits
    history = SendHistory(capacity: historyCapacity)
    rate = RateController(
      start: Double(limits.start.bitsPerSecond),
      range: Double(limits.minimum.bitsPerSecond)...Double(limits.maximum.bitsPerSecond))
  }

  /// What the link carries, in UDP payload.
  public var estimate: DataRate { DataRate(bitsPerSecond: Int64(rate.rate)) }
  /// The rate that arrived lately; nil until known.
  public var deliveredRate: DataRate? {
    delivery.bitsPerSecond.map { DataRate(bitsPerSecond: Int64(min($0, 1e12))) }
  }
  /// The lowest round trip of the last two seconds, the time the receiver held its report included.
  public var roundTripTime: TimeDelta? { roundTrip.value.map { .seconds($0 / 1_000) } }
  /// How long packets wait in the network.
  public var queueingDelay: TimeDelta { .seconds(min(queue.delay, 1e6) / 1_000) }
  /// The part of packets lost lately, 0 to 1.
  public var lossRatio: Double { loss.ratio }
  /// The part of packets, 0 to 1, that the link loses whatever we send.
  public var inherentLossRatio: Double { loss.inherent }
  /// What the delay says of the link.
  public var usage: LinkUsage { trend.usage }
  /// True when much less is sent than the estimate allows.
  public var isApplicationLimited: Bool { limit.isLimited }
  /// The cluster that should be sent now: everything that leaves counts as part of it.
  public var probe: ProbeCluster? { prober.sending?.cluster }

  /// Tells what would be sent if the link carried it. More than the estimate leads to probes; zero to none.
  public mutating func setDesired(_ rate: DataRate, at now: Instant) {
    advance(to: now)
    desired = Double(max(0, min(rate.bitsPerSecond, limits.maximum.bitsPerSecond)))
    poll()
  }

  /// The number that `packetSent` gives to the next packet, for who must write it before the packet's size is known.
  public var nextNumber: UInt16 { UInt16(truncatingIfNeeded: history.next) }

  /// Numbers a packet that leaves now. Returns its transport-wide number, for the header extension.
  ///
  /// - Parameter byteCount: its UDP payload.
  public mutating func packetSent(byteCount: Int, at now: Instant) -> UInt16 {
    advance(to: now)
    let byteCount = min(max(byteCount, 0), 65_535)
    if waitingSince == nil { waitingSince = self.now }
    limit.sent(byteCount: byteCount, estimate: rate.rate, at: self.now)
    let cluster = prober.sent(byteCount: byteCount, at: self.now)
    return history.append(
      byteCount: byteCount, cluster: cluster, isReported: isReported, at: self.now)
  }

  /// Takes in REMB: the estimate of a receiver that sends no transport-wide feedback. Ignored from one that does.
  public mutating func receive(receiverEstimate: DataRate, at now: Instant) {
    advance(to: now)
    isReported = true
    if let lastFeedback, self.now - lastFeedback < Self.feedbackLifetime { return }
    lastFeedback = nil
    waitingSince = nil
    rate.setReceiverEstimate(Double(max(0, receiverEstimate.bitsPerSecond)))
    poll()
  }

  /// Bytes of padding or repeated packets that the probe wants sent now, besides the media.
  public func probePadding(at now: Instant) -> Int { prober.padding(at: now) }

  /// When `probePadding` has something; nil while nothing is probed.
  public var nextProbePadding: Instant? { prober.nextPadding }

  /// When `handleTimeout` has something to do.
  public var nextDeadline: Instant? {
    var deadline = prober.nextDeadline
    if lastFeedback != nil, let waitingSince {
      let timeout = max(waitingSince, lastTimeout ?? waitingSince) + timeoutInterval
      deadline = min(deadline ?? timeout, timeout)
    }
    return deadline
  }

  /// Begins probes, and lowers the rate when reports stay away.
  public mutating func handleTimeout(at now: Instant) {
    advance(to: now)
    if lastFeedback != nil, let waitingSince {
      let since = max(waitingSince, lastTimeout ?? waitingSince)
      if self.now - since >= timeoutInterval {
        lastTimeout = self.now
        rate.lower(to: 0.8 * rate.rate, delivered: nil, at: self.now)
      }
    }
    poll()
  }

  private var timeoutInterval: TimeDelta {
    Self.feedbackTimeout + .seconds(min(2 * (roundTrip.value ?? 0), 4_000) / 1_000)
  }

  /// Time stands still rather than goes backwards, and stays where sums cannot overflow.
  mutating func advance(to now: Instant) {
    let bound: Int64 = 1 << 61
    self.now = max(self.now, Instant(nanoseconds: min(max(now.nanoseconds, -bound), bound)))
  }

  mutating func poll() {
    // What was seen before a pause says nothing of now.
    let isStale = lastFeedback.map { now - $0 > Self.feedbackTimeout } ?? true
    let isQuiet = isStale || (trend.usage != .over && !queue.isReal)
    prober.poll(
      estimate: rate.rate, desired: desired, maximum: Double(limits.maximum.bitsPerSecond), isQuiet: isQuiet,
      jitter: queue.jitter, at: now)
  }
}
