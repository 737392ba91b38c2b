import PalbeDTLS
import PalbeDataChannels
import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeSFUCore
import PalbeUnits

extension FuzzTarget {
  /// What a participant sends over its data channels: each piece is a length in two bytes, one that says how, then the
  /// bytes. They go as a message on `_reliable` (0), `_lossy` (1) or `_data_track` (3), or as a datagram in place of SCTP's
  /// (2); with the fourth bit set, time passes. Two others then still hear each other.
  static let sfuData = FuzzTarget(name: "sfu-data") { bytes in
    guard let world = FuzzedRoom() else { return }
    var rest = bytes[...]
    for _ in 0..<64 where rest.count >= 3 {
      let length = min(Int(rest.removeFirst()) << 8 | Int(rest.removeFirst()), rest.count - 1)
      let how = rest.removeFirst()
      let piece = Array(rest.prefix(length))
      rest = rest.dropFirst(length)
      switch how & 3 {
      case 0: world.send(piece, on: "_reliable", from: 0)
      case 1: world.send(piece, on: "_lossy", from: 0)
      case 3: world.send(piece, on: "_data_track", from: 0)
      default: world.sendRaw(piece, from: 0)
      }
      world.settle(for: .milliseconds(how & 8 == 0 ? 10 : 300))
    }
    world.settle(for: .milliseconds(500))
    let packet = LiveKit.DataPacket.with { $0.value = .user(.with { $0.payload = [42] }) }
    world.send(packet.serialized(), on: "_reliable", from: 1)
    world.settle(for: .milliseconds(500))
    precondition(world.hasHeard(42, at: 2), "the others are disturbed")
  }
}

/// Three participants with data channels, and one hub for all sides of them.
private final class FuzzedRoom {
  private final class Client {
    let address: SocketAddress
    let peer: SCTPPeer
    var ice: ICEAgent
    var dtls: DTLSEndpoint
    var ids: [String: UInt16] = [:]
    var heard: [[UInt8]] = []

    init?(_ number: Int, _ random: inout RandomSource) {
      guard let identity = FuzzedRoom.identity,
        let endpoint = try? DTLSEndpoint(role: .client, identity: identity)
      else { return nil }
      address = SocketAddress(ipv4: 192, 0, 2, UInt8(10 + number), port: 5_000)
      peer = SCTPPeer(worker: 1, id: UInt64(number))
      ice = ICEAgent(
        role: .controlling, local: ICECredentials(using: &random), random: RandomSource(seed: random.next()))
      dtls = endpoint
    }
  }

  static let identity: DTLSIdentity? = {
    var random = RandomSource(seed: 1)
    return try? DTLSIdentity(nowUnix: 1_760_000_000, using: &random)
  }()

  private let server = SocketAddress(ipv4: 192, 0, 2, 1, port: 7_882)
  private var worker: SFUWorker
  private let hub: SCTPHub
  private var clients: [Client] = []
  private var now = Instant(nanoseconds: 1_000_000_000)

  /// Nil when the library is in use elsewhere.
  init?() {
    guard let identity = Self.identity, let hub = try? SCTPHub() else { return nil }
    self.hub = hub
    worker = SFUWorker(
      configuration: SFUConfiguration(candidates: [server]), identity: identity,
      random: RandomSource(seed: 2), now: now, unixNanoseconds: 0)
    var random = RandomSource(seed: 3)
    for number in 0..<3 {
      guard let client = Client(number, &random) else { return nil }
      clients.append(client)
      join(client, number)
    }
    settle(for: .milliseconds(200))
    for client in clients {
      hub.handle(.open(client.peer, role: .active, SCTPConfiguration(), negotiated: []), at: now)
      for label in ["_reliable", "_lossy", "_data_track"] {
        hub.handle(.openChannel(client.peer, DataChannel(label: label)), at: now)
      }
    }
    settle(for: .milliseconds(500))
    precondition(clients.allSatisfy { $0.ids.count == 3 }, "no channels")
    let request = LiveKit.SignalRequest(
      .publishDataTrackRequest(
        .with {
          $0.pubHandle = 1
          $0.name = "track"
        }))
    worker.handle(.signal(ConnectionID(0), request.serialized()), at: now)
    drain()
  }

  private func join(_ client: Client, _ number: Int) {
    let transport = TransportParameters(
      iceUsernameFragment: client.ice.local.usernameFragment, icePassword: client.ice.local.password,
      fingerprint: Fingerprint(sha256: Self.identity?.fingerprint.bytes ?? []), setup: .actpass)
    var section = MediaSection.dataChannel(mid: "0")
    section.set(transport)
    let request = LiveKit.JoinRequest.with {
      $0.connectionSettings = .with { $0.autoSubscribeDataTrack = true }
      $0.publisherOffer = .with {
        $0.type = "offer"
        $0.sdp =
          SessionDescription(offering: [section], origin: SDPOrigin(sessionID: 1, version: 1)).description
      }
    }
    let grant = AccessGrant(room: "room", identity: "\(number)")
    worker.handle(
      .join(ConnectionID(UInt64(number)), JoinDetails(grant: grant, request: request)), at: now)
    drain()
  }

  /// Moves everything between the parts while time passes.
  func settle(for time: TimeDelta) {
    let end = now + time
    while now < end {
      exchange()
      now += .milliseconds(10)
      hub.handleTimeout(at: now)
      worker.handleTimeout(at: now)
      for client in clients {
        client.ice.handleTimeout(at: now)
        client.dtls.handleTimeout(at: now)
      }
    }
    exchange()
  }

  private func exchange() {
    for _ in 0..<20 {
      drain()
      for client in clients {
        if client.ice.selectedPair != nil, client.dtls.state == .new { client.dtls.start(at: now) }
        while let transmit = client.ice.pollTransmit() { receive(transmit.bytes, from: client) }
        while let datagram = client.dtls.pollTransmit() { receive(datagram, from: client) }
        while let bytes = client.dtls.pollReceived() { hub.handle(.datagram(client.peer, bytes), at: now) }
      }
    }
  }

  private func receive(_ datagram: [UInt8], from client: Client) {
    var bytes = datagram
    var span = bytes.mutableSpan
    worker.receive(&span, count: datagram.count, from: client.address, at: now)
    drain()
  }

  private func drain() {
    var buffer = [UInt8](repeating: 0, count: 1_500)
    while true {
      var span = buffer.mutableSpan
      guard let transmit = worker.pollTransmit(into: &span, at: now) else { break }
      deliver(Array(buffer[..<transmit.count]), to: transmit.destination)
    }
    while let event = worker.pollEvent() {
      switch event {
      case .sctp(let command): hub.handle(command, at: now)
      case .send(let connection, let bytes): take(bytes, clients[Int(connection.rawValue)])
      default: break
      }
    }
    while let report = hub.pollReport() {
      if report.peer.worker == 0 {
        worker.handle(.sctp(report), at: now)
      } else {
        take(report, clients[Int(report.peer.id)])
      }
    }
  }

  private func deliver(_ datagram: [UInt8], to address: SocketAddress) {
    guard let client = clients.first(where: { $0.address == address }) else { return }
    if (20...63).contains(datagram[0]) {
      try? client.dtls.handle(datagram.span, at: now)
    } else if datagram[0] < 4 {
      _ = client.ice.handle(datagram.span, from: server, base: 0, at: now)
    }
  }

  private func take(_ bytes: [UInt8], _ client: Client) {
    guard case .answer(let answer)? = (try? LiveKit.SignalResponse(serialized: bytes))?.message,
      let description = try? SessionDescription(parsing: answer.sdp), let remote = description.transport,
      let credentials = ICECredentials(
        usernameFragment: remote.iceUsernameFragment, password: remote.icePassword)
    else { return }
    client.ice.addLocalCandidate(ICECandidate(.host, client.address), base: 0, at: now)
    client.ice.setRemote(credentials, isLite: true, at: now)
    client.ice.addRemoteCandidate(ICECandidate(.host, server), at: now)
  }

  private func take(_ report: SCTPReport, _ client: Client) {
    switch report {
    case .transmit(_, let bytes): try? client.dtls.send(bytes.span, at: now)
    case .event(_, .channelOpened(let channel, _)): client.ids[channel.label] = channel.id
    case .event(_, .message(let message)): client.heard.append(message.bytes)
    default: break
    }
  }

  // MARK: What clients do

  func send(_ bytes: [UInt8], on label: String, from number: Int) {
    guard let id = clients[number].ids[label] else { return }
    hub.handle(.send([SCTPDestination(peer: clients[number].peer, channel: id)], .binary, bytes), at: now)
  }

  func sendRaw(_ bytes: [UInt8], from number: Int) { try? clients[number].dtls.send(bytes.span, at: now) }

  func hasHeard(_ byte: UInt8, at number: Int) -> Bool {
    clients[number].heard.contains { bytes in
      (try? LiveKit.DataPacket(serialized: bytes))?.value?.user?.payload == [byte]
    }
  }
}
