import PalbeMLS
import PalbeUnits

/// What happens around the engine: sessions, clocks, sleep.
extension ChatEngine {
  /// There is a session again after `notSignedIn`: everything that waited goes out at once. Harmless at any time.
  package mutating func signedIn(at now: ChatTime) {
    run(at: now) { (engine) throws(MLSStorageError) in
      guard engine.isStarted else { return }
      engine.askAllAgain()
      if engine.device.standing == .new { try engine.enrol() }
    }
  }

  /// The wall clock jumped, or the machine slept: what disappears by time, and secrets of epochs that ended, are looked at
  /// anew (section 3 #30, #26). Nothing of a chat is read for it that has nothing due.
  package mutating func clockMoved(at now: ChatTime) {
    run(at: now) { (engine) throws(MLSStorageError) in
      for id in engine.chats.keys.sorted() {
        guard let chat = engine.chats[id] else { continue }
        engine.scheduleExpiry(of: chat)
      }
      try engine.dropSecrets()
      try engine.runTimers()
    }
  }

  /// Asks nothing more until `start`: everything durable stays, and goes on from there. Messages still disappear by time.
  /// Commands that only ask end with `unavailable`; those that change something are carried out later.
  package mutating func suspend(at now: ChatTime) {
    run(at: now) { (engine) throws(MLSStorageError) in
      guard engine.isStarted else { return }
      try engine.connection(isUp: false)
      engine.isStarted = false
      for id in engine.flights.keys.sorted() {
        switch engine.flights[id]?.purpose {
        case .scope(_, let command), .unread(_, .some(let command)):
          engine.events.append(.finished(command, .failed(code: ServerRefusal.unavailable.code)))
        default: break
        }
      }
      engine.requests.removeAll()
      engine.flights.removeAll()
      engine.isEnrolling = false
      engine.timers = engine.timers.filter { $0.key.isLocal }
      // Rows that were not carried out come again, and what was is acknowledged again.
      let processed = engine.queue.processed
      engine.queue = QueueState()
      engine.queue.processed = processed
      for chat in engine.chats.values { chat.forgetWaiting() }
    }
  }
}

extension EngineTimer {
  /// Has nothing to do with the server.
  fileprivate var isLocal: Bool {
    switch self {
    case .expiry, .secrets: true
    default: false
    }
  }
}

extension Chat {
  /// Nobody waits for an answer any more.
  fileprivate func forgetWaiting() {
    switch sending {
    case .underway, .unclear: sending = .idle
    case .idle, .behind: break
    }
    run = nil
    peerWait?.until = .zero
    tidyAt = nil
    wantedUploads = []
    (isAskingLog, isAskingView, isTellingRead, hasAskedHearsay) = (false, false, false, false)
  }
}
