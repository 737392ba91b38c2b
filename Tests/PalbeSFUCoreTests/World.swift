import PalbeDTLS
import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import PalbeWire
import Testing

/// A worker and its clients in virtual time, over a seeded network.
final class World {
  static let server = SocketAddress(ipv4: 192, 0, 2, 1, port: 7_882)

  var worker: SFUWorker
  var network: NetworkSimulator
  var now = Instant(nanoseconds: 1_000_000_000)
  var random: RandomSource
  var clients: [ScriptedClient] = []
  var log: [SFULogRecord] = []
  var answers: [RoomAnswer] = []
  var notices: [RoomNotice] = []
  var tokens: [(connection: ConnectionID, grant: AccessGrant)] = []
  /// Long runs remember nothing.
  var isRecording = true
  /// Media packets as `withReceivedMedia` showed them.
  var received: [[UInt8]] = []
  /// SCTP for the worker and its clients; nil in tests without data channels.
  var data: DataChannels?
  /// What was protected under each destination, SSRC and extended sequence number.
  private var protected: [String: [UInt8]] = [:]
  private var unwrappers: [String: SequenceUnwrapper] = [:]
  /// Packets protected under numbers that carried something else before. Must stay zero.
  private(set) var reuses = 0
  private(set) var protectedCount = 0
  /// Bytes that were sent to each address.
  private(set) var sentByteCounts: [SocketAddress: Int] = [:]

  init(
    seed: UInt64 = 1, link: Link = Link(delay: .milliseconds(10)),
    configuration change: (inout SFUConfiguration) -> Void = { _ in }
  ) throws {
    random = RandomSource(seed: seed)
    network = NetworkSimulator(seed: seed, link: link)
    var configuration = SFUConfiguration(candidates: [Self.server])
    change(&configuration)
    let identity = try DTLSIdentity(nowUnix: 1_760_000_000, using: &random)
    worker = SFUWorker(
      configuration: configuration, identity: identity, random: RandomSource(seed: random.next()), now: now,
      unixNanoseconds: 1_760_000_000_000_000_000)
  }

  func client(_ identity: String) throws -> ScriptedClient {
    let client = try ScriptedClient(
      identity: identity, number: UInt64(clients.count + 1), random: &random)
    client.nextPing = now + .seconds(5)
    clients.append(client)
    return client
  }

  func track(_ cid: String, _ kind: ScriptedTrack.Kind) -> ScriptedTrack {
    ScriptedTrack(
      cid: cid, kind: kind == .audio ? .audio : .video, ssrc: SSRC(UInt32(truncatingIfNeeded: random.next())))
  }

  func details(
    _ client: ScriptedClient, grant change: (inout AccessGrant) -> Void = { _ in },
    request: (inout LiveKit.JoinRequest) -> Void = { _ in }
  ) -> JoinDetails {
    var grant = AccessGrant(room: "room", identity: client.identity)
    change(&grant)
    var joinRequest = LiveKit.JoinRequest.with {
      $0.clientInfo = .with { $0.protocol = 17 }
      $0.connectionSettings = .with { $0.autoSubscribe = true }
      $0.addTrackRequests = client.tracks.map(client.addTrack)
      $0.publisherOffer = client.offerMessage()
    }
    request(&joinRequest)
    return JoinDetails(grant: grant, request: joinRequest)
  }

  /// Joins with tracks and offer inside the request, as our client does.
  func join(
    _ client: ScriptedClient, grant change: (inout AccessGrant) -> Void = { _ in },
    request: (inout LiveKit.JoinRequest) -> Void = { _ in }
  ) {
    handle(.join(client.connection, details(client, grant: change, request: request)))
  }

  /// The client's WebSocket is gone, without a word.
  func cut(_ client: ScriptedClient) {
    client.isClosed = true
    client.pingsAutomatically = false
    handle(.closed(client.connection))
  }

  /// The client comes back over another WebSocket, as LiveKit's clients do.
  func resume(
    _ client: ScriptedClient, sid: String? = nil, request: (inout LiveKit.JoinRequest) -> Void = { _ in }
  ) {
    client.connection = ConnectionID(client.connection.rawValue + 1_000)
    client.isClosed = false
    client.pingsAutomatically = true
    client.nextPing = now + .seconds(5)
    var joinRequest = LiveKit.JoinRequest.with {
      $0.clientInfo = .with { $0.protocol = 17 }
      $0.reconnect = true
      $0.participantSid = sid ?? client.join?.participant?.sid ?? ""
    }
    request(&joinRequest)
    let grant = AccessGrant(room: "room", identity: client.identity)
    handle(.join(client.connection, JoinDetails(grant: grant, request: joinRequest)))
  }

  func signal(_ message: LiveKit.SignalRequest.Message, from client: ScriptedClient) {
    handle(.signal(client.connection, LiveKit.SignalRequest(message).serialized()))
  }

  func handle(_ input: SFUInput) {
    worker.handle(input, at: now)
    drain()
  }

  /// An operator's command, and its answer.
  func command(_ command: RoomCommand) -> RoomAnswer? {
    handle(.command(CommandID(7), command))
    return answers.popLast()
  }

  func send(_ datagrams: [[UInt8]], from client: ScriptedClient) {
    for bytes in datagrams { network.send(bytes, from: client.address, to: Self.server, at: now) }
  }

  /// Reports of SCTP's to the worker.
  func deliverReports() {
    while let report = data?.pollForWorker() { handle(.sctp(report)) }
  }

  func receive(_ bytes: [UInt8], from source: SocketAddress) {
    var buffer = bytes + [UInt8](repeating: 0, count: 64)
    var span = buffer.mutableSpan
    worker.receive(&span, count: bytes.count, from: source, at: now)
    if isRecording { worker.withReceivedMedia { received.append([UInt8]($0)) } }
    drain()
  }

  /// Sends what the worker wants sent, and delivers its messages.
  func drain() {
    var buffer = [UInt8](repeating: 0, count: 1_500)
    while true {
      var span = buffer.mutableSpan
      guard let transmit = worker.pollTransmit(into: &span, at: now) else { break }
      let bytes = Array(buffer[..<transmit.count])
      if isRecording { note(bytes, to: transmit.destination) }
      sentByteCounts[transmit.destination, default: 0] += bytes.count
      network.send(bytes, from: Self.server, to: transmit.destination, at: now)
    }
    while let event = worker.pollEvent() {
      switch event {
      case .send(let connection, let bytes):
        guard let client = clients.first(where: { $0.connection == connection }), !client.isClosed,
          let message = try? LiveKit.SignalResponse(serialized: bytes).message
        else { continue }
        client.receive(message, at: now)
      case .close(let connection): clients.first { $0.connection == connection }?.isClosed = true
      case .answer(_, let answer): answers.append(answer)
      case .notice(let notice): notices.append(notice)
      case .refreshToken(let connection, let grant): tokens.append((connection, grant))
      case .log(let record): log.append(record)
      case .sctp(let command): data?.handle(command, at: now)
      }
    }
    react()
  }

  func react() {
    for client in clients {
      while !client.reactions.isEmpty, !client.isClosed {
        signal(client.reactions.removeFirst(), from: client)
      }
      data?.serve(client, at: now)
      send(client.poll(at: now), from: client)
    }
  }

  private func note(_ bytes: [UInt8], to destination: SocketAddress) {
    guard case .rtp = PacketKind(bytes.span), let header = try? RTPHeader.parseProtected(bytes.span) else {
      return
    }
    protectedCount += 1
    let source = "\(destination) \(header.ssrc.rawValue)"
    let number = unwrappers[source, default: SequenceUnwrapper()].unwrap(header.sequenceNumber)
    let key = "\(source) \(number.rawValue)"
    if let before = protected[key], before != bytes { reuses += 1 }
    protected[key] = bytes
  }

  /// Lets time pass until `deadline`, or until `condition` holds.
  @discardableResult
  func run(for time: TimeDelta, until condition: () -> Bool = { false }) -> Bool {
    let end = now + time
    while !condition() {
      let deadlines =
        [network.nextArrival, worker.nextDeadline, data?.nextDeadline] + clients.map(\.nextDeadline)
      guard let next = deadlines.compactMap({ $0 }).min(), next <= end else {
        now = end
        return condition()
      }
      now = max(now, next)
      data?.advance(to: now)
      step()
      deliverReports()
    }
    return true
  }

  private func step() {
    while let datagram = network.poll(at: now) {
      if datagram.destination == Self.server {
        receive(datagram.bytes, from: datagram.source)
      } else if let client = clients.first(where: { $0.address == datagram.destination }) {
        client.receive(datagram.bytes, from: datagram.source, at: now)
      }
    }
    if let deadline = worker.nextDeadline, deadline <= now {
      worker.handleTimeout(at: now)
      drain()
    }
    for client in clients {
      if let deadline = client.nextDeadline, deadline <= now { client.handleTimeout(at: now) }
    }
    react()
  }

  /// Both sides of a transport are up.
  func connect(_ client: ScriptedClient) -> Bool {
    run(for: .seconds(5)) { client.srtp != nil }
  }
}

extension ScriptedTrack {
  enum Kind { case audio, video }
}

/// Alice publishes a microphone and a camera, Bob receives them; both are connected.
func call(_ world: World, rtx: Bool = true) throws -> (alice: ScriptedClient, bob: ScriptedClient) {
  let alice = try world.client("alice")
  alice.offersRTX = rtx
  alice.tracks = [world.track("mic", .audio), world.track("cam", .video)]
  world.join(alice)
  try #require(world.connect(alice))
  let bob = try world.client("bob")
  bob.offersRTX = rtx
  world.join(bob)
  try #require(world.connect(bob))
  return (alice, bob)
}
