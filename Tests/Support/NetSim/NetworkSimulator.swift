import PalbeUnits

/// A datagram network in virtual time. The same seed and the same calls give the same run.
///
/// Links go one way: `setLink(from:to:)` twice makes an asymmetric path. Addresses need no set-up; what is sent to one
/// is delivered to whoever polls. A test prints the seed when it fails.
///
///     var network = NetworkSimulator(seed: 7, link: Link(delay: .milliseconds(20), loss: 0.1))
///     network.send([1, 2], from: client, to: server, at: clock.now)
///     while let datagram = network.poll(at: clock.now) { … }
public struct NetworkSimulator: Sendable {
  /// Bytes of IP and UDP header that a bottleneck counts too.
  private static let headerByteCount = 28

  /// Counts since the start.
  public struct Statistics: Equatable, Sendable {
    /// Datagrams given to `send`.
    public var sent = 0
    /// Datagrams returned by `poll`.
    public var delivered = 0
    /// Lost by chance.
    public var lost = 0
    /// Extra copies.
    public var duplicated = 0
    /// Held back by chance.
    public var reordered = 0
    /// Changed by chance.
    public var corrupted = 0
    /// Dropped at a full bottleneck.
    public var overflowed = 0
    /// Larger than the link's MTU.
    public var oversized = 0
    /// Refused by a NAT: no mapping, or a mapping that is gone.
    public var unmapped = 0
  }

  private struct Route: Hashable {
    var source: SocketAddress
    var destination: SocketAddress
  }
  private struct Progress {
    var lastArrival = Instant(nanoseconds: .min)
    /// Inside a run of lost datagrams.
    var isLosing = false
  }

  /// What happened so far.
  public private(set) var statistics = Statistics()
  private var random: RandomSource
  private let defaultLink: Link
  private var links: [Route: Link] = [:]
  private var progress: [Route: Progress] = [:]
  private var bottlenecks: [Route: Bottleneck] = [:]
  /// The route whose bottleneck another one goes through.
  private var shared: [Route: Route] = [:]
  private var underway = ArrivalQueue()
  private var nat = AddressTranslation()

  /// Every pair of addresses is joined by `link` unless another is set.
  public init(seed: UInt64, link: Link = Link()) {
    random = RandomSource(seed: seed)
    defaultLink = link
  }

  /// Sets the link of one direction; datagrams under way are not touched. For a host behind a NAT these are its inside
  /// addresses.
  public mutating func setLink(_ link: Link, from source: SocketAddress, to destination: SocketAddress) {
    links[Route(source: source, destination: destination)] = link
  }

  /// Sets both directions.
  public mutating func setLink(_ link: Link, between one: SocketAddress, and other: SocketAddress) {
    setLink(link, from: one, to: other)
    setLink(link, from: other, to: one)
  }

  /// Lets a route's datagrams go through the bottleneck of another one, as two flows over one access line do.
  public mutating func shareBottleneck(
    from source: SocketAddress, to destination: SocketAddress, with other: (SocketAddress, SocketAddress)
  ) {
    shared[Route(source: source, destination: destination)] = Route(source: other.0, destination: other.1)
  }

  /// Puts `inside` behind a NAT: others see `outside`, and only those whom it sent to can answer. Calling it again is a
  /// rebinding: the old outside address is dead at once.
  public mutating func translate(_ inside: SocketAddress, to outside: SocketAddress) {
    nat.map(inside, to: outside)
  }

  /// Sends a datagram.
  public mutating func send(
    _ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress, at now: Instant
  ) {
    statistics.sent += 1
    let seenSource = nat.outgoing(from: source, to: destination)
    guard let receiver = nat.incoming(from: seenSource, to: destination) else {
      statistics.unmapped += 1
      return
    }
    let route = Route(source: source, destination: receiver)
    let link = links[route] ?? defaultLink
    if let mtu = link.mtu, bytes.count > mtu {
      statistics.oversized += 1
      return
    }
    if isLost(link, route) {
      statistics.lost += 1
      return
    }
    guard let departure = passBottleneck(bytes.count, link, route, at: now) else {
      statistics.overflowed += 1
      return
    }
    var datagram = Datagram(
      arrival: departure + link.delay + fraction(of: link.jitter), source: seenSource, destination: receiver,
      bytes: bytes)
    if !bytes.isEmpty, chance(link.corruption) {
      statistics.corrupted += 1
      datagram.bytes[Int(random.next() % UInt64(bytes.count))] ^= UInt8(1 + random.next() % 255)
    }
    if chance(link.reordering) {
      statistics.reordered += 1
      datagram.arrival += link.reorderDelay
    } else {
      var state = progress[route] ?? Progress()
      datagram.arrival = max(datagram.arrival, state.lastArrival)
      state.lastArrival = datagram.arrival
      progress[route] = state
    }
    underway.insert(datagram)
    if chance(link.duplication) {
      statistics.duplicated += 1
      datagram.arrival += fraction(of: max(link.jitter, .milliseconds(1)))
      underway.insert(datagram)
    }
  }

  /// The next datagram that has arrived by `now`, in order of arrival.
  public mutating func poll(at now: Instant) -> Datagram? {
    guard let first = underway.first, first.arrival <= now else { return nil }
    statistics.delivered += 1
    return underway.removeFirst()
  }

  /// When the next datagram arrives; nil when none is under way.
  public var nextArrival: Instant? { underway.first?.arrival }

  /// Datagrams under way.
  public var underwayCount: Int { underway.count }

  private mutating func passBottleneck(
    _ byteCount: Int, _ link: Link, _ route: Route, at now: Instant
  ) -> Instant? {
    guard let bandwidth = link.bandwidth, bandwidth > .zero else { return now }
    return bottlenecks[shared[route] ?? route, default: Bottleneck()]
      .pass(byteCount + Self.headerByteCount, link, bandwidth, at: now)
  }

  /// One datagram by chance, or a run of them (Gilbert's model).
  private mutating func isLost(_ link: Link, _ route: Route) -> Bool {
    guard link.lossBurst > 1, link.loss > 0, link.loss < 1 else { return chance(link.loss) }
    let enter = link.loss / (link.lossBurst * (1 - link.loss))
    let wasLosing = progress[route]?.isLosing ?? false
    let isLosing = wasLosing ? !chance(1 / link.lossBurst) : chance(enter)
    progress[route, default: Progress()].isLosing = isLosing
    return isLosing
  }

  private mutating func chance(_ probability: Double) -> Bool {
    probability > 0 && Double(random.next() >> 11) < probability * 0x1p53
  }

  private mutating func fraction(of delta: TimeDelta) -> TimeDelta {
    guard delta > .zero else { return .zero }
    return TimeDelta(nanoseconds: Int64(random.next() % UInt64(delta.nanoseconds)))
  }
}
