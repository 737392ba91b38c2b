import PalbeUnits

/// What happens to datagrams on their way from one address to another.
public struct Link: Sendable {
  /// Time from sender to receiver.
  public var delay: TimeDelta
  /// Up to this much is added to `delay`, evenly spread. Datagrams stay in order.
  public var jitter: TimeDelta
  /// Probability, 0 to 1, that a datagram is lost.
  public var loss: Double
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
  /// Bytes of the largest datagram that passes; nil: any.
  public var mtu: Int?

  /// A link that is perfect but for what is given.
  public init(
    delay: TimeDelta = .milliseconds(10), jitter: TimeDelta = .zero, loss: Double = 0,
    duplication: Double = 0,
    reordering: Double = 0, reorderDelay: TimeDelta = .milliseconds(20), corruption: Double = 0,
    bandwidth: DataRate? = nil, queue: TimeDelta = .milliseconds(200), mtu: Int? = nil
  ) {
    self.delay = delay
    self.jitter = jitter
    self.loss = loss
    self.duplication = duplication
    self.reordering = reordering
    self.reorderDelay = reorderDelay
    self.corruption = corruption
    self.bandwidth = bandwidth
    self.queue = queue
    self.mtu = mtu
  }

  /// Nothing passes.
  public static let cut = Link(loss: 1)
}
