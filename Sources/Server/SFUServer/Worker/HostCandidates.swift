import PalbeEventLoop
import PalbeUnits

/// The addresses at which clients are told to reach a worker.
struct HostCandidates {
  /// Where the worker listens, without ports: "0.0.0.0" hears IPv4 alone, "::" both.
  var bound: [SocketAddress]
  /// Those of the host's interfaces, loopback last.
  var hostAddresses: [SocketAddress]
  /// Announced instead of the host's addresses of the same family, such as the public one of a host behind a one-to-one
  /// NAT.
  var external: SocketAddress?
  /// The replaced ones are announced too, after it.
  var keepsInternal = false

  /// The candidates with this port and transport.
  func at(_ port: UInt16, _ transport: SocketAddress.Transport = .udp) -> [SocketAddress] {
    var announced: [SocketAddress] = []
    var internals: [SocketAddress] = []
    for address in bound.flatMap(heard) {
      if let external, address.family == external.family || address.isLoopback {
        if !address.isLoopback { internals.append(address) }
      } else {
        announced.append(address)
      }
    }
    if let external { announced.insert(external, at: 0) }
    if keepsInternal { announced += internals }
    var seen: Set<SocketAddress> = []
    return announced.compactMap { address in
      var address = address
      address.port = port
      address.transport = transport
      return seen.insert(address).inserted ? address : nil
    }
  }

  private func heard(at address: SocketAddress) -> [SocketAddress] {
    guard address.isUnspecified else { return [address] }
    return hostAddresses.filter { address.family == .ipv6 || $0.family == .ipv4 }
  }
}
