import PalbeMLS
import PalbeUnits

/// Operations on groups, one at a time a group: what is wanted is stored first, then the commit with its key, and only then
/// the server is asked (section 3 #1, #2).
///
///     queued ──▶ view? ──▶ key packages? ──▶ commit stored ──▶ posted ──▶ merged
///       ▲                                        │ stale_epoch, commit_incomplete
///       └────────── the group has caught up ◀────┘
extension ChatEngine {
  mutating func advanceOperations(of chat: Chat) throws(MLSStorageError) {
    guard isReady, let operation = chat.operations.first else { return }
    if let run = chat.run {
      guard let epoch = run.waitsFor, chat.head.epoch >= epoch else { return }
      chat.run = nil
    }
    if operation.prepared != nil {
      chat.run = Chat.Run(order: operation.order)
      return post(operation, of: chat)
    }
    switch operation.intent {
    case .tidy, .rejoin: if let due = chat.tidyAt, due > now.instant { return }
    case .found: if let wait = chat.peerWait, wait.until > now.instant { return }
    default: break
    }
    guard Int(operation.attempts) < configuration.rebaseLimit else {
      // Others were always first.
      return try fail(chat, code: "rebase_exhausted")
    }
    // Who does not know the name yet cannot seal it for those who come.
    if chat.head.wantsView, mayCommit(chat), operation.intent.sealsName { return lookAtView(of: chat) }
    chat.run = Chat.Run(order: operation.order)
    switch operation.intent {
    case .found:
      var users = Set(chat.head.shape.users)
      if users.count > 1, chat.peerWait != nil { chat.run?.defersOwn = users.remove(me) != nil }
      try claim(users, in: chat)
    case .reset, .tidy, .rejoin: askOperationView(of: chat)
    case .add(let user):
      guard mayCommit(chat) else { return try waitForGroup(chat) }
      if isMember(user, of: chat) { return try finish(chat, .done) }
      if operation.attempts > 0 { askOperationView(of: chat) } else { try claim([user], in: chat) }
    case .remove(let user):
      guard mayCommit(chat) else { return try waitForGroup(chat) }
      guard chat.head.shape.members[user] != nil else { return try finish(chat, .done) }
      if operation.attempts > 0 { askOperationView(of: chat) } else { try commit(in: chat) }
    case .setRole(let user, let role):
      guard mayCommit(chat) else { return try waitForGroup(chat) }
      guard chat.head.shape.members[user] != nil else {
        return try finish(chat, .failed(code: "not_a_member"))
      }
      if chat.head.shape.members[user]?.role == role { return try merged(chat) }
      if operation.attempts > 0 { askOperationView(of: chat) } else { try commit(in: chat) }
    case .tellRole(let user, let role):
      guard let group = chat.head.group else { return try finish(chat, .done) }
      ask(.setRole(group, user, role), for: .tellRole(chat.id, order: operation.order))
    case .leave:
      // What was said before goes first.
      guard !chat.outbox.contains(where: \.isDue) || chat.head.standing != .active else {
        chat.run = nil
        return
      }
      guard let group = chat.head.group else { return try finish(chat, .done) }
      ask(.leave(group), for: .leave(chat.id, order: operation.order))
    }
  }

  func isMember(_ user: UserID, of chat: Chat) -> Bool {
    chat.head.shape.members[user] != nil && !chat.head.departed.contains(user)
  }

  private func mayCommit(_ chat: Chat) -> Bool { chat.head.standing == .active }

  /// A welcome must come first; who is out gets nowhere.
  private mutating func waitForGroup(_ chat: Chat) throws(MLSStorageError) {
    guard chat.head.standing.awaitsGroup else { return try finish(chat, .failed(code: "not_a_member")) }
    chat.run = nil
  }

  /// The operation that is underway, if it is this one.
  func underway(_ order: UInt64, in id: ChatID) -> (chat: Chat, operation: GroupOperation)? {
    guard let chat = chats[id], chat.run?.order == order, let operation = chat.operations.first,
      operation.order == order
    else { return nil }
    return (chat, operation)
  }

  // MARK: What it takes

  mutating func askOperationView(of chat: Chat) {
    guard let group = chat.head.group, let order = chat.run?.order else { return }
    ask(.group(group), for: .operationView(chat.id, order: order))
  }

  mutating func viewed(
    for order: UInt64, in id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let (chat, operation) = underway(order, in: id) else { return }
    switch result {
    case .success(.group(let view)):
      chat.run?.view = view
      chat.head.generation = view.group.generation
      try viewed(view, for: operation, in: chat)
    case .success: break
    case .failure(let refusal):
      if refusal.saysOut { try wasRemoved(from: chat) }
      if underway(order, in: id) != nil { try fail(chat, code: refusal.code) }
    }
  }

  private mutating func viewed(
    _ view: ServerGroupView, for operation: GroupOperation, in chat: Chat
  ) throws(MLSStorageError) {
    switch operation.intent {
    case .reset: try claim(Set(view.members).union([me]), in: chat)
    case .rejoin: try rejoin(chat, view)
    case .add(let user):
      // Somebody else was faster, or is not seen here yet.
      if view.members.contains(user), !chat.head.departed.contains(user), view.group.epoch > chat.head.epoch {
        return wait(for: view.group.epoch, chat)
      }
      try claim(Set([user]).union(ownersOfMissing(view, chat)), in: chat)
    case .tidy:
      guard chat.head.standing == .active else { return try finish(chat, .done) }
      if view.group.epoch > chat.head.epoch { return wait(for: view.group.epoch, chat) }
      let gone = view.leaves.contains { !$0.isLive } || !chat.head.departed.isEmpty
      guard gone || !view.missingDevices.isEmpty else { return try finish(chat, .done) }
      try claim(ownersOfMissing(view, chat), in: chat)
    default: try commit(in: chat)
    }
  }

  /// Whose key packages bring the devices that the server misses: it does not say whose they are.
  private func ownersOfMissing(_ view: ServerGroupView, _ chat: Chat) -> Set<UserID> {
    guard !view.missingDevices.isEmpty else { return [] }
    let known = chat.head.changed.intersection(view.members)
    return known.isEmpty ? Set(view.members) : known
  }

  /// The group is behind: the queue brings what is missing.
  mutating func wait(for epoch: UInt64, _ chat: Chat) {
    chat.run?.waitsFor = epoch
    chat.run?.isPosted = false
    fetchQueue()
  }

  private mutating func claim(_ users: Set<UserID>, in chat: Chat) throws(MLSStorageError) {
    guard let order = chat.run?.order else { return }
    chat.run?.wanted = users
    for user in users.sorted() {
      ask(.claimKeyPackages(of: user), for: .claim(chat.id, order: order, user))
    }
    if users.isEmpty { try commit(in: chat) }
  }

  mutating func claimed(
    _ user: UserID, for order: UInt64, in id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let (chat, operation) = underway(order, in: id), chat.run?.wanted.remove(user) != nil else {
      return
    }
    switch result {
    case .success(.keyPackages(let packages, let missing)):
      chat.run?.claimed[user] = packages
      if !missing.isEmpty { tidyLater(chat, after: .seconds(60)) }
    case .success: break
    case .failure(let refusal):
      // Nobody to add of a user who is in already is nothing; of oneself it means that there is no other device.
      let isNeeded =
        switch operation.intent {
        case .found: user != me
        case .add(let added): user == added
        default: false
        }
      if isNeeded {
        forget { if case .claim(id, order: order, _) = $0 { true } else { false } }
        if try waitForPeer(chat, refusal) { return }
        return try fail(chat, code: refusal.code)
      }
    }
    guard chat.run?.wanted.isEmpty == true else { return }
    if chat.run?.defersOwn == true {
      chat.run?.defersOwn = false
      return try claim([me], in: chat)
    }
    try commit(in: chat)
  }

  private mutating func commit(in chat: Chat) throws(MLSStorageError) {
    guard let operation = chat.operations.first else { return }
    switch operation.intent {
    case .found, .reset: try buildFounding(operation, in: chat)
    default: try buildCommit(operation, in: chat)
    }
  }

  // MARK: The end

  /// The commit of the first operation is merged, or was not needed.
  mutating func merged(_ chat: Chat) throws(MLSStorageError) {
    guard let operation = chat.operations.first else { return }
    guard case .setRole(let user, let role) = operation.intent else { return try finish(chat, .done) }
    // The server's word on roles follows the group's.
    let next = GroupOperation(chat: chat.id, order: operation.order, intent: .tellRole(user, role))
    chat.operations[0] = next
    chat.run = nil
    var transaction = MLSTransaction()
    transaction.put(next, next.key)
    try storage.apply(transaction)
    try advanceOperations(of: chat)
  }

  mutating func toldRole(
    _ order: UInt64, in id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let (chat, _) = underway(order, in: id) else { return }
    if case .failure(let refusal) = result {
      try fail(chat, code: refusal.code)
    } else {
      try finish(chat, .done)
    }
  }

  mutating func fail(_ chat: Chat, code: String) throws(MLSStorageError) {
    if chat.operations.first?.intent == .found { return try foundingFailed(chat, code: code) }
    try finish(chat, .failed(code: code))
  }

  /// The first operation is over.
  mutating func finish(_ chat: Chat, _ result: CommandResult) throws(MLSStorageError) {
    guard let operation = chat.operations.first else { return }
    chat.operations.removeFirst()
    chat.run = nil
    var transaction = MLSTransaction()
    transaction.erase(operation.key)
    try storage.apply(transaction)
    if let command = chat.commands.removeValue(forKey: operation.order) {
      events.append(.finished(command, result))
    }
    try advanceOperations(of: chat)
  }

  /// All operations of a chat are over, as when it is.
  mutating func finishAll(_ chat: Chat, _ result: CommandResult, _ transaction: inout MLSTransaction) {
    for operation in chat.operations {
      transaction.erase(operation.key)
      if let command = chat.commands.removeValue(forKey: operation.order) {
        events.append(.finished(command, result))
      }
    }
    chat.operations = []
    chat.run = nil
    peerWaitIsOver(chat)
  }
}
