import Palbase
import PalbeChatCore
import PalbeMLS
import PalbeUnits

/// Opening, enrolment, sessions, and the end.
extension MessagingShell {
  /// Summaries first, for the list; then the engine.
  func openStores() async throws {
    let storage = try await openFile()
    self.storage = storage
    let random = runtime.time.randomSource
    let survey = try Self.stored { () throws(MLSStorageError) in try ChatSummary.survey(in: storage) }
    let list = survey.chats.compactMap { summary in
      ChatID(bytes: summary.chat).map { ChatSnapshot(id: $0, summary: summary, head: nil) }
    }
    pending.append(.chats(list, isAll: true))
    deliverSoon()
    var configuration = EngineConfiguration(me: user)
    configuration.asksConsent = settings.asksConsent
    configuration.transcript.rows = settings.historyLimit
    let time = now()
    try Self.stored { () throws(MLSStorageError) in try storage.begin() }
    do throws(EngineError) {
      let engine = try ChatEngine.open(
        configuration, storage: storage, summaries: survey.damaged.isEmpty ? survey.chats : nil,
        random: random,
        at: time)
      box = EngineBox(engine)
    } catch { throw BackendError(error) }
    if let box { try lookAtTrust(box) }
    loadPrefs()
    try Self.stored { () throws(MLSStorageError) in try storage.commit() }
    let kept = Set(box?.engine.pendingUploads().map(\.spool) ?? [])
    try await spool.prepare(keeping: kept)
    phase = .open
    lastClock = (time.wall, time.instant)
  }

  /// The file, as soon as no other process has it, for as long as the settings say.
  private func openFile() async throws -> SealedStorage {
    let time = runtime.time
    let start = time.now()
    while true {
      do throws(SealedStorageError) {
        return try SealedStorage(
          folder: folder, user: user, vault: runtime.vault, opening: .creating, random: time.randomSource,
          isDurable: settings.isDurable)
      } catch {
        guard error == .storage(.busy), time.now() - start < settings.patience else {
          throw BackendError(error)
        }
      }
      try await time.sleep(time.jittered(.milliseconds(200)))
    }
  }

  /// Begins to talk: enrols, connects, fetches. Harmless twice; waits for nothing.
  package func start() async {
    guard phase == .open, !isStarted else { return }
    isStarted = true
    let text = user.text
    runtime.devices.onEnrol { [weak self] userId in
      guard userId == text, let self else { throw BackendError.client(.deviceNotEnrolled) }
      return try await enrolForOthers()
    }
    let states = runtime.sessions.state.stream()
    followers = [Task { [weak self] in for await state in states { await self?.session(state) } }]
    _ = try? await perform { (shell, box) throws in box.engine.start(at: shell.now()) }
    guard phase == .open, let box else { return }
    startPolling()
    if box.engine.isEnrolled { listen() }
    post(.tick)
  }

  /// Returns when the server knows this device. Throws `not_signed_in`, `device_revoked`, and what the server says of the
  /// enrolment; goes on waiting while there is no connection.
  package func waitUntilEnrolled() async throws {
    guard phase == .open, let box else { throw endError }
    if box.engine.isEnrolled { return }
    guard case .signedIn(let current) = runtime.sessions.state.value, current.id == user.text else {
      throw BackendError.client(.notSignedIn)
    }
    try await withCheckedThrowingContinuation { enrolling.append($0) }
  }

  /// For a call of another module that the server refused because it does not know this device, or that found no
  /// credential: a look at the queue has the engine find out, and enrol.
  private func enrolForOthers() async throws -> DeviceCredential {
    guard phase == .open, let box else { throw endError }
    let isFresh = enrolledAt.map { runtime.time.now() - $0 < .seconds(10) } ?? false
    if !(isFresh && box.engine.isEnrolled) {
      let sleep = runtime.time.sleep
      let limit = Task { [weak self] in
        do { try await sleep(.seconds(30)) } catch { return }
        await self?.resumeEnrolling(.failure(BackendError.client(.deviceNotEnrolled)))
      }
      defer { limit.cancel() }
      try await withCheckedThrowingContinuation { continuation in
        enrolling.append(continuation)
        if box.engine.isEnrolled { post(.input(.live(.queueChanged))) }
      }
    }
    return try runtime.devices.existingCredential(of: user.text)
  }

  // MARK: Sessions

  private func session(_ state: AuthState) {
    guard phase == .open else { return }
    switch state {
    case .signedIn(let current) where current.id == user.text:
      if case .signedIn = lastSession { break }
      lastSession = state
      guard let box, box.engine.isEnrolled || isStarted else { return }
      listen()
      startPolling()
      post(
        .call(
          ShellCall(
            run: { shell in
              shell.box?.engine.signedIn(at: shell.now())
              return nil
            }, refuse: { _ in })))
    case .signedIn: end(.signedOut)
    case .signedOut(.requested), .signedOut(.otherProcess): end(.signedOut)
    case .signedOut(.deviceRemoved): post(.input(.live(.deviceRevoked)))
    case .signedOut(nil), .signedOut(.expired), .signedOut(.tokenReused):
      lastSession = state
      pending.append(.failure(.client(.notSignedIn)))
      deliverSoon()
    }
  }

  /// The user removed this device: nothing is asked any more, and the stores stay.
  func revoked() {
    if let credential = try? runtime.devices.credential(of: user.text) {
      runtime.devices.markRevoked(credential, of: user.text)
    }
    pending.append(.failure(.client(.deviceRevoked)))
    end(.deviceRevoked)
  }

  // MARK: The end

  /// Lets go of the file; who waits gets an error, and nothing is lost. Harmless twice.
  package func close() async { end(.closed) }

  /// Storage refused: nothing more happens.
  func stop(_ fault: MLSStorageError) {
    guard phase == .open else { return }
    pending.append(.failure(BackendError(fault)))
    end(.storageFailed)
  }

  func end(_ reason: ShellEnd, isTold: Bool = true) {
    if case .ended = phase { return }
    phase = .ended(reason)
    timer?.task.cancel()
    timer = nil
    for task in requests.values { task.cancel() }
    requests = [:]
    for topic in topics.values { topic.task.cancel() }
    topics = [:]
    for task in uploads.values { task.cancel() }
    uploads = [:]
    waitingUploads = []
    for task in followers { task.cancel() }
    followers = []
    dirty = []
    storage?.close()
    box = nil
    storage = nil
    let error = endError
    for waiter in settling.values.joined() { afterDelivery.append { waiter.resume(throwing: error) } }
    settling = [:]
    for waiter in commands.values { afterDelivery.append { waiter.resume(throwing: error) } }
    commands = [:]
    resumeEnrolling(.failure(error))
    if isTold { pending.append(.ended(reason)) } else { pending = [] }
    deliverSoon()
  }
}
