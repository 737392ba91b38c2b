public import PalbeDTLS
import PalbeICE
import PalbeLiveKit
import PalbeRTP
public import PalbeUnits
import PalbeWire

/// A part of the SFU: rooms with everything in them, owned by one thread and one UDP socket.
///
/// ## Overview
///
///     worker.handle(.join(connection, details), at: now)              // signaling in
///     worker.receive(&datagram, count: count, from: remote, at: now)  // media in
///     worker.handleTimeout(at: now)                                   // when `nextDeadline` has come
///
///     // after each of them, or after several datagrams while `hasRoom`:
///     while let transmit = worker.pollTransmit(into: &buffer, at: now) { socket.send(…) }
///     while let event = worker.pollEvent() { … }
///
/// ## Function
///
/// It speaks LiveKit's protocol with one peer connection: the client offers, the worker answers. It is ICE lite and the
/// DTLS server. It never holds a frame key, reads of a video frame nothing but what describes it (`MediaPacket`),
/// and never makes a frame of its own.
///
/// ## Implementation
///
/// Received media packets stay in `media` and are written once per subscriber by `pollTransmit`, into the buffer that the
/// caller lends, with no allocation. Several datagrams may be received before the first poll: what they carry is then written
/// subscriber by subscriber. Each call may be made from another thread than the one before, but no two at once.
@safe public struct SFUWorker: ~Copyable, @unchecked Sendable {
  private let context: WorkerContext
  private let directory = Directory()
  private let signals: SignalPlane
  private var media = MediaBatch()
  /// For repairs.
  private var repaired = MediaPacket()
  /// Checks from addresses that nobody has proven to be a participant's.
  private var strangers: AddressRateLimiter

  /// A worker without rooms.
  ///
  /// - Parameters:
  ///   - identity: the certificate that all its participants see.
  ///   - random: unpredictable outside tests.
  ///   - unixNanoseconds: the wall clock at `now`, since 1970.
  public init(
    configuration: SFUConfiguration, identity: DTLSIdentity, random: RandomSource, now: Instant,
    unixNanoseconds: Int64
  ) {
    context = WorkerContext(
      configuration: configuration, identity: identity,
      clock: WallClock(origin: now, unixNanoseconds: unixNanoseconds), random: random)
    signals = SignalPlane(context: context, directory: directory)
    strangers = AddressRateLimiter(
      perSecond: configuration.strangerRate, burst: 4 * configuration.strangerRate,
      seed: context.random.next())
  }

  /// Takes what the shell has to tell.
  public mutating func handle(_ input: SFUInput, at now: Instant) {
    media.removeAll()
    context.now = now
    switch input {
    case .join(let connection, let details): signals.join(details, on: connection, at: now)
    case .signal(let connection, let bytes): signals.handle(bytes, on: connection, at: now)
    case .closed(let connection): signals.closed(connection, at: now)
    case .disconnected(let address): directory.release(address, at: now)
    case .command(let id, let command):
      if let answer = signals.carryOut(command, as: id, at: now) {
        context.events.append(.answer(id, answer))
      }
    case .sctp(let report): signals.take(report, at: now)
    case .drain: context.isDraining = true
    case .reconfigure(let configuration): context.reconfigure(configuration)
    case .shutDown: signals.shutDown(at: now)
    }
  }

  /// False when as many packets wait to be forwarded as can.
  public var hasRoom: Bool { !media.isFull }

  /// Takes one datagram, which is decrypted where it lies. Media that waits is dropped when its polling has begun and was not
  /// brought to its end, or when there is no room.
  @_lifetime(datagram: copy datagram)
  public mutating func receive(
    _ datagram: inout MutableSpan<UInt8>, count: Int, from remote: SocketAddress, at now: Instant
  ) {
    if media.isStarted || media.isFull { media.removeAll() }
    context.now = now
    media.beginDatagram()
    guard count > 0, count <= min(datagram.count, MediaPacket.limit) else { return }
    let kind = PacketKind(datagram.span.extracting(0..<count))
    if case .stun = kind {
      return receiveCheck(datagram.span.extracting(0..<count), from: remote, at: now)
    }
    // Only a check can make an address a participant's.
    guard let endpoint = directory.endpoint(at: remote) else { return }
    let transport = endpoint.transport
    guard context.admits(kind, over: transport, at: now) else { return }
    switch kind {
    case .dtls:
      receiveHandshake(datagram.span.extracting(0..<count), from: remote, for: endpoint, at: now)
    case .rtp:
      guard let length = transport.unprotectRTP(&datagram, count: count),
        // Nobody sends media where it receives, in a session of two connections.
        transport === endpoint.participant.transport
      else { return }
      media.receive(datagram.span.extracting(0..<length), from: endpoint.participant, at: now)
    case .rtcp:
      guard let length = transport.unprotectRTCP(&datagram, count: count) else { return }
      endpoint.participant.receiveControl(datagram.span.extracting(0..<length), over: transport, at: now)
    case .stun, .turnChannel, .unknown: return
    }
  }

  /// Writes the next datagram to send; nil when there is none. `buffer` has 1,500 bytes or more.
  @_lifetime(buffer: copy buffer)
  public mutating func pollTransmit(into buffer: inout MutableSpan<UInt8>, at now: Instant) -> Transmit? {
    if let transmit = pollForward(into: &buffer, at: now) { return transmit }
    if let transmit = context.datagrams.pop(into: &buffer) { return transmit }
    while let repair = context.repairs.pop() {
      guard let count = repair.track.repair(repair.sequence, using: &repaired, into: &buffer, at: now),
        let destination = repair.track.destination
      else { continue }
      context.totals.repairsSent.count(packetOf: count)
      return Transmit(destination: destination, count: count)
    }
    return context.pollPaced(using: &repaired, into: &buffer, at: now)
  }

  /// What is here now and what happened so far. It looks at every participant and stream: for now and then.
  public func statistics() -> WorkerStatistics { WorkerStatistics(context.totals, directory) }

  /// Participants in all rooms.
  public var participantCount: Int { directory.participants.count }

  /// The next thing to tell the shell.
  public mutating func pollEvent() -> SFUEvent? { context.events.pop() }

  /// When to call `handleTimeout`; nil while nothing waits.
  public var nextDeadline: Instant? {
    context.nextDeadline == .distantFuture ? nil : context.nextDeadline
  }

  /// Does what is due.
  public mutating func handleTimeout(at now: Instant) {
    guard now >= context.nextDeadline else { return }
    media.removeAll()
    context.now = now
    context.restartDeadlines(at: now)
    signals.expireCalls(at: now)
    context.tellChangedRooms(at: now)
    directory.forEachOver(at: now) { signals.end($0, at: now) }
    directory.forEachDue(at: now) { participant in
      if let expiry = participant.handleTimeout(at: now) {
        signals.handle(expiry, of: participant, at: now)
      }
      guard !participant.isClosed else { return }
      for transport in participant.transports { sendChecks(over: transport, of: participant, at: now) }
    }
  }

  /// True for an address that a participant's check came from; what else connects may be closed.
  public func isServed(_ remote: SocketAddress) -> Bool { directory.endpoint(at: remote) != nil }

  /// Shows the RTP packet of the last `receive`, as SRTP gave it out: all that the SFU ever sees of it. Nothing happens when
  /// that datagram was no RTP packet, or not a participant's.
  public func withReceivedMedia(_ body: (Span<UInt8>) -> Void) {
    media.withReceived(body)
  }

  /// Everyone on it, for tests.
  var participants: [Participant] { directory.participants }

  // MARK: Parts

  @_lifetime(buffer: copy buffer)
  private mutating func pollForward(
    into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> Transmit? {
    while let (index, downTrack) = media.next() {
      guard let count = downTrack.forward(media[index], into: &buffer, at: now),
        let destination = downTrack.destination
      else { continue }
      return Transmit(destination: destination, count: count)
    }
    return nil
  }

  private mutating func receiveCheck(
    _ datagram: Span<UInt8>, from remote: SocketAddress, at now: Instant
  ) {
    if let id = ICELiteAgent.answeredTransaction(of: datagram) {
      guard let endpoint = directory.endpoint(check: id) else { return }
      return receiveAnswer(datagram, from: remote, for: endpoint, at: now)
    }
    guard let fragment = ICELiteAgent.localUsernameFragment(of: datagram),
      let endpoint = directory.endpoint(fragment: fragment)
    else { return }
    let transport = endpoint.transport
    let isKnown = directory.endpoint(at: remote)?.transport === transport
    guard
      isKnown ? context.admits(.stun, over: transport, at: now) : strangers.take(from: remote, at: now)
    else { return }
    guard
      case .answered = transport.handleCheck(datagram, from: remote, at: now, answer: &context.compound)
    else { return }
    sendChecks(over: transport, of: endpoint.participant, at: now)
    context.sendCompound(to: remote)
    guard transport.ice.isHeard(remote, at: now) else { return }
    directory.claim(remote, for: endpoint, at: now)
    if let deadline = transport.ice.consentDeadline { endpoint.participant.wake(at: deadline) }
  }

  /// Sends the transport's own checks that are due.
  private func sendChecks(over transport: PeerTransport, of participant: Participant, at now: Instant) {
    while let (destination, id) = transport.pollCheck(
      at: now, using: &context.random, into: &context.check)
    {
      directory.insert(check: id, Directory.Endpoint(participant: participant, transport: transport))
      context.sendCheck(to: destination)
    }
    if let due = transport.ice.nextCheckAt { participant.wake(at: due) }
  }

  /// An address answers a check of ours: it has proven itself.
  private mutating func receiveAnswer(
    _ datagram: Span<UInt8>, from remote: SocketAddress, for endpoint: Directory.Endpoint, at now: Instant
  ) {
    let transport = endpoint.transport
    guard context.admits(.stun, over: transport, at: now),
      case .proven = transport.handleCheck(datagram, from: remote, at: now, answer: &context.compound)
    else { return }
    directory.claim(remote, for: endpoint, at: now)
    endpoint.participant.flushHandshake()
    if let deadline = transport.ice.consentDeadline { endpoint.participant.wake(at: deadline) }
  }

  private func receiveHandshake(
    _ datagram: Span<UInt8>, from remote: SocketAddress, for endpoint: Directory.Endpoint, at now: Instant
  ) {
    let participant = endpoint.participant
    let progress = endpoint.transport.handleDTLS(datagram, from: remote, at: now)
    participant.flushHandshake()
    switch progress {
    case .none:
      if let deadline = endpoint.transport.handshakeDeadline { participant.wake(at: deadline) }
      signals.receiveData(over: endpoint.transport)
    case .connected:
      participant.startMedia(over: endpoint.transport, at: now)
      signals.openData(over: endpoint.transport, of: participant)
      signals.receiveData(over: endpoint.transport)
      guard endpoint.transport === participant.primaryTransport else { return }
      participant.state = .active
      context.totals.connected(after: now - participant.joinedAt)
      participant.room.broadcastInfo(of: participant)
      context.notify(.participantJoined, participant.room, participant)
      context.log(.info, "participant's transport is up", participant.logFields)
    case .failed: signals.remove(participant, .transportFailed, at: now)
    case .closed:
      // Of two connections only both together are the session.
      guard endpoint.transport === participant.primaryTransport else { return }
      signals.remove(participant, .transportClosed, at: now)
    }
  }
}
