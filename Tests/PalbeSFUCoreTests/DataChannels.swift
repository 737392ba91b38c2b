import CPalbeProcess
import PalbeDTLS
import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

/// All suites with data channels: usrsctp is one for the process, so they run one after another.
@Suite("Data channels through the SFU", .serialized)
enum DataSuites {}

/// A client's side of its data channels.
struct ClientChannels {
  /// Opened by the client as soon as it is connected.
  var opens: [DataChannel] = ["_reliable", "_lossy"].map { label in
    DataChannel(
      label: label, isOrdered: label == "_reliable",
      reliability: label == "_reliable" ? .reliable : .retransmits(0))
  }
  /// Known to both sides from the beginning.
  var negotiated: [DataChannel] = []
  var isOpened = false
  /// The numbers of open channels, by their labels.
  var ids: [String: UInt16] = [:]
  var events: [SCTPEvent] = []
  /// Whole packets by the channel they came on.
  var received: [(label: String, packet: LiveKit.DataPacket)] = []
  /// Packets of data tracks.
  var trackPackets: [[UInt8]] = []
  /// While true, its datagrams to and from SCTP are lost.
  var isDeaf = false
  /// Its SCTP datagrams.
  var sent: [[UInt8]] = []

  func packets(_ label: String = "_reliable") -> [LiveKit.DataPacket] {
    received.filter { $0.label == label }.map(\.packet)
  }

  func texts(_ label: String = "_reliable") -> [String] {
    packets(label).compactMap { $0.value?.user.map { String(decoding: $0.payload, as: UTF8.self) } }
  }
}

/// One hub for the worker's side and the clients', as in life with another thread between.
final class DataChannels {
  /// The clients' side counts as this worker.
  static let clients = 1

  private let hub: SCTPHub
  private var forWorker: [SCTPReport] = []
  private var byClient: [UInt64: [SCTPReport]] = [:]
  /// What the worker asked for.
  private(set) var commands: [SCTPCommand] = []
  private let epoch: Int64
  private nonisolated(unsafe) static var lastEpoch: Int64 = 1_600_000_000_000_000

  init(at now: Instant) throws {
    Self.lastEpoch += 1_000_000_000_000
    epoch = Self.lastEpoch
    palbe_wall_clock_set(epoch + now.nanoseconds / 1_000)
    hub = try SCTPHub()
  }

  deinit { palbe_wall_clock_release() }

  var peerCount: Int { hub.peerCount }
  var nextDeadline: Instant? { hub.nextDeadline }

  func advance(to now: Instant) {
    palbe_wall_clock_set(epoch + now.nanoseconds / 1_000)
    if let deadline = hub.nextDeadline, deadline <= now { hub.handleTimeout(at: now) }
    sort()
  }

  func handle(_ command: SCTPCommand, at now: Instant) {
    commands.append(command)
    hub.handle(command, at: now)
    sort()
  }

  private func sort() {
    while let report = hub.pollReport() {
      if report.peer.worker == Self.clients {
        byClient[report.peer.id, default: []].append(report)
      } else {
        forWorker.append(report)
      }
    }
  }

  func pollForWorker() -> SCTPReport? { forWorker.isEmpty ? nil : forWorker.removeFirst() }

  static func peer(_ client: ScriptedClient) -> SCTPPeer {
    SCTPPeer(worker: clients, id: client.number)
  }

  /// Moves datagrams between a client's DTLS and its SCTP.
  func serve(_ client: ScriptedClient, at now: Instant) {
    let peer = Self.peer(client)
    if client.dtls.state == .connected, !client.channels.isOpened {
      client.channels.isOpened = true
      var configuration = SCTPConfiguration()
      configuration.backlogSize = 16 << 20
      hub.handle(.open(peer, role: .active, configuration, negotiated: client.channels.negotiated), at: now)
      open(client.channels.opens, of: client, at: now)
    }
    guard client.channels.isOpened else { return }
    while let bytes = client.dtls.pollReceived() {
      if !client.channels.isDeaf { hub.handle(.datagram(peer, bytes), at: now) }
    }
    sort()
    for report in byClient.removeValue(forKey: peer.id) ?? [] { take(report, of: client, at: now) }
  }

  func open(_ channels: [DataChannel], of client: ScriptedClient, at now: Instant) {
    for channel in channels { hub.handle(.openChannel(Self.peer(client), channel), at: now) }
  }

  /// Raw bytes in place of an SCTP datagram.
  func sendRaw(_ bytes: [UInt8], from client: ScriptedClient, at now: Instant) {
    try? client.dtls.send(bytes.span, at: now)
  }

  /// The client ends its SCTP and nothing else.
  func abort(_ client: ScriptedClient, at now: Instant) {
    hub.handle(.close(Self.peer(client)), at: now)
    serve(client, at: now)
  }

  private func take(_ report: SCTPReport, of client: ScriptedClient, at now: Instant) {
    switch report {
    case .transmit(_, let bytes):
      client.channels.sent.append(bytes)
      if !client.channels.isDeaf { try? client.dtls.send(bytes.span, at: now) }
    case .event(_, .channelOpened(let channel, let byPeer)):
      client.channels.ids[channel.label] = channel.id
      client.channels.events.append(.channelOpened(channel, byPeer: byPeer))
    case .event(_, .message(let message)):
      let label = client.channels.ids.first { $0.value == message.channel }?.key
      if label == "_data_track" { return client.channels.trackPackets.append(message.bytes) }
      guard let label, let packet = try? LiveKit.DataPacket(serialized: message.bytes)
      else {
        Issue.record("a message that is no packet")
        return
      }
      client.channels.received.append((label, packet))
    case .event(_, let event): client.channels.events.append(event)
    case .refused(_, _, let error): Issue.record("refused: \(error)")
    }
  }

  func send(_ bytes: [UInt8], on label: String, from client: ScriptedClient, at now: Instant) throws {
    let channel = try #require(client.channels.ids[label])
    hub.handle(
      .send([SCTPDestination(peer: Self.peer(client), channel: channel)], .binary, bytes), at: now)
    serve(client, at: now)
  }
}

extension World {
  /// A worker and clients that have data channels too.
  static func withData(
    seed: UInt64 = 1, configuration change: (inout SFUConfiguration) -> Void = { _ in }
  ) throws -> World {
    let world = try World(seed: seed, configuration: change)
    world.data = try DataChannels(at: world.now)
    return world
  }

  /// Joins, and waits until both of the client's channels are open.
  func joinWithData(
    _ identity: String, grant change: (inout AccessGrant) -> Void = { _ in }
  ) throws -> ScriptedClient {
    let client = try client(identity)
    join(client, grant: change)
    try #require(run(for: .seconds(5)) { client.channels.ids.count == 2 })
    return client
  }

  /// Joins with two connections; the second one receives.
  func joinOverTwo(
    _ identity: String, protocol number: Int32 = 17
  ) throws -> (sender: ScriptedClient, receiver: ScriptedClient) {
    let sender = try client(identity)
    let receiver = try client(identity + " receiving")
    sender.receiver = receiver
    receiver.pingsAutomatically = false
    receiver.channels.opens = []
    var details = details(
      sender,
      request: { request in
        request.publisherOffer = nil
        request.addTrackRequests = []
        request.clientInfo?.protocol = number
      })
    details.usesTwoConnections = true
    handle(.join(sender.connection, details))
    return (sender, receiver)
  }

  func send(
    _ packet: LiveKit.DataPacket, on label: String = "_reliable", from client: ScriptedClient
  ) throws {
    try data?.send(packet.serialized(), on: label, from: client, at: now)
    drain()
  }
}

/// A packet of an application's.
func text(
  _ text: String, sequence: UInt32 = 0, _ change: (inout LiveKit.DataPacket) -> Void = { _ in }
) -> LiveKit.DataPacket {
  .with {
    $0.value = .user(.with { $0.payload = Array(text.utf8) })
    $0.sequence = sequence
    change(&$0)
  }
}
