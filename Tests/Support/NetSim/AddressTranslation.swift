import PalbeUnits

/// NATs with endpoint-independent mapping and address-and-port-dependent filtering (RFC 4787 §4.1 and §5).
struct AddressTranslation: Sendable {
  private struct Permission: Hashable {
    var outside: SocketAddress
    var peer: SocketAddress
  }

  private var outsides: [SocketAddress: SocketAddress] = [:]
  private var insides: [SocketAddress: SocketAddress] = [:]
  private var dead: Set<SocketAddress> = []
  private var permissions: Set<Permission> = []

  mutating func map(_ inside: SocketAddress, to outside: SocketAddress) {
    if let old = outsides[inside] {
      insides[old] = nil
      dead.insert(old)
    }
    dead.remove(outside)
    outsides[inside] = outside
    insides[outside] = inside
  }

  /// The source that others see.
  mutating func outgoing(from source: SocketAddress, to destination: SocketAddress) -> SocketAddress {
    guard let outside = outsides[source] else { return source }
    permissions.insert(Permission(outside: outside, peer: destination))
    return outside
  }

  /// Who receives what is sent to `destination`; nil: nobody. The inside address itself cannot be reached from outside.
  func incoming(from source: SocketAddress, to destination: SocketAddress) -> SocketAddress? {
    if dead.contains(destination) || outsides[destination] != nil { return nil }
    guard let inside = insides[destination] else { return destination }
    return permissions.contains(Permission(outside: destination, peer: source)) ? inside : nil
  }
}
