import PalbeEventLoop
import PalbeICE
import PalbeUnits

/// Finds the host's public address by asking STUN servers through a worker's own socket, before that worker runs.
enum ExternalAddress {
  static let defaultServers = ["stun.l.google.com:19302", "stun1.l.google.com:19302"]
  private static let defaultPort: UInt16 = 3_478

  /// Nil when no server answered within a few seconds.
  static func discover(through socket: borrowing UDPSocket, servers: [String]) -> SocketAddress? {
    let names = servers.isEmpty ? defaultServers : servers
    // A public IPv6 address needs no translation, so it is IPv4 that is asked for.
    let addresses = names.flatMap(resolve).filter { $0.family == .ipv4 }
    var query = ReflexiveAddressQuery(
      servers: addresses, random: SystemRandom.source(), at: MonotonicClock.now())
    do throws(SystemError) {
      var poller = try Poller(capacity: 1)
      try poller.add(socket.fileDescriptor, token: 0)
      var batch = ReceiveBatch(capacity: 8)
      while case .asking = query.state {
        while let request = query.pollTransmit() { socket.send(request.bytes.span, to: request.server) }
        if try poller.wait(until: query.nextDeadline) > 0 {
          for index in 0..<(try socket.receive(into: &batch)) {
            query.handle(batch.datagram(index), from: batch.source(index))
          }
        }
        query.handleTimeout(at: MonotonicClock.now())
      }
    } catch { return nil }
    if case .found(let address) = query.state { return address }
    return nil
  }

  /// "name", "name:port", "192.0.2.1:port" or "[2001:db8::1]:port", perhaps after "stun:".
  static func endpoint(_ text: String) -> (host: String, port: UInt16)? {
    var text = Substring(text)
    if text.hasPrefix("stun:") { text = text.dropFirst(5) }
    if text.first == "[", let end = text.firstIndex(of: "]") {
      let host = text[text.index(after: text.startIndex)..<end]
      let rest = text[text.index(after: end)...]
      if rest.isEmpty { return (String(host), defaultPort) }
      guard rest.first == ":", let port = UInt16(rest.dropFirst()) else { return nil }
      return (String(host), port)
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard let host = parts.first, !host.isEmpty else { return nil }
    switch parts.count {
    case 1: return (String(host), defaultPort)
    case 2: return UInt16(parts[1]).map { (String(host), $0) }
    default: return (String(text), defaultPort)
    }
  }

  private static func resolve(_ text: String) -> [SocketAddress] {
    guard let (host, port) = endpoint(text) else { return [] }
    return Host.addresses(of: host, port: port)
  }
}
