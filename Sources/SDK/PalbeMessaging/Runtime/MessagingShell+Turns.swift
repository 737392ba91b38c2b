import Palbase
import PalbeChatCore
import PalbeCrypto
import PalbeMLS
import PalbeUnits

/// Turns: all that waits is taken together, its writes are one batch, and nothing goes out before that is on the medium.
extension MessagingShell {
  /// Has the next turn take something, from any thread.
  nonisolated func post(_ item: MailItem) {
    if mailbox.put(item) { Task { await self.turn() } }
  }

  /// Runs `body` in a turn and returns when what it wrote is durable.
  /// - Parameter isShown: and when what it changed has come through the sink.
  func perform<Value: Sendable>(
    isShown: Bool = false, _ body: @escaping @Sendable (isolated MessagingShell, EngineBox) throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      post(
        .call(
          ShellCall(
            run: { shell in
              guard let box = shell.box else {
                return { continuation.resume(throwing: BackendError.storeUnavailable(.system(-1))) }
              }
              let result = Result { try body(shell, box) }
              guard isShown else { return { continuation.resume(with: result) } }
              shell.afterDelivery.append { continuation.resume(with: result) }
              return nil
            }, refuse: { continuation.resume(throwing: $0) })))
    }
  }

  /// Runs `body`, which names a message, in a turn, and returns when the server has the message.
  func settle(
    _ body: @escaping @Sendable (isolated MessagingShell, EngineBox) throws -> ClientMessageID
  ) async throws -> SettledMessage {
    try await withCheckedThrowingContinuation { continuation in
      post(
        .call(
          ShellCall(
            run: { shell in
              guard let box = shell.box else {
                return { continuation.resume(throwing: BackendError.storeUnavailable(.system(-1))) }
              }
              do {
                let id = try body(shell, box)
                shell.settling[id, default: []].append(continuation)
                return nil
              } catch {
                return { continuation.resume(throwing: error) }
              }
            }, refuse: { continuation.resume(throwing: $0) })))
    }
  }

  /// Runs something of the engine's; its errors are those of the SDK.
  func engine<Value>(_ body: (ChatTime) throws(EngineError) -> Value) throws -> Value {
    do throws(EngineError) { return try body(now()) } catch { throw BackendError(error) }
  }

  /// The clocks, read together.
  func now() -> ChatTime {
    let time = runtime.time
    return ChatTime(
      wall: WallTime(microseconds: time.wallMilliseconds() * 1_000), instant: time.now(),
      boot: Self.boot(time))
  }

  private static func boot(_ time: Timebase) -> UInt64 {
    SHA256.hash(Array(time.bootToken.utf8))[..<8].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Takes all that waits.
  func turn() {
    let items = mailbox.take()
    guard let box, let storage else { return refuse(items) }
    do throws(MLSStorageError) { try storage.begin() } catch {
      refuse(items, with: BackendError(error))
      return stop(error)
    }
    var done: [@Sendable () -> Void] = []
    for item in items {
      switch item {
      case .input(let input): box.engine.handle(input, at: now())
      case .call(let call): if let last = call.run(self) { done.append(last) }
      case .tick: break
      }
      if box.engine.hasStopped { break }
    }
    lookAtClock(box)
    if let deadline = box.engine.nextDeadline, deadline <= runtime.time.now() {
      box.engine.handleTimeout(at: now())
    }
    guard !box.engine.hasStopped else {
      // The batch goes with the storage: nobody was told of it.
      storage.close()
      for last in done { last() }
      return drainEvents(box)
    }
    do throws(MLSStorageError) { try storage.commit() } catch {
      let refusal = BackendError(error)
      for item in items { if case .call(let call) = item { call.refuse(refusal) } }
      return stop(error)
    }
    for last in done { last() }
    drainEvents(box)
    guard phase == .open else { return }
    drainRequests(box)
    schedule(box)
    deliverSoon()
  }

  private func refuse(_ items: [MailItem], with error: BackendError? = nil) {
    let error = error ?? endError
    for item in items { if case .call(let call) = item { call.refuse(error) } }
  }

  /// What a caller is told of a shell that is closed.
  var endError: BackendError {
    switch phase {
    case .ended(.signedOut): .client(.notSignedIn)
    case .ended(.deviceRevoked): .client(.deviceRevoked)
    case .opening, .open, .ended: .storeUnavailable(.system(-1))
    }
  }

  // MARK: Time

  /// A wall clock that jumped against the steady one, or a machine that slept, is news to timers that count both.
  private func lookAtClock(_ box: EngineBox) {
    let now = now()
    defer { lastClock = (now.wall, now.instant) }
    guard let lastClock else { return }
    let drift = (now.wall - lastClock.wall) - (now.instant - lastClock.instant)
    if drift > .seconds(2) || drift < .zero - .seconds(2) { box.engine.clockMoved(at: now) }
  }

  /// Looks again at the earliest of what the engine, and who polls, wait for; never later than half a minute, for a
  /// machine that slept does not say so.
  private func schedule(_ box: EngineBox) {
    var deadlines = [box.engine.nextDeadline, pollAt].compactMap { $0 }
    guard isStarted, !deadlines.isEmpty else {
      timer?.task.cancel()
      return timer = nil
    }
    let now = runtime.time.now()
    deadlines.append(now + .seconds(30))
    let deadline = max(now, deadlines.min() ?? now)
    if let timer, timer.deadline <= deadline, timer.deadline > now { return }
    timer?.task.cancel()
    let sleep = runtime.time.sleep
    timer = (
      deadline,
      Task { [weak self] in
        do { try await sleep(max(.zero, deadline - now)) } catch { return }
        await self?.timeout()
      }
    )
  }

  private func timeout() {
    timer = nil
    if let pollAt, pollAt <= runtime.time.now() { poll() }
    post(.tick)
  }

  // MARK: Requests

  private func drainRequests(_ box: EngineBox) {
    while let request = box.engine.pollRequest() {
      switch request.request {
      case .subscribeDevice, .subscribe, .unsubscribe: topicRequest(request)
      case .setTyping(let group, let isOn):
        carry(request) { await $0.carry(.typing(group: group.text, isOn: isOn), for: request.request) }
      case .fetchQueue(let after, let limit) where isConnected && isQueueShort:
        carry(request) { await $0.carry(.fetch(after: after, limit: limit), for: request.request) }
      case .acknowledge(let row) where isConnected:
        carry(request) { await $0.carry(.acknowledge(upTo: row), for: request.request) }
      default: carry(request) { await $0.carry(request) }
      }
    }
  }

  private func carry(
    _ request: EngineRequest,
    _ body: @escaping @Sendable (Carrier) async -> Result<ServerAnswer, ServerRefusal>
  ) {
    let carrier = carrier
    requests[request.id] = Task { [weak self] in
      let result = await body(carrier)
      guard !Task.isCancelled else { return }
      await self?.answered(request, result)
    }
  }

  private func answered(_ request: EngineRequest, _ result: Result<ServerAnswer, ServerRefusal>) {
    guard requests.removeValue(forKey: request.id) != nil else { return }
    if case .fetchQueue = request.request {
      if case .success(.queue(let rows, let hasMore)) = result {
        isQueueShort = !hasMore && rows.count <= 10
      } else {
        isQueueShort = false
      }
    }
    post(.input(.response(request.id, result)))
  }
}

extension BackendError {
  /// What a caller is told of an operation that the engine refused.
  init(_ error: EngineError) {
    switch error {
    case .storage(let error): self = BackendError(error)
    case .stopped: self = .storeUnavailable(.system(-1))
    default: self = .client(FailureCode(rawValue: error.code))
    }
  }
}
