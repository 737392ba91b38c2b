import PalbeUnits

/// Says when a packet may leave, so that a key frame does not fill the queue of a slow link in one burst.
///
/// ## Overview
///
/// A pacer holds no packets. It keeps a debt: what left adds to it, time pays it off at the pacing rate. The owner of the
/// queue asks before each packet and says when one left:
///
///     while let packet = queue.first {
///       switch pacer.decide(packet.kind, byteCount: packet.count, since: packet.arrival, queued: queue.size, at: now) {
///       case .now: send(packet); pacer.sent(packet.kind, byteCount: packet.count, at: now)
///       case .at(let time): wake(at: time); return
///       case .late: drop(packet)      // and ask for a key frame where that is needed
///       }
///     }
///
/// The pacing rate is 2.5 × the target, more when the queue would otherwise be older than `queueLimit`. Sound never
/// waits, but counts. All in constant time, without allocation; bytes are UDP payload.
public struct Pacer: Sendable {
  /// What a packet carries.
  public enum Kind: Sendable, Hashable {
    /// Sound: leaves at once.
    case audio
    /// Pictures, and repairs of either.
    case video
    /// Padding and packets repeated for a probe: only when nothing else waits.
    case padding
  }

  /// The answer to "may it leave?".
  public enum Decision: Sendable, Hashable {
    /// It may.
    case now
    /// Ask again then.
    case at(Instant)
    /// It waited longer than the queue may be old: drop it.
    case late
  }

  /// Bounds of a pacer.
  public struct Limits: Hashable, Sendable {
    /// The pacing rate, in hundredths of the target.
    public var percent: Int
    /// What may leave back to back, as time at the pacing rate: lets a batch be sent with one system call.
    public var burst: TimeDelta
    /// The pacing rate grows so that nothing waits longer than this.
    public var queueLimit: TimeDelta
    /// What waited longer than this is late.
    public var dropAfter: TimeDelta

    /// Bounds that suit a forwarder.
    public init(
      percent: Int = 250, burst: TimeDelta = .milliseconds(5), queueLimit: TimeDelta = .milliseconds(250),
      dropAfter: TimeDelta = .seconds(1)
    ) {
      self.percent = min(max(percent, 100), 10_000)
      self.burst = min(max(burst, .zero), .seconds(1))
      self.queueLimit = min(max(queueLimit, .milliseconds(10)), .seconds(10))
      self.dropAfter = min(max(dropAfter, self.queueLimit), .seconds(60))
    }
  }

  /// Bytes a burst may always have: two full packets.
  private static let smallestBurst = 2_800.0

  let limits: Limits
  /// Bytes a second at which media leaves.
  private var pacingRate: Double
  private var targetRate: Double
  /// The rate of a probe under way; zero: none.
  private var probeRate = 0.0
  /// Bytes that left and are not yet paid off.
  private var debt = 0.0
  private var last: Instant?

  /// - Parameter target: the estimate, or what of it this stream of packets may use.
  public init(target: DataRate, limits: Limits = Limits()) {
    self.limits = limits
    targetRate = Self.bytes(target)
    pacingRate = targetRate * Double(limits.percent) / 100
  }

  /// Changes the target.
  public mutating func setTarget(_ target: DataRate, at now: Instant) {
    pay(at: now)
    targetRate = Self.bytes(target)
    pacingRate = targetRate * Double(limits.percent) / 100
  }

  /// Paces at a probe's rate until told otherwise; nil ends that. A probe that is slower than the pacing rate changes
  /// nothing for media.
  public mutating func setProbe(_ cluster: ProbeCluster?, at now: Instant) {
    pay(at: now)
    probeRate = cluster.map { Self.bytes($0.rate) } ?? 0
  }

  /// Whether a packet may leave.
  ///
  /// - Parameters:
  ///   - since: when it came to us.
  ///   - queued: bytes that wait, this packet included.
  public mutating func decide(
    _ kind: Kind, byteCount: Int, since: Instant, queued: DataSize, at now: Instant
  ) -> Decision {
    if kind == .audio { return .now }
    let age = now > since ? now - since : .zero
    if kind == .video, age > limits.dropAfter { return .late }
    // What waits has to be gone before it is older than the limit.
    let left = max((limits.queueLimit - min(age, limits.queueLimit)).inSeconds, 0.001)
    let drain = kind == .video ? Double(max(queued.bytes, 0)) / left : 0
    let rate = max(max(pacingRate, probeRate), min(drain, 100 * pacingRate))
    pay(at: now, rate: rate)
    let open = debt - max(rate * limits.burst.inSeconds, Self.smallestBurst)
    if open <= 0 { return .now }
    return .at(now + .seconds(min(max(open / rate, 0.000_1), 1)))
  }

  /// Notes that a packet left.
  public mutating func sent(_ kind: Kind, byteCount: Int, at now: Instant) {
    pay(at: now)
    debt = min(debt + Double(max(0, min(byteCount, 65_535))), 4 * pacingRate + 65_535)
  }

  /// Bytes that may leave at once now, for a batch: at least one packet when `decide` says now.
  public func room(at now: Instant) -> Int {
    let rate = max(pacingRate, probeRate)
    let open = max(rate * limits.burst.inSeconds, Self.smallestBurst) - debt(at: now, rate: rate)
    return max(0, Int(min(open, 1e9)))
  }

  private func debt(at now: Instant, rate: Double) -> Double {
    guard let last, now > last else { return debt }
    return max(0, debt - rate * min((now - last).inSeconds, 10))
  }

  private mutating func pay(at now: Instant, rate: Double = 0) {
    debt = debt(at: now, rate: max(rate, pacingRate, probeRate))
    last = max(last ?? now, now)
  }

  private static func bytes(_ rate: DataRate) -> Double {
    Double(min(max(rate.bitsPerSecond, 1_000), 10_000_000_000)) / 8
  }
}
