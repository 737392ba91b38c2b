import PalbeCallCore
import PalbeDTLS
import PalbeFrameEncryption
import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeRTP
import PalbeSFUCore
import PalbeUnits
import PalbeWire

/// Clients and an SFU over a seeded network, in virtual time.
final class World {
  static let epoch: Int64 = 1_700_000_000_000_000_000

  private struct Signal {
    var due: Instant
    var party: Int
    /// Nil: the socket closes.
    var bytes: [UInt8]?
    var isToServer: Bool
  }

  let seed: UInt64
  var now = Instant(nanoseconds: 1_000_000_000)
  var network: NetworkSimulator
  var worker: SFUWorker
  var parties: [Party] = []
  let server = SocketAddress(ipv4: 10, 0, 0, 1, port: 7882)
  /// One way on the WebSocket, which loses nothing.
  var signalDelay = TimeDelta.milliseconds(2)
  var isSignalingCut = false
  /// How often a deadline was not met by meeting it: must stay zero.
  var spins = 0
  var uniqueness = Uniqueness()
  /// Gets every RTP packet as the SFU sees it.
  var onReceivedMedia: (Span<UInt8>) -> Void = { _ in }
  private var signals: [Signal] = []
  private var random: RandomSource
  private let clientIdentity: DTLSIdentity

  init(seed: UInt64, link: Link = Link(delay: .milliseconds(2))) throws {
    self.seed = seed
    var random = RandomSource(seed: seed)
    network = NetworkSimulator(seed: random.next(), link: link)
    let identity = try DTLSIdentity(nowUnix: World.epoch / 1_000_000_000, using: &random)
    clientIdentity = try DTLSIdentity(nowUnix: World.epoch / 1_000_000_000, using: &random)
    worker = SFUWorker(
      configuration: SFUConfiguration(candidates: [server]), identity: identity,
      random: RandomSource(seed: random.next()), now: now, unixNanoseconds: World.epoch + now.nanoseconds)
    self.random = random
  }

  /// Frames that the parties' sessions say they sealed.
  var sealedFrames: Int { parties.reduce(0) { $0 + Int($1.session.statistics.sealedFrames) } }

  // MARK: Acting

  /// A party whose WebSocket is accepted `signalDelay` from now.
  @discardableResult
  func join(
    _ identity: String, publishes: Set<LocalTrack> = [.microphone, .camera],
    encryption: CallEncryption = .sframe, key: [UInt8]? = nil, captures: Bool = true,
    configure: (inout CallConfiguration) -> Void = { _ in }
  ) throws -> Party {
    var configuration = CallConfiguration(
      room: "room", identity: identity, publishes: publishes, encryption: encryption)
    configure(&configuration)
    let index = parties.count
    let party = try Party(
      configuration, address: SocketAddress(ipv4: 10, 0, 1, UInt8(index + 1), port: 5_000),
      connection: ConnectionID(UInt64(index + 1)), seed: random.next(), dtls: clientIdentity, at: now)
    party.onSealed = { [unowned self] in uniqueness.sealed($1, $0) }
    if let key { try party.session.installKey(key.span, sending: .now, at: now) }
    party.capturesVideo = captures && publishes.contains(.camera)
    party.capturesAudio = captures && publishes.contains(.microphone)
    party.nextPull = now
    parties.append(party)
    signals.append(
      Signal(due: now + signalDelay, party: index, bytes: party.session.joinRequest, isToServer: true))
    return party
  }

  func installKey(_ key: [UInt8], _ sending: SendSwitch, on party: Party) throws {
    try party.session.installKey(key.span, sending: sending, at: now)
    drain(party)
  }

  /// Everything is taken out that a call made.
  func drain(_ party: Party) {
    guard let index = parties.firstIndex(where: { $0 === party }) else { return }
    while let bytes = party.session.pollSignal() {
      party.sentSignals.append(bytes)
      enqueue(Signal(due: now + signalDelay, party: index, bytes: bytes, isToServer: true))
    }
    var buffer = [UInt8](repeating: 0, count: 1_500)
    while true {
      var span = buffer.mutableSpan
      guard let transmit = party.session.pollTransmit(into: &span, at: now) else { break }
      let bytes = Array(buffer[..<transmit.count])
      uniqueness.sent(bytes, by: party.identity)
      network.send(bytes, from: party.address, to: transmit.destination, at: now)
    }
    party.takeEvents(at: now)
  }

  func run(for delta: TimeDelta) { run(until: now + delta) { false } }

  /// Runs until `isDone`, at most for `delta`; false when the time was up.
  @discardableResult
  func run(atMost delta: TimeDelta, until isDone: () -> Bool) -> Bool {
    run(until: now + delta, isDone)
    return isDone()
  }

  private func run(until end: Instant, _ isDone: () -> Bool) {
    while true {
      turn()
      if isDone() { return }
      let next = max(nextTime(), now + .microseconds(1))
      guard next < end else {
        now = end
        turn()
        return
      }
      now = next
    }
  }

  // MARK: The loop

  private func turn() {
    while let index = signals.indices.filter({ signals[$0].due <= now }).min(by: {
      signals[$0].due < signals[$1].due
    }) {
      deliver(signals.remove(at: index))
    }
    while let datagram = network.poll(at: now) { deliver(datagram) }
    if let deadline = worker.nextDeadline, deadline <= now {
      worker.handleTimeout(at: now)
      drainWorker()
    }
    for party in parties where !party.isGone {
      if let deadline = party.session.nextDeadline, deadline <= now {
        party.session.handleTimeout(at: now)
        drain(party)
        if let next = party.session.nextDeadline, next <= now { spins += 1 }
      }
      if party.capturesVideo && party.nextVideo <= now || party.capturesAudio && party.nextAudio <= now {
        party.capture(at: now)
        drain(party)
      }
      if party.nextPull <= now {
        party.nextPull = party.nextPull + .milliseconds(20)
        party.play(at: now)
      }
    }
  }

  private func nextTime() -> Instant {
    var next = Instant.distantFuture
    for signal in signals { next = min(next, signal.due) }
    if let arrival = network.nextArrival { next = min(next, arrival) }
    if let deadline = worker.nextDeadline { next = min(next, deadline) }
    for party in parties where !party.isGone {
      if let deadline = party.session.nextDeadline { next = min(next, deadline) }
      if party.capturesVideo { next = min(next, party.nextVideo) }
      if party.capturesAudio { next = min(next, party.nextAudio) }
      next = min(next, party.nextPull)
    }
    return next
  }

  private func enqueue(_ signal: Signal) { if !isSignalingCut { signals.append(signal) } }

  private func deliver(_ signal: Signal) {
    let party = parties[signal.party]
    guard signal.isToServer else {
      if let bytes = signal.bytes {
        party.session.handleSignal(bytes.span, at: now)
      } else {
        party.session.signalingClosed(at: now)
      }
      return drain(party)
    }
    guard let bytes = signal.bytes else { return }
    if bytes == party.session.joinRequest {
      guard let wrapped = try? LiveKit.WrappedJoinRequest(serialized: bytes),
        let request = try? LiveKit.JoinRequest(serialized: wrapped.joinRequest)
      else { return }
      let grant = AccessGrant(room: "room", identity: party.identity)
      worker.handle(.join(party.connection, JoinDetails(grant: grant, request: request)), at: now)
    } else {
      worker.handle(.signal(party.connection, bytes), at: now)
    }
    drainWorker()
  }

  private func deliver(_ datagram: Datagram) {
    var bytes = datagram.bytes
    let count = bytes.count
    var span = bytes.mutableSpan
    if datagram.destination == server {
      worker.receive(&span, count: count, from: datagram.source, at: now)
      worker.withReceivedMedia {
        uniqueness.opened($0)
        onReceivedMedia($0)
      }
      drainWorker()
    } else if let party = parties.first(where: { $0.address == datagram.destination }), !party.isGone {
      party.session.receive(&span, count: count, from: datagram.source, at: now)
      drain(party)
    }
  }

  /// Tells the SFU something that no participant said.
  func handle(_ input: SFUInput) {
    worker.handle(input, at: now)
    drainWorker()
  }

  private func drainWorker() {
    var buffer = [UInt8](repeating: 0, count: 1_500)
    while true {
      var span = buffer.mutableSpan
      guard let transmit = worker.pollTransmit(into: &span, at: now) else { break }
      let bytes = Array(buffer[..<transmit.count])
      uniqueness.sent(bytes, by: "server to \(transmit.destination)")
      network.send(bytes, from: server, to: transmit.destination, at: now)
    }
    while let event = worker.pollEvent() {
      switch event {
      case .send(let connection, let bytes):
        enqueue(
          Signal(due: now + signalDelay, party: Int(connection.rawValue) - 1, bytes: bytes, isToServer: false)
        )
      case .close(let connection):
        enqueue(
          Signal(due: now + signalDelay, party: Int(connection.rawValue) - 1, bytes: nil, isToServer: false))
      case .answer, .sctp, .notice, .refreshToken, .log: break
      }
    }
  }
}
