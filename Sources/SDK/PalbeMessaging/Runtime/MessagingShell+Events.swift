import Palbase
import PalbeChatCore
import PalbeMLS
import PalbeUnits

/// What the engine tells, and how it gets to the main actor.
extension MessagingShell {
  func drainEvents(_ box: EngineBox) {
    while let event = box.engine.pollEvent() { take(event, box) }
  }

  private func take(_ event: EngineEvent, _ box: EngineBox) {
    switch event {
    case .enrolled:
      enrolledAt = runtime.time.now()
      resumeEnrolling(.success(()))
      listen()
    case .enrolmentRefused(let code):
      let error = BackendError.client(FailureCode(rawValue: code))
      resumeEnrolling(.failure(error))
      pending.append(.failure(error))
    case .deviceRevoked: revoked()
    case .notSignedIn:
      let error = BackendError.client(.notSignedIn)
      resumeEnrolling(.failure(error))
      pending.append(.failure(error))
    case .storageFailed(let fault): stop(fault)
    case .chatChanged(let chat): dirty.insert(chat)
    case .transcript(let chat, let changes): tell(changes, of: chat)
    case .finished(let id, let result):
      guard let waiter = commands.removeValue(forKey: id) else { return }
      let outcome: Result<CommandResult, any Error> =
        if case .failed(let code) = result {
          .failure(BackendError.client(FailureCode(rawValue: code)))
        } else { .success(result) }
      afterDelivery.append { waiter.resume(with: outcome) }
    case .epochChanged(let chat, let epoch, let authenticator):
      pending.append(.epochChanged(chat, epoch: epoch, authenticator: authenticator))
    case .diverged(let chat): dirty.insert(chat)
    case .devicesChanged(_, let user, _, _): devicesChanged(of: user)
    case .settled(_, let message, let seq, let epoch):
      settled(message, .success(SettledMessage(id: message, seq: seq, epoch: epoch)))
    case .failed(let chat, let message, let code):
      settled(message, .failure(BackendError.client(FailureCode(rawValue: code))))
      stopUpload(message, in: chat)
    case .receipts(let chat): receiptsChanged.insert(chat)
    case .uploadWanted(let chat, let group, let message): upload(message, in: chat, to: group, box)
    case .uploadOver(let chat, let message, let spool): uploadOver(message, in: chat, spool: spool)
    case .typing(let chat, let users): pending.append(.typing(chat, users))
    case .presence(let chat, let user, let isOnline):
      pending.append(.presence(chat, user, isOnline: isOnline, at: now().wall))
    case .undecryptable: pending.append(.failure(.client(.undecryptable)))
    }
  }

  private func tell(_ changes: [TranscriptChange], of chat: ChatID) {
    // One list for a run of changes of the same chat.
    if case .transcript(chat, let before)? = pending.last {
      pending[pending.count - 1] = .transcript(chat, before + changes)
    } else {
      pending.append(.transcript(chat, changes))
    }
  }

  /// Who waits for a message hears of it, once what was told of it has arrived.
  func settled(_ message: ClientMessageID, _ result: Result<SettledMessage, any Error>) {
    for waiter in settling.removeValue(forKey: message) ?? [] {
      afterDelivery.append { waiter.resume(with: result) }
    }
  }

  func resumeEnrolling(_ result: Result<Void, any Error>) {
    let waiters = enrolling
    enrolling = []
    for waiter in waiters { waiter.resume(with: result) }
  }

  // MARK: Snapshots

  func existing(_ chat: ChatID) throws -> ChatSnapshot {
    guard let snapshot = try makeSnapshot(chat) else { throw BackendError.client(.chatNotFound) }
    return snapshot
  }

  /// The chat as it is now.
  func makeSnapshot(_ id: ChatID) throws -> ChatSnapshot? {
    guard let box, let head = box.engine.head(of: id) else { return nil }
    var snapshot = ChatSnapshot(id: id, summary: try summary(id, box), head: head)
    snapshot.members = box.engine.members(of: id).map { ChatMemberSnapshot(user: $0.user, role: $0.role) }
    snapshot.online = box.engine.online(in: id)
    return snapshot
  }

  private func summary(_ id: ChatID, _ box: EngineBox) throws -> ChatSummary {
    try engine { (now) throws(EngineError) in try box.engine.summary(of: id, at: now) }
  }

  // MARK: Delivery

  /// Hands over what waits, soon.
  func deliverSoon() {
    guard !pending.isEmpty || !dirty.isEmpty || !receiptsChanged.isEmpty || !afterDelivery.isEmpty else {
      return
    }
    if !afterDelivery.isEmpty { deliveryWait?.cancel() }
    guard !isDelivering else { return }
    isDelivering = true
    Task { await deliver() }
  }

  /// Hands over what waits until there is nothing: each time all of it, and not again before `sinkInterval` is over, unless
  /// somebody waits for it.
  private func deliver() async {
    while true {
      let events = collect()
      let waiters = afterDelivery
      afterDelivery = []
      guard !events.isEmpty || !waiters.isEmpty else { break }
      if !events.isEmpty { await sink(events) }
      for waiter in waiters { waiter() }
      guard afterDelivery.isEmpty else { continue }
      let (sleep, interval) = (runtime.time.sleep, settings.sinkInterval)
      let wait = Task { _ = try? await sleep(interval) }
      deliveryWait = wait
      await wait.value
      deliveryWait = nil
    }
    isDelivering = false
  }

  /// What there is to tell, with the newest snapshot of each chat that changed.
  private func collect() -> [ShellEvent] {
    var events = pending
    pending = []
    guard phase == .open, let box else { return events }
    for chat in receiptsChanged.sorted() {
      if let receipts = try? receipts(in: chat, box) { events.append(.receipts(chat, receipts)) }
    }
    receiptsChanged = []
    let chats = dirty.sorted()
    dirty = []
    var snapshots: [ChatSnapshot] = []
    for chat in chats { if let snapshot = try? makeSnapshot(chat) { snapshots.append(snapshot) } }
    // A chat is there before what happens in it.
    if !snapshots.isEmpty { events.insert(.chats(snapshots, isAll: false), at: 0) }
    return events
  }
}
