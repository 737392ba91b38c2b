import PalbeUnits

/// A link that changes as time goes by, with a name for a test's arguments.
///
///     for scenario in SimulatedLink.acceptance {
///       var next = scenario.start(in: &network, from: server, to: client)
///       while … { next = scenario.update(&network, from: server, to: client, after: elapsed) ?? .seconds(3_600) }
///     }
public struct SimulatedLink: Sendable, CustomStringConvertible {
  /// From a time on.
  public struct Step: Sendable {
    /// Time since the start.
    public var after: TimeDelta
    /// What the link is from then on.
    public var link: Link

    /// From its fields.
    public init(after: TimeDelta, _ link: Link) {
      self.after = after
      self.link = link
    }
  }

  /// What it is called in a test's name.
  public var name: String
  /// In order of time; the first at zero.
  public var steps: [Step]

  public var description: String { name }

  /// A link that stays as it is.
  public init(_ name: String, _ link: Link) { self.init(name, [Step(after: .zero, link)]) }

  /// A link that changes.
  public init(_ name: String, _ steps: [Step]) {
    self.name = name
    self.steps = steps
  }

  /// The link at a time since the start.
  public func link(after elapsed: TimeDelta) -> Link {
    (steps.last { $0.after <= elapsed } ?? steps[0]).link
  }

  /// Times at which the link changes, the start excluded.
  public var changes: [TimeDelta] { steps.dropFirst().map(\.after) }

  /// Sets one direction of a network to what the link is now; call it again after the time it returns, nil: never.
  @discardableResult
  public func update(
    _ network: inout NetworkSimulator, from source: SocketAddress, to destination: SocketAddress,
    after elapsed: TimeDelta
  ) -> TimeDelta? {
    network.setLink(link(after: elapsed), from: source, to: destination)
    return steps.first { $0.after > elapsed }?.after
  }
}

extension SimulatedLink {
  private static func line(
    _ rate: DataRate = .megabitsPerSecond(2), jitter: TimeDelta = .zero, loss: Double = 0,
    lossBurst: Double = 1, crossTraffic: CrossTraffic? = nil
  ) -> Link {
    Link(
      delay: .milliseconds(25), jitter: jitter, loss: loss, lossBurst: lossBurst, bandwidth: rate,
      queue: .milliseconds(300), crossTraffic: crossTraffic)
  }

  /// 2 Mbit/s, nothing else.
  public static let constant = SimulatedLink("constant 2 Mbit/s", line())
  /// 2 Mbit/s, from 30 s to 60 s only 300 kbit/s.
  public static let rateDrop = SimulatedLink(
    "2 Mbit/s, 300 kbit/s and back",
    [
      Step(after: .zero, line()), Step(after: .seconds(30), line(.kilobitsPerSecond(300))),
      Step(after: .seconds(60), line()),
    ])
  /// Each datagram is lost with this probability.
  public static func loss(_ percent: Int) -> SimulatedLink {
    SimulatedLink("\(percent) % loss", line(loss: Double(percent) / 100))
  }
  /// One in twenty is lost, six in a row on average.
  public static let lossBursts = SimulatedLink("bursts of loss", line(loss: 0.05, lossBurst: 6))
  /// Up to 100 ms of jitter.
  public static let jitter = SimulatedLink("100 ms jitter", line(jitter: .milliseconds(100)))
  /// Others take 1 Mbit/s of it for 10 s of every 25 s.
  public static let crossTraffic = SimulatedLink(
    "cross traffic",
    line(crossTraffic: CrossTraffic(rate: .megabitsPerSecond(1), on: .seconds(10), off: .seconds(15))))

  /// What a call has to live through.
  public static let acceptance = [
    constant, rateDrop, loss(5), loss(10), loss(20), lossBursts, jitter, crossTraffic,
  ]
}
