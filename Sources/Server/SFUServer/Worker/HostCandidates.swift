import PalbeEventLoop
import PalbeUnits

/// The addresses at which clients are told to reach a worker.
enum HostCandidates {
  /// - Parameters:
  ///   - socket: where the worker's socket is bound.
  ///   - node: an address to announce instead, such as the public one of a host behind a one-to-one NAT.
  ///   - hostAddresses: those of the host's interfaces, loopback last.
  static func candidates(
    of socket: SocketAddress, node: SocketAddress?, hostAddresses: [SocketAddress]
  ) -> [SocketAddress] {
    func at(_ address: SocketAddress) -> SocketAddress {
      var address = address
      address.port = socket.port
      return address
    }
    if let node { return [at(node)] }
    guard socket.high == 0, socket.low == 0 else { return [socket] }
    // "0.0.0.0" hears IPv4 alone, "::" both.
    let heard = hostAddresses.filter { socket.family == .ipv6 || $0.family == .ipv4 }
    return heard.map(at)
  }
}
