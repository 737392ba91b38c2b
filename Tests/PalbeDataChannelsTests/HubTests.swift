import PalbeDTLS
import PalbeDataChannels
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

extension DataChannelSuites {
  @Suite("Several workers, one thread for usrsctp")
  struct HubTests {
    /// Passes reports between two peers of one hub for half a second; what is no datagram is kept.
    private func exchange(
      _ hub: SCTPHub, _ one: SCTPPeer, _ other: SCTPPeer, at now: inout Instant
    ) -> [SCTPReport] {
      var rest: [SCTPReport] = []
      for _ in 0..<50 {
        while let report = hub.pollReport() {
          if case .transmit(let peer, let bytes) = report {
            hub.handle(.datagram(peer == one ? other : one, bytes), at: now)
          } else {
            rest.append(report)
          }
        }
        now += .milliseconds(10)
        hub.handleTimeout(at: now)
      }
      return rest
    }

    @Test("Commands in, reports out: open, send to several, refuse, close, forget")
    func commands() throws {
      let hub = try SCTPHub()
      var now = Instant.zero
      let one = SCTPPeer(worker: 0, id: 1)
      let other = SCTPPeer(worker: 1, id: 1)
      let channels = [DataChannel(id: 100, label: "_reliable"), DataChannel(id: 101, label: "_lossy")]
      hub.handle(.open(one, role: .active, SCTPConfiguration(), negotiated: channels), at: now)
      hub.handle(.open(other, role: .passive, SCTPConfiguration(), negotiated: channels), at: now)
      var reports = exchange(hub, one, other, at: &now)
      #expect(reports.count { $0 == .event(one, .connected(outbound: 128, inbound: 128)) } == 1)
      #expect(reports.count { $0 == .event(other, .connected(outbound: 128, inbound: 128)) } == 1)
      hub.handle(
        .send(
          [SCTPDestination(peer: one, channel: 100), SCTPDestination(peer: other, channel: 101)], .text, [65]),
        at: now)
      hub.handle(.send([SCTPDestination(peer: one, channel: 7)], .text, [65]), at: now)
      reports = exchange(hub, one, other, at: &now)
      #expect(reports.contains(.event(other, .message(SCTPMessage(channel: 100, kind: .text, bytes: [65])))))
      #expect(reports.contains(.event(one, .message(SCTPMessage(channel: 101, kind: .text, bytes: [65])))))
      #expect(reports.contains(.refused(one, channel: 7, .noSuchChannel(id: 7))))
      hub.handle(.openChannel(other, DataChannel(label: "late")), at: now)
      reports = exchange(hub, one, other, at: &now)
      #expect(reports.contains(.event(one, .channelOpened(DataChannel(id: 1, label: "late"), byPeer: true))))
      hub.handle(.closeChannel(one, 1), at: now)
      reports = exchange(hub, one, other, at: &now)
      #expect(reports.contains(.event(other, .channelClosed(id: 1))))
      hub.handle(.close(one), at: now)
      reports = exchange(hub, one, other, at: &now)
      #expect(reports.contains(.event(one, .closed)))
      #expect(reports.contains(.event(other, .closed)))
      #expect(hub.peerCount == 0)
      #expect(hub.nextDeadline == nil)
    }

    @Test("A peer that is discarded or unknown is silent; its name can be used again")
    func discard() throws {
      let hub = try SCTPHub()
      let peer = SCTPPeer(worker: 0, id: 1)
      hub.handle(.open(peer, role: .active, SCTPConfiguration(), negotiated: []), at: .zero)
      hub.handle(.discard(peer), at: .zero)
      #expect(hub.pollReport() == nil)
      for command: SCTPCommand in [
        .datagram(peer, [1]), .openChannel(peer, DataChannel(label: "x")), .closeChannel(peer, 0),
        .close(peer),
        .send([SCTPDestination(peer: peer, channel: 0)], .text, []), .discard(peer),
      ] { hub.handle(command, at: .zero) }
      #expect(hub.pollReport() == nil)
      #expect(hub.peerCount == 0)
      hub.handle(.open(peer, role: .active, SCTPConfiguration(), negotiated: []), at: .zero)
      hub.handle(.open(peer, role: .active, SCTPConfiguration(), negotiated: []), at: .zero)
      #expect(hub.peerCount == 1)
      guard case .transmit(peer, let bytes) = hub.pollReport() else {
        Issue.record("no INIT")
        return
      }
      #expect(bytes[12] == 1)
      #expect(hub.pollReport() == nil)
    }

    @Test("RFC 8261: over DTLS over a network that loses 5 %, one message per datagram boundary kept")
    func overDTLS() throws {
      let world = try DTLSPair(link: Link(delay: .milliseconds(20), loss: 0.05, reordering: 0.1))
      #expect(world.run(for: .seconds(30)) { world.state == (.connected, .connected) })
      let payload = [UInt8](repeating: 9, count: 63_999)
      let id = try world.active.openChannel(DataChannel(label: "_reliable"), at: world.clock.now)
      for index in 0..<10 {
        let message = [UInt8(index)] + payload
        try world.active.send(message.span, kind: .binary, channel: id, at: world.clock.now)
      }
      #expect(world.run(for: .seconds(120)) { world.messages.count == 10 })
      #expect(world.messages.map { $0.bytes.count } == [Int](repeating: 64_000, count: 10))
      #expect(world.messages.map { $0.bytes[0] } == (0..<10).map { UInt8($0) })
    }
  }
}

/// A DTLS client and server over a simulated network, each with an association above.
private final class DTLSPair {
  static let addresses = [
    SocketAddress(ipv4: 10, 0, 0, 2, port: 40_000), SocketAddress(ipv4: 192, 0, 2, 10, port: 7_882),
  ]

  var clock = VirtualClock()
  var network: NetworkSimulator
  var client: DTLSEndpoint
  var server: DTLSEndpoint
  let library: SCTPLibrary
  let active: SCTPAssociation
  let passive: SCTPAssociation
  var messages: [SCTPMessage] = []
  private var buffer = [UInt8](repeating: 0, count: 1_500)

  init(link: Link) throws {
    network = NetworkSimulator(seed: 1, link: link)
    var random = RandomSource(seed: 1)
    client = try DTLSEndpoint(role: .client, identity: DTLSIdentity(nowUnix: 1_700_000_000, using: &random))
    server = try DTLSEndpoint(role: .server, identity: DTLSIdentity(nowUnix: 1_700_000_000, using: &random))
    library = try SCTPLibrary()
    active = try library.makeAssociation(role: .active, at: clock.now)
    passive = try library.makeAssociation(role: .passive, at: clock.now)
    client.start(at: clock.now)
  }

  var state: (SCTPState, SCTPState) { (active.state, passive.state) }

  private func pump() throws {
    let now = clock.now
    while let event = passive.pollEvent() {
      if case .message(let message) = event { messages.append(message) }
    }
    while active.pollEvent() != nil {}
    if client.state == .connected, server.state == .connected {
      while let bytes = next(active) {
        try client.send(bytes.span, at: now)
        while let datagram = client.pollTransmit() {
          network.send(datagram, from: Self.addresses[0], to: Self.addresses[1], at: now)
        }
      }
      while let bytes = next(passive) {
        try server.send(bytes.span, at: now)
        while let datagram = server.pollTransmit() {
          network.send(datagram, from: Self.addresses[1], to: Self.addresses[0], at: now)
        }
      }
    }
    while let datagram = client.pollTransmit() {
      network.send(datagram, from: Self.addresses[0], to: Self.addresses[1], at: now)
    }
    while let datagram = server.pollTransmit() {
      network.send(datagram, from: Self.addresses[1], to: Self.addresses[0], at: now)
    }
  }

  private func next(_ association: SCTPAssociation) -> [UInt8]? {
    var span = buffer.mutableSpan
    guard let count = association.pollTransmit(into: &span) else { return nil }
    return Array(buffer[..<count])
  }

  func run(for limit: TimeDelta, until condition: () -> Bool) -> Bool {
    let end = clock.now + limit
    do {
      while clock.now < end {
        try pump()
        if condition() { return true }
        clock.advance(to: clock.now + .milliseconds(1))
        let now = clock.now
        while let datagram = network.poll(at: now) {
          if datagram.destination == Self.addresses[0] {
            try client.handle(datagram.bytes.span, at: now)
            while let bytes = client.pollReceived() { active.handle(bytes.span, at: now) }
          } else {
            try server.handle(datagram.bytes.span, at: now)
            while let bytes = server.pollReceived() { passive.handle(bytes.span, at: now) }
          }
        }
        client.handleTimeout(at: now)
        server.handleTimeout(at: now)
        library.handleTimeout(at: now)
      }
    } catch {
      Issue.record("\(error)")
    }
    return false
  }
}
