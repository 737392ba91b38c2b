import PalbeNetSim
import PalbeUnits
import Testing

@Suite("The simulated network")
struct NetworkSimulatorTests {
  private let one = SocketAddress(ipv4: 10, 0, 0, 1, port: 1)
  private let two = SocketAddress(ipv4: 10, 0, 0, 2, port: 2)

  private func run(seed: UInt64, link: Link, count: Int = 1_000, every: TimeDelta = .milliseconds(1)) -> (
    arrivals: [Datagram], statistics: NetworkSimulator.Statistics
  ) {
    var network = NetworkSimulator(seed: seed, link: link)
    for index in 0..<count {
      network.send([UInt8(index >> 8), UInt8(index & 255)], from: one, to: two, at: .zero + every * index)
    }
    var arrivals = [Datagram]()
    while let datagram = network.poll(at: .distantFuture) { arrivals.append(datagram) }
    return (arrivals, network.statistics)
  }

  @Test("The same seed gives the same run, another seed another one")
  func reproducible() {
    let link = Link(jitter: .milliseconds(5), loss: 0.1, duplication: 0.05, reordering: 0.05)
    #expect(run(seed: 1, link: link).arrivals == run(seed: 1, link: link).arrivals)
    #expect(run(seed: 1, link: link).arrivals != run(seed: 2, link: link).arrivals)
  }

  @Test("Delay and jitter keep the order; reordering breaks it")
  func order() {
    let jittered = run(seed: 3, link: Link(delay: .milliseconds(10), jitter: .milliseconds(30))).arrivals
    #expect(jittered.map(\.bytes) == jittered.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) })
    #expect(jittered.allSatisfy { $0.arrival >= .zero + .milliseconds(10) })
    let reordered = run(seed: 3, link: Link(reordering: 0.1))
    #expect(
      reordered.arrivals.map(\.bytes)
        != reordered.arrivals.map(\.bytes).sorted {
          $0.lexicographicallyPrecedes($1)
        })
    #expect((60...140).contains(reordered.statistics.reordered))
  }

  @Test("Loss, duplication and corruption have their rates and every datagram is accounted for")
  func rates() {
    let (arrivals, statistics) = run(seed: 4, link: Link(loss: 0.2, duplication: 0.1, corruption: 0.1))
    #expect((150...250).contains(statistics.lost))
    #expect((50...110).contains(statistics.duplicated))
    #expect((50...110).contains(statistics.corrupted))
    #expect(arrivals.count == statistics.delivered)
    #expect(statistics.delivered == statistics.sent - statistics.lost + statistics.duplicated)
  }

  @Test("A bottleneck spaces datagrams out and drops what its queue does not hold")
  func bandwidth() {
    let link = Link(delay: .zero, bandwidth: .kilobitsPerSecond(240), queue: .milliseconds(100))
    // 30 bytes with headers: 1 ms each at 240 kbit/s, sent at once.
    let (arrivals, statistics) = run(seed: 5, link: link, count: 200, every: .zero)
    #expect(arrivals.count == 101)
    #expect(statistics.overflowed == 99)
    #expect(arrivals[9].arrival - arrivals[8].arrival == .milliseconds(1))
  }

  @Test("An MTU drops what is larger")
  func mtu() {
    var network = NetworkSimulator(seed: 6, link: Link(mtu: 100))
    network.send([UInt8](repeating: 0, count: 101), from: one, to: two, at: .zero)
    network.send([UInt8](repeating: 0, count: 100), from: one, to: two, at: .zero)
    #expect(network.underwayCount == 1)
    #expect(network.statistics.oversized == 1)
  }

  @Test("RFC 4787: a NAT shows its own address, lets answers in, nobody else, and forgets on rebinding")
  func nat() {
    var network = NetworkSimulator(seed: 7, link: Link(delay: .zero))
    let outside = SocketAddress(ipv4: 203, 0, 113, 1, port: 60_000)
    let rebound = SocketAddress(ipv4: 203, 0, 113, 1, port: 60_001)
    let stranger = SocketAddress(ipv4: 198, 51, 100, 1, port: 1)
    network.translate(one, to: outside)
    network.send([1], from: one, to: two, at: .zero)
    #expect(network.poll(at: .zero)?.source == outside)
    network.send([2], from: two, to: outside, at: .zero)
    #expect(network.poll(at: .zero)?.destination == one)
    network.send([3], from: stranger, to: outside, at: .zero)
    network.send([4], from: two, to: one, at: .zero)
    #expect(network.poll(at: .zero) == nil)
    network.translate(one, to: rebound)
    network.send([5], from: two, to: outside, at: .zero)
    #expect(network.poll(at: .zero) == nil)
    network.send([6], from: one, to: two, at: .zero)
    #expect(network.poll(at: .zero)?.source == rebound)
    #expect(network.statistics.unmapped == 3)
  }
}
