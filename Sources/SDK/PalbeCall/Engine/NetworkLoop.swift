import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeFrameEncryption
import PalbeUnits
import PalbeWebServer
import Synchronization

/// The network thread: owns the session, its sockets and the signaling link, and starts and ends the other threads.
///
/// One turn: take messages, take datagrams, do what is due, then hand out all that the session has: events, frames, signals
/// and datagrams. It sleeps until the session's next deadline, a datagram or a message.
struct NetworkLoop: ~Copyable {
  private static let mailToken: UInt64 = 0
  private static let socketToken: UInt64 = 1
  /// Signals that wait for the link to open. More than a session ever says before it hears anything.
  private static let pendingLimit = 1_024

  private let threads: CallThreads
  private var session: CallSession
  private let socket: UDPSocket
  private let streams = StreamLinks()
  private var poller: Poller
  private var incoming = ReceiveBatch(capacity: 64)
  private var outgoing = SendBatch(capacity: 64)
  private var isWaitingToSend = false
  private var signaling: WebSocketClient?
  private var pendingSignals: [[UInt8]] = []
  private var messages: [CallThreads.NetworkMessage] = []
  private var audioTracks: Set<RemoteTrackID> = []
  private var isOver = false

  /// Runs a call from its first to its last moment; the body of the network thread.
  static func run(
    _ threads: CallThreads, boundTo address: SocketAddress,
    keys: [(key: [UInt8], sending: PalbeFrameEncryption.SendSwitch)]
  ) {
    var statistics: CallStatistics?
    do throws(CallEngineError) {
      var loop = try NetworkLoop(threads, boundTo: address)
      try loop.prepare(keys)
      let workers = try startWorkers(threads)
      threads.joinRequest.set(.success(loop.session.joinRequest))
      loop.run()
      statistics = loop.session.statistics
      endWorkers(workers, threads)
    } catch {
      threads.joinRequest.set(.failure(error))
      threads.connected.set(.failure(error))
    }
    // What still waits is answered; nothing comes after.
    threads.network.close()
    var rest: [CallThreads.NetworkMessage] = []
    threads.network.drain(into: &rest)
    for message in rest {
      switch message {
      case .installKey(_, _, let reply), .change(_, let reply): reply.set(.failure(.notConnected))
      case .statistics(let reply): reply.set(statistics)
      case .signalingOpened(let link): link.close()
      default: break
      }
    }
    threads.connected.set(.failure(.cancelled))
    threads.finished.set(statistics)
  }

  private init(_ threads: CallThreads, boundTo address: SocketAddress) throws(CallEngineError) {
    let socket = try Self.openSocket(at: address)
    let poller = try Self.makePoller([
      (threads.network.wakeUp.fileDescriptor, Self.mailToken), (socket.fileDescriptor, Self.socketToken),
    ])
    let session = try Self.makeSession(threads.configuration, sendingFrom: socket.localAddress)
    self.threads = threads
    self.session = session
    self.socket = socket
    self.poller = poller
  }

  /// What was set before there was a session.
  private mutating func prepare(
    _ keys: [(key: [UInt8], sending: PalbeFrameEncryption.SendSwitch)]
  ) throws(CallEngineError) {
    let now = MonotonicClock.now()
    for (key, sending) in keys {
      do throws(FrameKeyError) { try session.installKey(key.span, sending: sending, at: now) } catch {
        throw .key(error)
      }
    }
    if let key = threads.configuration.liveKitKey { try change(.set(key, index: 0, identity: nil)) }
    for track in threads.configuration.publishes where threads.switches.isMuted(track) {
      session.setMuted(track, true, at: now)
    }
  }

  private static func openSocket(at address: SocketAddress) throws(CallEngineError) -> UDPSocket {
    do { return try UDPSocket(binding: address) } catch {
      throw .system("cannot open a UDP socket: \(error)")
    }
  }

  private static func makePoller(_ watched: [(Int32, UInt64)]) throws(CallEngineError) -> Poller {
    do {
      let poller = try Poller()
      for (descriptor, token) in watched { try poller.add(descriptor, token: token) }
      return poller
    } catch { throw .system("cannot wait for packets: \(error)") }
  }

  private static func makeSession(
    _ configuration: CallEngine.Configuration, sendingFrom address: SocketAddress
  ) throws(CallEngineError) -> CallSession {
    guard let claims = TokenClaims(token: configuration.token) else { throw .malformedToken }
    var call = CallConfiguration(
      room: claims.room, identity: claims.identity, publishes: configuration.publishes,
      encryption: configuration.encryption)
    call.clientVersion = Release.version
    if let camera = configuration.videoSource {
      call.videoWidth = camera.width
      call.videoHeight = camera.height
    }
    var random = SystemRandom.source()
    let wallClock = WallClock.unixNanoseconds()
    do {
      let identity = try DTLSIdentity(nowUnix: wallClock / 1_000_000_000, using: &random)
      let now = MonotonicClock.now()
      return try CallSession(
        configuration: call, identity: identity, localAddresses: [address], keys: configuration.keys,
        random: random, now: now, unixNanoseconds: wallClock)
    } catch CallSetupError.keys(let error) {
      throw .key(error)
    } catch {
      throw .system("cannot set the call up: \(error)")
    }
  }

  private static func startWorkers(_ threads: CallThreads) throws(CallEngineError) -> [WorkerThread] {
    var workers: [WorkerThread] = []
    do throws(CallEngineError) {
      workers.append(try start("palbe-sound") { SoundLoop.run(threads) })
      if threads.configuration.videoSource != nil {
        workers.append(try start("palbe-camera") { CameraLoop.run(threads) })
      }
      if threads.hooks.onDecodedVideo != nil {
        workers.append(try start("palbe-pictures") { PictureLoop.run(threads) })
      }
    } catch {
      endWorkers(workers, threads)
      throw error
    }
    return workers
  }

  private static func start(
    _ name: String, _ body: @escaping @Sendable () -> Void
  ) throws(CallEngineError) -> WorkerThread {
    do { return try WorkerThread(name: name, body: body) } catch {
      throw .system("cannot start a thread: \(error)")
    }
  }

  private static func endWorkers(_ workers: [WorkerThread], _ threads: CallThreads) {
    threads.workersEnd.store(true, ordering: .releasing)
    threads.sound.close()
    threads.camera.close()
    threads.pictures.close()
    for worker in workers { worker.join() }
  }

  // MARK: A turn

  private mutating func run() {
    flush(at: MonotonicClock.now())
    while !isOver {
      let count: Int
      do { count = try poller.wait(until: session.nextDeadline) } catch {
        leave(at: MonotonicClock.now())
        break
      }
      let now = MonotonicClock.now()
      for index in 0..<count {
        let event = poller[index]
        switch event.token {
        case Self.mailToken: takeMessages(at: now)
        case Self.socketToken:
          if event.isReadable { takeDatagrams(at: now) }
          if event.isWritable { transmit(at: now) }
        default:
          if event.isWritable { streams.resume(event.token, in: poller) }
          if event.isReadable { Self.hand(streams, event.token, to: &session, at: now) }
        }
      }
      if let deadline = session.nextDeadline, deadline <= now { session.handleTimeout(at: now) }
      flush(at: now)
    }
    signaling?.close()
  }

  private mutating func takeDatagrams(at now: Instant) {
    // A flood must not keep the turn from ending.
    for _ in 0..<8 {
      // A failed socket is noticed by the session's own time-outs.
      guard let received = try? socket.receive(into: &incoming) else { return }
      Self.hand(&incoming, to: &session, at: now)
      guard received == incoming.capacity else { return }
      flush(at: now)
    }
  }

  private static func hand(_ batch: inout ReceiveBatch, to session: inout CallSession, at now: Instant) {
    for index in 0..<batch.count {
      let (count, source) = (batch.byteCount(index), batch.source(index))
      guard count > 0 else { continue }
      var slot = batch.slot(index)
      session.receive(&slot, count: count, from: source, at: now)
    }
  }

  private static func hand(
    _ streams: StreamLinks, _ token: UInt64, to session: inout CallSession, at now: Instant
  ) {
    streams.receive(token) { session.receive(&$0, count: $0.count, from: $1, at: now) }
  }

  /// Hands out what the session has.
  private mutating func flush(at now: Instant) {
    if threads.lostSignal.exchange(false, ordering: .relaxed) { session.signalingClosed(at: now) }
    transmit(at: now)
    while let address = streams.pollEnded() { session.disconnected(from: address, at: now) }
    while let signal = session.pollSignal() { send(signal) }
    while let frame = session.pollVideoFrame(at: now) { deliver(frame, at: now) }
    while let event = session.pollEvent() { handle(event) }
    // Events may have made more: a subscription asks for its first key frame.
    transmit(at: now)
  }

  private mutating func transmit(at now: Instant) {
    while true {
      Self.fill(&outgoing, or: streams, in: poller, from: &session, at: now)
      guard !outgoing.isEmpty else { return waitToSend(false) }
      let wasFull = outgoing.isFull
      guard socket.send(&outgoing) else { return waitToSend(true) }
      if !wasFull { return waitToSend(false) }
    }
  }

  private static func fill(
    _ batch: inout SendBatch, or streams: StreamLinks, in poller: borrowing Poller,
    from session: inout CallSession, at now: Instant
  ) {
    while !batch.isFull {
      var slot = batch.nextSlot()
      guard let transmit = session.pollTransmit(into: &slot, at: now) else { return }
      if transmit.destination.transport == .tcp {
        streams.send(slot.span.extracting(0..<transmit.count), to: transmit.destination, in: poller, at: now)
      } else {
        batch.commit(byteCount: transmit.count, to: transmit.destination)
      }
    }
  }

  private mutating func waitToSend(_ waits: Bool) {
    guard waits != isWaitingToSend else { return }
    isWaitingToSend = waits
    try? poller.modify(
      socket.fileDescriptor, token: Self.socketToken, interest: waits ? [.readable, .writable] : .readable)
  }

  private mutating func send(_ signal: [UInt8]) {
    if let signaling {
      signaling.send(binary: signal)
    } else if pendingSignals.count < Self.pendingLimit {
      pendingSignals.append(signal)
    }
  }

  private mutating func deliver(_ frame: ReceivedVideoFrame, at now: Instant) {
    guard threads.hooks.onDecodedVideo != nil else { return }
    // A decoder that has fallen so far behind goes on at the next key frame.
    if !threads.pictures.send(.frame(frame)) { session.decodingFailed(frame.track, at: now) }
  }

  private mutating func handle(_ event: CallEvent) {
    switch event {
    case .connected:
      threads.sound.send(.begin)
      threads.camera.send(.begin)
      threads.connected.set(.success(()))
    case .disconnected(let reason):
      guard !isOver else { return }
      isOver = true
      threads.connected.set(.failure(.ended(reason)))
    case .trackSubscribed(let track, _, .audio, _):
      audioTracks.insert(track)
      threads.sound.send(.trackAdded(track))
    case .trackUnsubscribed(let track):
      if audioTracks.remove(track) != nil {
        threads.sound.send(.trackRemoved(track))
      } else {
        threads.pictures.send(.trackRemoved(track))
      }
    case .keyFrameRequested(.camera): threads.camera.send(.keyFrameNeeded)
    case .mutedByServer(let track, let muted):
      threads.switches.set(track, muted)
      if !muted, track == .camera { threads.camera.send(.keyFrameNeeded) }
    default: break
    }
    threads.hooks.onEvent?(event)
  }

  // MARK: Messages

  private mutating func takeMessages(at now: Instant) {
    threads.network.drain(into: &messages)
    // Taken out for the loop: handling needs all of `self`.
    var taken: [CallThreads.NetworkMessage] = []
    swap(&taken, &messages)
    for message in taken where !isOver { handle(message, at: now) }
    taken.removeAll(keepingCapacity: true)
    swap(&taken, &messages)
  }

  private mutating func handle(_ message: CallThreads.NetworkMessage, at now: Instant) {
    switch message {
    case .signal(let bytes): session.handleSignal(bytes.span, at: now)
    case .signalingOpened(let link):
      signaling = link
      threads.hasLink.store(true, ordering: .releasing)
      for signal in pendingSignals { link.send(binary: signal) }
      pendingSignals = []
    case .signalingClosed: session.signalingClosed(at: now)
    case .frame(let track, let bytes, let timestamp):
      do throws(SendError) {
        try session.send(bytes.span, on: track, timestamp: timestamp, at: now)
        // On its way before the next message: a frame must not wait for the one behind it.
        transmit(at: now)
      } catch {
        // Whatever comes next refers to a frame that nobody has.
        if track == .camera, error != .notPublished { threads.camera.send(.keyFrameNeeded) }
      }
    case .pullAudio(let tracks):
      let pulled = tracks.filter(audioTracks.contains).map { ($0, session.pullAudio($0, at: now)) }
      threads.sound.send(.pulled(pulled))
    case .pictureLost(let track): session.decodingFailed(track, at: now)
    case .installKey(let key, let sending, let reply):
      do throws(FrameKeyError) {
        try session.installKey(key.span, sending: sending, at: now)
        reply.set(.success(()))
      } catch {
        reply.set(.failure(.key(error)))
      }
    case .confirmSendKey: session.confirmSendKey(at: now)
    case .change(let change, let reply):
      do throws(CallEngineError) {
        try self.change(change)
        reply.set(.success(()))
      } catch {
        reply.set(.failure(error))
      }
    case .setMuted(let track, let muted): session.setMuted(track, muted, at: now)
    case .statistics(let reply): reply.set(session.statistics)
    case .leave: leave(at: now)
    }
  }

  private mutating func change(_ change: LiveKitKeyChange) throws(CallEngineError) {
    do throws(FrameKeyError) {
      switch change {
      case .set(let key, let index, let identity):
        try session.setLiveKitKey(key.copy(), index: index, identity: identity)
      case .ratchet(let index): try session.ratchetLiveKitKey(index: index)
      case .send(let index): session.setLiveKitSendIndex(index)
      }
    } catch { throw .key(error) }
  }

  private mutating func leave(at now: Instant) {
    session.leave(at: now)
    flush(at: now)
    guard !isOver else { return }
    isOver = true
    threads.hooks.onEvent?(.disconnected(.left))
  }
}
