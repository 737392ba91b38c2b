import PalbeDTLS
import PalbeDataChannels
import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeServerObservation
import PalbeUnits

/// What a worker is made of, before its thread runs.
struct WorkerSeed: ~Copyable, Sendable {
  var index: Int
  var sockets: Sockets
  var poller: Poller
  var inbox: WorkerInbox
  var data: SCTPPort
  var configuration: SFUConfiguration
  var identity: DTLSIdentity
  var auditFile: AuditFile?
  var log: ServerLog
  /// Renews tokens; nil without keys.
  var minter: TokenMinter?
  /// Is told what webhooks tell.
  var notify: @Sendable (RoomNotice) -> Void = { _ in }
  var usesSegmentation = true
  /// Of ICE-TCP.
  var connectionsPerAddress = 1_024
  /// Is told why no connection for media can be taken for a moment.
  var whenPaused: @Sendable (String) -> Void = { _ in }
}

/// One thread's share of the SFU: a UDP socket, a core with its rooms, and nothing shared with other workers.
///
/// ## Overview
///
/// A turn waits for datagrams, messages or the core's next deadline; handles what came; lets the core write
/// what is to be sent right into the batch; hands the batch to the kernel. A packet that is only forwarded
/// costs no allocation.
struct MediaWorker: ~Copyable {
  /// Datagrams received in one turn before messages and timers get theirs.
  private static let receiveRounds = 4
  /// Signal messages are handled for this long before media gets its turn.
  private static let longestDeafness = TimeDelta.milliseconds(2)
  /// A worker without work turns this often, for the health check.
  private static let heartbeat = TimeDelta.seconds(1)

  private enum Token: UInt64 { case socket, inbox, data, listener }

  private var core: SFUWorker
  private let index: Int
  private let sockets: Sockets
  private let streams: StreamConnections?
  private var poller: Poller
  private let inbox: WorkerInbox
  private let data: SCTPPort
  private var reports: [SCTPReport] = []
  /// What the thread that owns SCTP did not take.
  private var refusals: [SCTPReport] = []
  private let audit: AuditBuffer?
  private let log: ServerLog
  private var incoming = ReceiveBatch(capacity: 64)
  private var outgoing: SendBatch
  private var connections: [ConnectionID: SignalingConnection] = [:]
  private var minter: TokenMinter?
  private let notify: @Sendable (RoomNotice) -> Void
  private let whenPaused: @Sendable (String) -> Void
  /// Who waits for what came of a command.
  private var replies: [CommandID: @Sendable (RoomAnswer) -> Void] = [:]
  private var commandCount: UInt64 = 0
  private var signals: [WorkerInbox.Signal] = []
  private var controls: [WorkerInbox.Control] = []
  /// The kernel's buffer is full and the socket is watched until it is not.
  private var awaitsRoom = false
  /// Datagrams lost because of that, and when the log was last told.
  private var dropped = 0
  private var reportedAt = Instant.zero
  private var budget = LogBudget()
  private(set) var isStopped = false

  init(_ seed: consuming WorkerSeed) throws(SystemError) {
    index = seed.index
    inbox = seed.inbox
    data = seed.data
    log = seed.log
    minter = seed.minter
    notify = seed.notify
    whenPaused = seed.whenPaused
    outgoing = SendBatch(capacity: 64, segmentation: seed.usesSegmentation)
    audit = seed.auditFile.map { [log = seed.log] in AuditBuffer(file: $0, log: log) }
    core = SFUWorker(
      configuration: seed.configuration, identity: seed.identity, random: SystemRandom.source(),
      now: MonotonicClock.now(), unixNanoseconds: WallClock.unixNanoseconds())
    try seed.poller.add(seed.sockets.udp.fileDescriptor, token: Token.socket.rawValue)
    for descriptor in seed.inbox.fileDescriptors {
      try seed.poller.add(descriptor, token: Token.inbox.rawValue)
    }
    try seed.poller.add(seed.data.reportsDescriptor, token: Token.data.rawValue)
    if let listener = seed.sockets.tcp {
      var limits = StreamConnections.Limits()
      limits.perAddress = seed.connectionsPerAddress
      streams = try StreamConnections(
        listener, limits: limits, token: Token.listener.rawValue, in: seed.poller)
    } else {
      streams = nil
    }
    sockets = seed.sockets
    poller = seed.poller
  }

  /// Turns until it is told to stop.
  mutating func run() {
    while !isStopped {
      do throws(SystemError) { try turn() } catch {
        log.write(.warning, "worker failed", [("worker", "\(index)"), ("reason", error.description)])
        shutDown(at: MonotonicClock.now())
      }
    }
  }

  /// Waits for work and does it.
  mutating func turn() throws(SystemError) {
    try wait()
    var hasMessages = false
    var hasReports = false
    var hasDatagrams = false
    var hasStreams = false
    for event in 0..<readyCount {
      switch Token(rawValue: poller[event].token) {
      case .inbox: hasMessages = true
      case .data: hasReports = true
      case .socket: hasDatagrams = poller[event].isReadable
      case .listener, nil: hasStreams = true
      }
    }
    var now = MonotonicClock.now()
    inbox.markTurn(at: now)
    if hasMessages { try handleMessages(at: now) }
    if hasReports { handleReports(at: now) }
    if hasDatagrams { try receive() }
    if hasStreams { receiveStreams() }
    now = MonotonicClock.now()
    if !isStopped, let deadline = nextDeadline, deadline <= now {
      core.handleTimeout(at: now)
      takeOutput(at: now)
    }
    tendStreams(at: now)
    inbox.setParticipantCount(core.participantCount)
    flush(at: now)
    audit?.flush(ifDueAt: now)
  }

  /// When a timer of the core is due; nil while none is set.
  var nextDeadline: Instant? { core.nextDeadline }

  private var readyCount = 0

  private mutating func wait() throws(SystemError) {
    var deadline = MonotonicClock.now() + Self.heartbeat
    if let next = nextDeadline { deadline = min(deadline, next) }
    if let audit { deadline = min(deadline, audit.deadline) }
    readyCount = try poller.wait(until: deadline)
  }

  // MARK: Messages

  /// Media is not held up by signaling: between two messages the socket is read when that is due.
  private mutating func handleMessages(at start: Instant) throws(SystemError) {
    inbox.take(signals: &signals, controls: &controls)
    var now = start
    var readAt = start
    for index in signals.indices {
      now = index == 0 ? start : MonotonicClock.now()
      if now - readAt >= Self.longestDeafness {
        try receive()
        flush(at: now)
        readAt = now
      }
      switch signals[index] {
      case .join(let connection, let details):
        connections[connection.id] = connection
        core.handle(.join(connection.id, details), at: now)
        // Before the client hears that it is in: a drain that begins now counts it.
        inbox.setParticipantCount(core.participantCount)
      case .signal(let connection, let bytes):
        connection.taken(byteCount: bytes.count)
        core.handle(.signal(connection.id, bytes), at: now)
      }
      takeOutput(at: now)
    }
    signals.removeAll(keepingCapacity: true)
    for index in controls.indices {
      switch controls[index] {
      case .closed(let id):
        connections[id] = nil
        core.handle(.closed(id), at: now)
        takeOutput(at: now)
      case .command(let command, let reply):
        commandCount += 1
        let id = CommandID(commandCount)
        replies[id] = reply
        core.handle(.command(id, command), at: now)
        takeOutput(at: now)
      case .drain: core.handle(.drain, at: now)
      case .reconfigure(let configuration, let minter):
        self.minter = minter
        core.handle(.reconfigure(configuration), at: now)
      case .measure(let reply): reply(core.statistics())
      case .stop: shutDown(at: now)
      }
    }
    controls.removeAll(keepingCapacity: true)
  }

  private mutating func handleReports(at now: Instant) {
    data.takeReports(into: &reports)
    for report in reports {
      core.handle(.sctp(report), at: now)
      takeOutput(at: now)
    }
    reports.removeAll(keepingCapacity: reports.count < 4_096)
  }

  private mutating func shutDown(at now: Instant) {
    guard !isStopped else { return }
    isStopped = true
    inbox.close()
    core.handle(.shutDown, at: now)
    takeOutput(at: now)
    flush(at: now)
    audit?.flush()
  }

  // MARK: Datagrams

  private mutating func receive() throws(SystemError) {
    for _ in 0..<Self.receiveRounds {
      let count = try sockets.udp.receive(into: &incoming)
      let now = MonotonicClock.now()
      for index in 0..<count {
        guard incoming.byteCount(index) > 0 else { continue }
        Self.deliver(index, of: &incoming, to: &core, at: now)
        if let audit { core.withReceivedMedia { audit.record($0, at: now) } }
        if !core.hasRoom { takeOutput(at: now) }
      }
      // Of all at once: one subscriber's packets are then neighbours.
      takeOutput(at: now)
      guard count == incoming.capacity else { return }
      flush(at: now)
    }
  }

  /// A core and a batch come as two arguments because a span of one must not reach into the other.
  private static func deliver(
    _ index: Int, of batch: inout ReceiveBatch, to core: inout SFUWorker, at now: Instant
  ) {
    let byteCount = batch.byteCount(index)
    let source = batch.source(index)
    var datagram = batch.slot(index)
    core.receive(&datagram, count: byteCount, from: source, at: now)
  }

  // MARK: Streams

  /// Serves every TCP connection that is ready once, so that none holds up another.
  private mutating func receiveStreams() {
    let now = MonotonicClock.now()
    for event in 0..<readyCount {
      let ready = poller[event]
      if ready.token == Token.listener.rawValue {
        if let error = streams?.accept(in: poller, at: now) { whenPaused(error.description) }
      } else if ready.token >= StreamConnections.firstToken {
        if ready.isWritable { streams?.resume(ready.token, in: poller, at: now) }
        if ready.isReadable { receiveStream(ready.token, at: now) }
      }
    }
  }

  private mutating func receiveStream(_ token: UInt64, at now: Instant) {
    guard let streams else { return }
    streams.read(token)
    while streams.advance(token) {
      Self.deliver(token, of: streams, to: &core, at: now)
      if let audit { core.withReceivedMedia { audit.record($0, at: now) } }
      takeOutput(at: now)
    }
  }

  private static func deliver(
    _ token: UInt64, of streams: StreamConnections, to core: inout SFUWorker, at now: Instant
  ) {
    streams.withFrame(token) { datagram, source in
      core.receive(&datagram, count: datagram.count, from: source, at: now)
    }
  }

  /// Closes what no participant uses, and tells the core of what has ended.
  private mutating func tendStreams(at now: Instant) {
    guard let streams else { return }
    streams.sweep(in: poller, at: now) { core.isServed($0) }
    for address in streams.ended {
      core.handle(.disconnected(address), at: now)
      takeOutput(at: now)
    }
    streams.forgetEnded()
  }

  // MARK: Output

  /// The core writes into the batch. False when the batch is full before the core is done.
  private static func takeDatagrams(
    from core: inout SFUWorker, into batch: inout SendBatch, or streams: StreamConnections?, at now: Instant
  ) -> Bool {
    while !batch.isFull {
      var slot = batch.nextSlot()
      guard let transmit = core.pollTransmit(into: &slot, at: now) else { return true }
      if transmit.destination.transport == .tcp {
        streams?.send(slot.span.extracting(0..<transmit.count), to: transmit.destination)
        continue
      }
      batch.commit(byteCount: transmit.count, to: transmit.destination)
    }
    return false
  }

  /// Takes what one input has caused: datagrams into the batch, events to their sockets and to the log.
  private mutating func takeOutput(at now: Instant) {
    while !Self.takeDatagrams(from: &core, into: &outgoing, or: streams, at: now) { makeRoom(at: now) }
    while let event = core.pollEvent() {
      switch event {
      case .send(let id, let message): connections[id]?.send(message)
      case .close(let id): connections[id]?.close()
      case .answer(let id, let answer): replies.removeValue(forKey: id)?(answer)
      case .notice(let notice): notify(notice)
      case .refreshToken(let id, let grant): refreshToken(for: grant, on: id)
      case .log(let record): write(record, at: now)
      case .sctp(let command): data.send(command) { refusals.append($0) }
      }
    }
    if !refusals.isEmpty { takeRefusals(at: now) }
  }

  /// Each takes a participant out, so this ends.
  private mutating func takeRefusals(at now: Instant) {
    let taken = refusals
    refusals = []
    for refusal in taken { core.handle(.sctp(refusal), at: now) }
    takeOutput(at: now)
  }

  private func refreshToken(for grant: AccessGrant, on id: ConnectionID) {
    guard let token = minter?.token(for: grant, now: WallClock.unixSeconds) else { return }
    connections[id]?.send(LiveKit.SignalResponse(.refreshToken(token)).serialized())
  }

  private mutating func write(_ record: SFULogRecord, at now: Instant) {
    switch budget.take(at: now) {
    case .suppress: return
    case .write: break
    case .writeAfter(let count):
      log.write(.warning, "log lines suppressed", [("count", "\(count)"), ("worker", "\(index)")])
    }
    log.write(record, worker: index)
  }

  /// Hands the batch to the kernel; what does not fit waits until the socket has room.
  private mutating func flush(at now: Instant) {
    streams?.flush(in: poller, at: now)
    let isDone = outgoing.isEmpty || sockets.udp.send(&outgoing)
    guard isDone == awaitsRoom else { return }
    awaitsRoom = !isDone
    do throws(SystemError) {
      try poller.modify(
        sockets.udp.fileDescriptor, token: Token.socket.rawValue,
        interest: awaitsRoom ? [.readable, .writable] : .readable)
    } catch {
      log.write(.warning, "socket not watched", [("worker", "\(index)"), ("reason", error.description)])
    }
  }

  /// The batch is full: sends it. When the kernel takes no more, the packets are lost here instead of on the
  /// way; a late one is worth less than the next.
  private mutating func makeRoom(at now: Instant) {
    if sockets.udp.send(&outgoing) { return }
    dropped += outgoing.count
    inbox.addDropped(outgoing.count)
    outgoing.removeAll()
    guard now - reportedAt >= .seconds(1) else { return }
    reportedAt = now
    log.write(.warning, "send buffer full", [("worker", "\(index)"), ("dropped", "\(dropped)")])
    dropped = 0
  }
}
