import PalbeEventLoop
import PalbeUnits

/// Holds addresses to their limits. Its tables do not grow beyond what the server allows in all.
struct AddressGate {
  private var limits: AddressLimits
  private var connections: AddressRateLimiter
  private var requests: AddressRateLimiter
  /// Open connections of each network; at most as many entries as there are connections.
  private var counts: [Network: Int] = [:]

  /// An IPv4 address, or an IPv6 network of 64 bits.
  private struct Network: Hashable {
    var family: SocketAddress.Family
    var high: UInt64
  }

  init(_ limits: AddressLimits) {
    self.limits = limits
    var random = SystemRandomNumberGenerator()
    connections = AddressRateLimiter(
      perSecond: limits.connectionsPerSecond, burst: limits.connectionBurst, seed: random.next())
    requests = AddressRateLimiter(
      perSecond: limits.requestsPerSecond, burst: limits.requestBurst, seed: random.next())
  }

  /// Other limits from now on; connections that are open stay.
  mutating func setLimits(_ limits: AddressLimits) {
    self.limits = limits
    connections.setRate(perSecond: limits.connectionsPerSecond, burst: limits.connectionBurst)
    requests.setRate(perSecond: limits.requestsPerSecond, burst: limits.requestBurst)
  }

  private func isLimited(_ peer: SocketAddress) -> Bool { limits.includesLoopback || !peer.isLoopback }

  private func network(of peer: SocketAddress) -> Network { Network(family: peer.family, high: peer.high) }

  /// Whether a new connection is taken.
  mutating func admits(_ peer: SocketAddress) -> Bool {
    guard isLimited(peer) else { return true }
    return counts[network(of: peer), default: 0] < limits.connectionCount
      && connections.take(from: peer, at: MonotonicClock.now())
  }

  /// Whether a request is looked at.
  mutating func admitsRequest(from peer: SocketAddress) -> Bool {
    !isLimited(peer) || requests.take(from: peer, at: MonotonicClock.now())
  }

  mutating func opened(_ peer: SocketAddress) { counts[network(of: peer), default: 0] += 1 }

  mutating func closed(_ peer: SocketAddress) {
    let network = network(of: peer)
    guard let count = counts[network] else { return }
    counts[network] = count > 1 ? count - 1 : nil
  }
}
