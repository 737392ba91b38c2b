import PalbeCrypto
import PalbeDTLS
import PalbeNetSim
import PalbeTestKit
import PalbeUnits

/// A client and a server over a simulated network in virtual time.
final class DTLSWorld {
  static let clientAddress = SocketAddress(ipv4: 10, 0, 0, 2, port: 40_000)
  static let serverAddress = SocketAddress(ipv4: 192, 0, 2, 10, port: 7_882)
  static let clientIdentity = identity(seed: 1)
  static let serverIdentity = identity(seed: 2)

  var clock = VirtualClock()
  var network: NetworkSimulator
  var client: DTLSEndpoint
  var server: DTLSEndpoint
  /// Every datagram offered to the network, in order.
  var datagrams: [(fromClient: Bool, bytes: [UInt8])] = []
  /// Decides by its index in `datagrams`, its sender and the time whether a datagram is dropped.
  var drops: (Int, Bool, Instant) -> Bool = { _, _, _ in false }
  /// Replaces a datagram by others on the way.
  var rewrite: ([UInt8], Bool) -> [[UInt8]] = { bytes, _ in [bytes] }

  init(
    seed: UInt64 = 1, link: Link = Link(), clientProfiles: [UInt16] = [7, 8, 1],
    serverProfiles: [UInt16] = [7, 8, 1],
    mtu: Int = 1_200
  ) throws {
    network = NetworkSimulator(seed: seed, link: link)
    client = try DTLSEndpoint(
      role: .client, identity: Self.clientIdentity, profiles: clientProfiles, mtu: mtu)
    server = try DTLSEndpoint(
      role: .server, identity: Self.serverIdentity, profiles: serverProfiles, mtu: mtu)
  }

  static func identity(seed: UInt64) -> DTLSIdentity {
    var random = RandomSource(seed: seed)
    do { return try DTLSIdentity(nowUnix: 1_700_000_000, using: &random) } catch { fatalError("\(error)") }
  }

  var areConnected: Bool { client.state == .connected && server.state == .connected }

  /// Runs until both are connected, one has failed or time is up; true when both are connected.
  @discardableResult
  func connect(within limit: TimeDelta = .seconds(10)) -> Bool {
    client.start(at: clock.now)
    server.start(at: clock.now)
    run(for: limit) { $0.areConnected }
    return areConnected
  }

  func run(for limit: TimeDelta, until condition: (DTLSWorld) -> Bool = { _ in false }) {
    let end = clock.now + limit
    while true {
      drain()
      if condition(self) { return }
      var next = end
      if let arrival = network.nextArrival { next = min(next, arrival) }
      if let deadline = client.nextDeadline { next = min(next, deadline) }
      if let deadline = server.nextDeadline { next = min(next, deadline) }
      if next >= end {
        clock.advance(to: end)
        return
      }
      clock.advance(to: next)
      let now = clock.now
      while let datagram = network.poll(at: now) {
        if datagram.destination == Self.clientAddress {
          try? client.handle(datagram.bytes.span, at: now)
        } else {
          try? server.handle(datagram.bytes.span, at: now)
        }
        drain()
      }
      if let deadline = client.nextDeadline, deadline <= now { client.handleTimeout(at: now) }
      if let deadline = server.nextDeadline, deadline <= now { server.handleTimeout(at: now) }
    }
  }

  func drain() {
    while let bytes = client.pollTransmit() { offer(bytes, fromClient: true) }
    while let bytes = server.pollTransmit() { offer(bytes, fromClient: false) }
  }

  private func offer(_ bytes: [UInt8], fromClient: Bool) {
    let isDropped = drops(datagrams.count, fromClient, clock.now)
    datagrams.append((fromClient, bytes))
    guard !isDropped else { return }
    for part in rewrite(bytes, fromClient) {
      network.send(
        part, from: fromClient ? Self.clientAddress : Self.serverAddress,
        to: fromClient ? Self.serverAddress : Self.clientAddress, at: clock.now)
    }
  }
}

/// A copy of exported keys that tests can compare.
struct ExportedKeys: Equatable {
  var profile: UInt16
  var localKey, localSalt, remoteKey, remoteSalt: [UInt8]

  init(_ endpoint: borrowing DTLSEndpoint) throws {
    let keys = try endpoint.exportKeyingMaterial()
    func bytes(_ key: borrowing SymmetricKey) -> [UInt8] {
      let span = key.span
      return span.indices.map { span[$0] }
    }
    profile = keys.profile
    localKey = bytes(keys.localKey)
    localSalt = bytes(keys.localSalt)
    remoteKey = bytes(keys.remoteKey)
    remoteSalt = bytes(keys.remoteSalt)
  }

  /// The same keys as the other side sees them.
  var mirrored: ExportedKeys {
    var other = self
    (other.localKey, other.remoteKey) = (remoteKey, localKey)
    (other.localSalt, other.remoteSalt) = (remoteSalt, localSalt)
    return other
  }
}
