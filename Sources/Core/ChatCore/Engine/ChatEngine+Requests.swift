import PalbeMLS
import PalbeUnits

/// A request that is on its way, or waits to go out again.
struct Flight {
  let request: ServerRequest
  let purpose: Purpose
  let key: [UInt8]?
  var attempt: Int

  /// What the answer is for.
  enum Purpose: Hashable {
    case enrol
    case keyPackageCount
    case publish(isLastResort: Bool)
    case fetch
    case acknowledge
    case send(ChatID, ClientMessageID)
    case claim(ChatID, order: UInt64, UserID)
    case found(ChatID, order: UInt64)
    case commit(ChatID, order: UInt64)
    case tellRole(ChatID, order: UInt64)
    case leave(ChatID, order: UInt64)
    case operationView(ChatID, order: UInt64)
    case log(ChatID)
    case view(ChatID)
    case hearsay(ChatID)
    case read(ChatID, Int64)
    case scope(ChatID, CommandID)
    case unread(ChatID, CommandID?)
    case groups
    case stranger(GroupID)
    case queueSubscription
    case subscription(ChatID?)
    case typing
  }

  /// Whether it goes out again until there is an answer. Who gave a command without an effect is told instead.
  var isRepeated: Bool {
    switch purpose {
    case .typing, .scope, .unread(_, .some): false
    default: true
    }
  }
}

/// What is due at a time.
enum EngineTimer: Hashable {
  case again(RequestID)
  case tidy(ChatID)
  case retry(ChatID)
  case typingOut(ChatID)
  case typingIn(ChatID)
  case expiry(ChatID)
  case secrets(ChatID)
  case keyPackages
  case strangers
  case peer(ChatID)
}

extension ChatEngine {
  mutating func ask(
    _ request: ServerRequest, for purpose: Flight.Purpose, key: [UInt8]? = nil, attempt: Int = 0
  ) {
    send(Flight(request: request, purpose: purpose, key: key, attempt: attempt))
  }

  private mutating func send(_ flight: Flight) {
    let id = RequestID(rawValue: nextRequest)
    nextRequest += 1
    flights[id] = flight
    requests.append(EngineRequest(id: id, request: flight.request, idempotencyKey: flight.key))
  }

  mutating func answer(
    _ id: RequestID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    // One that waits to go out again has no answer to come.
    guard timers[.again(id)] == nil, let flight = flights[id] else { return }
    guard case .failure(let refusal) = result else {
      flights[id] = nil
      return try take(result, of: flight)
    }
    switch refusal {
    case .deviceRevoked: return try revoked()
    case .deviceNotEnrolled where !hasEnrolledAgain && flight.purpose != .enrol:
      // The server lost us: the same device is enrolled once more, and the request waits for that.
      hasEnrolledAgain = true
      timers[.again(id)] = now.instant + configuration.longestWait
      device.standing = .new
      try storeDevice()
      return try enrol()
    case .deviceNotEnrolled where flight.purpose != .enrol && isEnrolling:
      timers[.again(id)] = now.instant + configuration.longestWait
      return
    case _ where refusal.isPassing && flight.isRepeated:
      if refusal == .notSignedIn { events.append(.notSignedIn) }
      timers[.again(id)] = now.instant + wait(after: flight.attempt, refusal)
      return
    default: break
    }
    flights[id] = nil
    try take(result, of: flight)
  }

  /// Doubles with each attempt, never less than the server asks for, and differs from everybody else's.
  private mutating func wait(after attempt: Int, _ refusal: ServerRefusal) -> TimeDelta {
    let doubled = configuration.firstWait * (1 << min(attempt, 10))
    var wait = min(doubled, configuration.longestWait)
    if case .rateLimited(let least) = refusal { wait = max(wait, least) }
    if refusal == .notSignedIn { wait = configuration.longestWait }
    return wait + jitter(upTo: wait)
  }

  mutating func jitter(upTo span: TimeDelta) -> TimeDelta {
    guard span > .zero else { return .zero }
    return TimeDelta(nanoseconds: Int64.random(in: 0...span.nanoseconds, using: &random))
  }

  /// A fresh name for a request: visible characters.
  mutating func makeKey() -> [UInt8] { random.bytes(24).map { 0x61 + $0 % 26 } }

  /// What waited goes out again; `anew`, as if for the first time.
  mutating func askAgain(_ id: RequestID, anew: Bool = false) {
    guard var flight = flights.removeValue(forKey: id) else { return }
    flight.attempt = anew ? 0 : flight.attempt + 1
    send(flight)
  }

  /// Everything that waited goes out now, as when there is a connection again.
  mutating func askAllAgain() {
    for case .again(let id) in timers.keys.sorted(by: Self.isBefore) {
      timers[.again(id)] = nil
      askAgain(id, anew: true)
    }
  }

  /// Forgets the requests of a purpose: an answer to one is nothing any more.
  mutating func forget(where matches: (Flight.Purpose) -> Bool) {
    for id in flights.keys.sorted() where flights[id].map({ matches($0.purpose) }) ?? false {
      flights[id] = nil
      timers[.again(id)] = nil
    }
  }

  /// An order for timers, so that a run replays.
  static func isBefore(_ left: EngineTimer, _ right: EngineTimer) -> Bool {
    left.rank < right.rank
  }

  private mutating func take(
    _ result: Result<ServerAnswer, ServerRefusal>, of flight: Flight
  ) throws(MLSStorageError) {
    switch flight.purpose {
    case .enrol: try enrolled(result)
    case .keyPackageCount: try counted(result)
    case .publish(let isLastResort): try published(result, isLastResort: isLastResort)
    case .fetch: try fetched(result)
    case .acknowledge: acknowledged(result)
    case .send(let chat, let id): try sent(id, in: chat, result)
    case .claim(let chat, let order, let user): try claimed(user, for: order, in: chat, result)
    case .found(let chat, let order): try founded(order, in: chat, result)
    case .commit(let chat, let order): try committed(order, in: chat, result)
    case .tellRole(let chat, let order): try toldRole(order, in: chat, result)
    case .leave(let chat, let order): try left(order, in: chat, result)
    case .operationView(let chat, let order): try viewed(for: order, in: chat, result)
    case .log(let chat): try gotLog(of: chat, result)
    case .view(let chat): try viewed(chat, result)
    case .hearsay(let chat): try gotHearsay(of: chat, result)
    case .read(let chat, let seq): try toldRead(seq, in: chat, result)
    case .scope(let chat, let command): try gotScope(of: chat, command, result)
    case .unread(let chat, let command): try gotUnread(of: chat, command, result)
    case .groups: try gotGroups(result)
    case .stranger(let group): try viewedStranger(group, result)
    // What came before there was anybody to tell.
    case .queueSubscription: fetchQueue()
    case .subscription(let chat): subscribed(chat, result)
    case .typing: break
    }
  }

  // MARK: Time

  mutating func runTimers() throws(MLSStorageError) {
    let due = timers.filter { $0.value <= now.instant }.keys.sorted(by: Self.isBefore)
    for timer in due {
      // One before it may have stopped it.
      guard let time = timers[timer], time <= now.instant, !isStopped else { continue }
      timers[timer] = nil
      switch timer {
      case .again(let id): askAgain(id)
      case .tidy(let chat):
        chats[chat]?.tidyAt = nil
        if let chat = chats[chat] { try advanceOperations(of: chat) }
      case .retry(let chat): if let chat = chats[chat] { try retryUnclear(in: chat) }
      case .typingOut(let chat): typingOut(chat)
      case .typingIn(let chat): typingIn(chat)
      case .expiry(let chat): if let chat = chats[chat] { try expire(in: chat) }
      case .secrets(let chat): if let chat = chats[chat] { try dropSecrets(of: chat) }
      case .keyPackages: checkKeyPackages()
      case .strangers: lookAtStrangers()
      case .peer(let chat): if let chat = chats[chat] { try advanceOperations(of: chat) }
      }
    }
  }
}

extension EngineTimer {
  var rank: (Int, UInt64, UInt64) {
    func of(_ number: Int, _ chat: ChatID) -> (Int, UInt64, UInt64) { (number, chat.high, chat.low) }
    return switch self {
    case .again(let id): (0, id.rawValue, 0)
    case .tidy(let chat): of(1, chat)
    case .retry(let chat): of(2, chat)
    case .typingOut(let chat): of(3, chat)
    case .typingIn(let chat): of(4, chat)
    case .expiry(let chat): of(5, chat)
    case .secrets(let chat): of(6, chat)
    case .keyPackages: (7, 0, 0)
    case .strangers: (8, 0, 0)
    case .peer(let chat): of(9, chat)
    }
  }
}

/// For tests and for the shell's own diagnosis.
extension ChatEngine {
  /// Nothing is asked and nothing waits for the server.
  package var isQuiet: Bool {
    isStopped || device.standing == .revoked || flights.isEmpty && unfinished.isEmpty
  }

  /// What is not done yet, in words.
  package var unfinished: [String] {
    var result: [String] = []
    if !queue.rows.isEmpty { result.append("\(queue.rows.count) rows wait") }
    for id in chats.keys.sorted() {
      guard let chat = chats[id] else { continue }
      let waiting = chat.outbox.count { $0.failure == nil }
      if waiting > 0 {
        result.append("\(id): \(waiting) messages wait, \(chat.head.standing), \(chat.sending)")
      }
      for operation in chat.operations {
        result.append(
          "\(id): \(operation.intent), \(chat.head.standing), prepared \(operation.prepared != nil)")
      }
      if chat.head.standing.awaitsGroup { result.append("\(id): \(chat.head.standing)") }
    }
    return result
  }

  /// The same at all members of the chat's epoch.
  package mutating func authenticator(of id: ChatID) -> [UInt8]? {
    guard let chat = chats[id], chat.head.standing == .active, let group = try? group(of: chat) else {
      return nil
    }
    return group.stored.group.epochAuthenticator
  }
}
