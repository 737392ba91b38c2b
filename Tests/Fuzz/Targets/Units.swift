import PalbeUnits

extension FuzzTarget {
  /// What parses must print and parse again to the same address.
  static let socketAddress = FuzzTarget(name: "socket-address") { bytes in
    guard let address = SocketAddress(host: String(decoding: bytes, as: UTF8.self), port: 1) else { return }
    precondition(SocketAddress(host: address.host, port: 1) == address, "\(address.host) does not round-trip")
  }
}
