package import PalbeCallCore
import PalbeEventLoop
package import PalbeFrameEncryption
import PalbeUnits
import PalbeWebServer
import Synchronization

/// A call on real sockets, threads and codecs around a `CallSession`.
///
///     var configuration = CallEngine.Configuration(edgeURL: url, token: token, encryption: .sframe)
///     configuration.audioSource = source
///     configuration.firstKey = key
///     let engine = CallEngine(configuration, hooks: hooks)
///     try await engine.start()                 // media flows
///     …
///     await engine.stop()
///
/// `idle ──start──▶ preparing ──▶ running ──▶ ended`, and from each of the first three `──stop──▶ ended`.
package final class CallEngine: Sendable {
  private enum Phase: Sendable {
    case idle
    case preparing
    case running(CallThreads, SignalingHandler)
    case ended(CallStatistics?)
  }

  private let configuration: Configuration
  private let hooks: Hooks
  private let phase = Mutex(Phase.idle)
  private let pendingKeys = Mutex(PendingKeys())
  private let switches = MuteSwitches()

  /// An engine that has not begun: no thread and no socket.
  package init(_ configuration: Configuration, hooks: Hooks = Hooks()) {
    self.configuration = configuration
    self.hooks = hooks
  }

  deinit {
    if case .running(let threads, _) = phase.withLock({ $0 }) { threads.leave() }
  }

  /// Joins the room and returns when media flows. After a failure nothing is left running.
  package func start() async throws(CallEngineError) {
    let isFirst = phase.withLock { phase in
      guard case .idle = phase else { return false }
      phase = .preparing
      return true
    }
    guard isFirst else { throw .alreadyStarted }
    do throws(CallEngineError) {
      try await join()
    } catch {
      await stop()
      throw error
    }
  }

  private func join() async throws(CallEngineError) {
    guard let edge = EdgeURL(configuration.edgeURL) else { throw .malformedURL(configuration.edgeURL) }
    guard TokenClaims(token: configuration.token) != nil else { throw .malformedToken }
    if let key = configuration.firstKey { try await installKey(key, sending: .now) }
    let address = try await localAddress(toward: edge)
    let threads: CallThreads
    do { threads = try CallThreads(configuration: configuration, hooks: hooks, switches: switches) } catch {
      throw .system("cannot open a mailbox: \(error)")
    }
    let handler = SignalingHandler(threads)
    let mayRun = phase.withLock { phase in
      guard case .preparing = phase else { return false }
      phase = .running(threads, handler)
      return true
    }
    guard mayRun else { throw .cancelled }
    // From here on new keys go through the mailbox.
    let keys = pendingKeys.withLock { $0.keys }
    do {
      _ = try WorkerThread(name: "palbe-network") { NetworkLoop.run(threads, boundTo: address, keys: keys) }
    } catch {
      threads.finished.set(nil)
      throw .system("cannot start a thread: \(error)")
    }
    let joinRequest = try await threads.joinRequest.wait().get()
    let url = edge.signalingURL(joinRequest: joinRequest)
    let result = await withTaskCancellationHandler {
      await connect(url, threads, handler)
    } onCancel: {
      threads.leave()
    }
    try result.get()
  }

  private func connect(
    _ url: String, _ threads: CallThreads, _ handler: SignalingHandler
  ) async -> Result<Void, CallEngineError> {
    let timeout = configuration.connectTimeout
    let timer = Task {
      try? await Task.sleep(nanoseconds: UInt64(max(0, timeout.nanoseconds)))
      if !Task.isCancelled { threads.connected.set(.failure(.timedOut)) }
    }
    defer { timer.cancel() }
    var options = WebSocketClient.Options()
    options.headers = [.init("Authorization", "Bearer \(configuration.token)")]
    options.timeout = timeout
    let attempt = Task { [options] in
      try await WebSocketClient.connect(to: url, options: options, handler: handler)
    }
    Task {
      // A call that is given up does not wait for a server that does not answer.
      _ = await threads.connected.wait()
      attempt.cancel()
    }
    do {
      let link = try await attempt.value
      if !threads.network.send(.signalingOpened(link)) { link.close() }
    } catch {
      handler.isGone.set(())
      let reason = (error as? WebSocketClientError).map { CallEngineError($0, url: configuration.edgeURL) }
      threads.connected.set(.failure(reason ?? .cancelled))
    }
    return await threads.connected.wait()
  }

  private func localAddress(toward edge: EdgeURL) async throws(CallEngineError) -> SocketAddress {
    if let address = configuration.bindAddress { return address }
    let found = Latch<SocketAddress?>()
    do {
      // Looking a name up blocks, and must not hold a thread of the task pool.
      _ = try WorkerThread(name: "palbe-lookup") { found.set(edge.localAddress()) }
    } catch { throw .system("cannot start a thread: \(error)") }
    guard let address = await found.wait() else { throw .noRoute(host: edge.host) }
    return address
  }

  /// Throws for a key that is no call key.
  static func check(_ key: [UInt8]) throws(CallEngineError) {
    guard key.count == 32 else { throw .key(.wrongLength(expected: 32, got: key.count)) }
  }

  private var threads: CallThreads? {
    guard case .running(let threads, _) = phase.withLock({ $0 }) else { return nil }
    return threads
  }

  /// Makes a 32-byte call key readable at once, and sends under it as `sending` says. The current key changes nothing.
  package func installKey(
    _ key: [UInt8], sending: PalbeFrameEncryption.SendSwitch
  ) async throws(CallEngineError) {
    guard configuration.encryption == .sframe else {
      throw configuration.encryption == .none ? .encryptionIsOff : .otherEncryption
    }
    try Self.check(key)
    // Decided under the lock of the phase: a key is either among the pending ones before they are taken, or in the mailbox.
    let threads = phase.withLock { phase -> CallThreads? in
      switch phase {
      case .idle, .preparing:
        pendingKeys.withLock { $0.append(key, sending: sending) }
        return nil
      case .running(let threads, _): return threads
      case .ended: return nil
      }
    }
    guard let threads else {
      if isOver { throw .notConnected }
      return
    }
    let reply = Latch<Result<Void, CallEngineError>>()
    guard threads.network.send(.installKey(key, sending, reply)) else { throw .notConnected }
    try await reply.wait().get()
  }

  private var isOver: Bool {
    if case .ended = phase.withLock({ $0 }) { true } else { false }
  }

  /// Everybody has the newest key: send under it.
  package func confirmSendKey() async {
    pendingKeys.withLock { $0.confirm() }
    threads?.network.send(.confirmSendKey)
  }

  /// Changes the keys of a running call of LiveKit's frame format. Its first key belongs into the configuration.
  package func change(_ change: LiveKitKeyChange) async throws(CallEngineError) {
    guard case .liveKit = configuration.encryption else {
      throw configuration.encryption == .none ? .encryptionIsOff : .otherEncryption
    }
    let reply = Latch<Result<Void, CallEngineError>>()
    guard let threads, threads.network.send(.change(change, reply)) else { throw .notConnected }
    try await reply.wait().get()
  }

  /// Stops or resumes sending a track. Before `start` it holds from the first packet on.
  package func setMuted(_ track: LocalTrack, _ muted: Bool) async throws(CallEngineError) {
    guard configuration.publishes.contains(track) else { throw .notPublished }
    guard !isOver else { throw .notConnected }
    switches.set(track, muted)
    guard let threads else { return }
    guard threads.network.send(.setMuted(track, muted)) else { throw .notConnected }
    if track == .camera, !muted { threads.camera.send(.keyFrameNeeded) }
  }

  /// The counters now, or the last ones when the call is over; nil before it began.
  package func statistics() async -> CallStatistics? {
    switch phase.withLock({ $0 }) {
    case .idle, .preparing: return nil
    case .ended(let last): return last
    case .running(let threads, _):
      let reply = Latch<CallStatistics?>()
      guard threads.network.send(.statistics(reply)) else { return await threads.finished.wait() }
      return await reply.wait()
    }
  }

  /// Leaves the room and returns when every thread has ended. Safe to call more than once.
  package func stop() async {
    let running = phase.withLock { phase -> (CallThreads, SignalingHandler)? in
      if case .running(let threads, let handler) = phase { return (threads, handler) }
      if case .ended = phase { return nil }
      phase = .ended(nil)
      return nil
    }
    guard let (threads, handler) = running else { return }
    threads.leave()
    let statistics = await threads.finished.wait()
    // The farewell is on its way when the link has closed; the link itself sees to it that this takes at most 2 s.
    if threads.hasLink.load(ordering: .acquiring) { await handler.isGone.wait() }
    phase.withLock { $0 = .ended(statistics) }
  }
}

extension CallEngineError {
  init(_ error: WebSocketClientError, url: String) {
    switch error {
    case .malformedURL: self = .malformedURL(url)
    case .refused(let status, let body): self = .refused(status: status, body: body)
    case .unreachable(let reason): self = .unreachable(reason)
    case .malformedAnswer: self = .unreachable("it does not answer as a WebSocket server")
    case .timedOut: self = .timedOut
    case .cancelled: self = .cancelled
    }
  }
}
