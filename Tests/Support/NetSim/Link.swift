import PalbeUnits

/// What happens to datagrams on their way from one address to another.
public struct Link: Sendable {
  /// Time from sender to receiver.
  public var delay: TimeDelta
  /// Up to this much is added to `delay`, evenly spread. Datagrams stay in order.
  public var jitter: TimeDelta
  /// Probability, 0 to 1, that a datagram is lost.
  public var loss: Double
  /// Datagrams lost in a row, on average; 1: each is lost by itself.
  public var lossBurst: Double
  /// Probability that a datagram arrives twice.
  public var duplication: Double
  /// Probability that a datagram is held back by `reorderDelay` and so overtaken.
  public var reordering: Double
  /// How long a reordered datagram is held back.
  public var reorderDelay: TimeDelta
  /// Probability that one byte of a datagram is changed.
  public var corruption: Double
  /// The bottleneck's rate; nil: none.
  public var bandwidth: DataRate?
  /// What waits at the bottleneck at most, as time; the rest is dropped.
  public var queue: TimeDelta
  /// What others send through the bottleneck.
  public var crossTraffic: CrossTraffic?
  /// Bytes of the largest datagram that passes; nil: any.
  public var mtu: Int?

  /// A link that is perfect but for what is given.
  public init(
    delay: TimeDelta = .milliseconds(10), jitter: TimeDelta = .zero, loss: Double = 0,
    lossBurst: Double = 1, duplication: Double = 0,
    reordering: Double = 0, reorderDelay: TimeDelta = .milliseconds(20), corruption: Double = 0,
    bandwidth: DataRate? = nil, queue: TimeDelta = .milliseconds(200),
    crossTraffic: CrossTraffic? = nil, mtu: Int? = nil
  ) {
    self.delay = delay
    self.jitter = jitter
    self.loss = loss
    self.lossBurst = lossBurst
    self.duplication = duplication
    self.reordering = reordering
    self.reorderDelay = reorderDelay
    self.corruption = corruption
    self.bandwidth = bandwidth
    self.queue = queue
    self.crossTraffic = crossTraffic
    self.mtu = mtu
  }

  /// Nothing passes.
  public static let cut = Link(loss: 1)
}

/// Traffic of others that does not yield, switched on and off.
public struct CrossTraffic: Sendable {
  /// Its rate while it is on; below the bottleneck's.
  public var rate: DataRate
  /// How long it is on.
  public var on: TimeDelta
  /// How long it is then off; zero: never.
  public var off: TimeDelta

  /// Begins off at the clock's origin.
  public init(rate: DataRate, on: TimeDelta, off: TimeDelta) {
    self.rate = rate
    self.on = on
    self.off = off
  }

  /// Bits sent between two instants.
  func bits(from start: Instant, to end: Instant) -> Double {
    Double(rate.bitsPerSecond) * (onTime(until: end) - onTime(until: start)).inSeconds
  }

  private func onTime(until now: Instant) -> TimeDelta {
    let period = (on + off).nanoseconds
    guard period > 0, now.nanoseconds > 0 else { return .zero }
    let rounds = now.nanoseconds / period
    let rest = now.nanoseconds % period - off.nanoseconds
    return TimeDelta(nanoseconds: rounds * on.nanoseconds + max(0, rest))
  }
}
