import PalbeDTLS
import PalbeUnits

extension FuzzTarget {
  /// A stream of datagrams, each behind two bytes of length, to a server, and to a client that said hello.
  static let dtlsDatagram = FuzzTarget(name: "dtls-datagram") { bytes in
    guard let identity = DTLSFuzz.identity, var server = try? DTLSEndpoint(role: .server, identity: identity),
      var client = try? DTLSEndpoint(role: .client, identity: identity)
    else { return }
    client.start(at: .zero)
    var rest = bytes[...]
    var now = Instant.zero
    for _ in 0..<64 where rest.count >= 2 {
      let count = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
      let datagram = Array(rest.dropFirst(2).prefix(count))
      rest = rest.dropFirst(2 + count)
      try? server.handle(datagram.span, at: now)
      try? client.handle(datagram.span, at: now)
      now += .milliseconds(100)
      server.handleTimeout(at: now)
      client.handleTimeout(at: now)
      while server.pollTransmit() != nil {}
      while client.pollTransmit() != nil {}
    }
    precondition(server.state != .connected && client.state != .connected, "connected by chance")
  }
}

private enum DTLSFuzz {
  /// One key for the whole run, or each input would cost a key generation.
  static let identity: DTLSIdentity? = {
    var random = RandomSource(seed: 1)
    return try? DTLSIdentity(nowUnix: 1_700_000_000, using: &random)
  }()
}
