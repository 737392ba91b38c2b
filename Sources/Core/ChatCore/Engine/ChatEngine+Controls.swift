import PalbeMLS
import PalbeUnits

/// The server's own words in the queue, and what a device does about them.
extension ChatEngine {
  /// A user's devices changed: one device of the group commits it, the user's own first (2.9h).
  mutating func devicesChanged(of user: UserID) throws(MLSStorageError) {
    for id in chats.keys.sorted() {
      guard let chat = chats[id], chat.head.shape.members[user] != nil else { continue }
      var transaction = MLSTransaction()
      // Also where the group is about to come: its commits rest on it.
      if chat.head.changed.insert(user).inserted { transaction.put(chat.head, RecordKey.chat(id)) }
      guard chat.head.standing == .active else {
        if !transaction.isEmpty { try storage.apply(transaction) }
        continue
      }
      tidy(chat, &transaction)
      if !transaction.isEmpty { try storage.apply(transaction) }
      tidyLater(chat, isOwn: user == me)
    }
  }

  /// Queues a clearing up, once.
  mutating func tidy(_ chat: Chat, _ transaction: inout MLSTransaction) {
    let isQueued = chat.operations.contains { $0.intent == .tidy && $0.order != chat.run?.order }
    if !isQueued { put(.tidy, for: chat, &transaction) }
  }

  /// Has it wait a while that differs at each device.
  mutating func tidyLater(_ chat: Chat, isOwn: Bool) {
    let wait = configuration.housekeepingWait
    tidyLater(chat, after: isOwn ? jitter(upTo: .seconds(1)) : wait / 2 + jitter(upTo: wait))
  }

  /// Has the clearing up wait until then.
  mutating func tidyLater(_ chat: Chat, after delay: TimeDelta) {
    let due = now.instant + delay
    chat.tidyAt = due
    timers[.tidy(chat.id)] = due
  }

  /// Somebody left: their leaves are to be removed by whoever is first.
  mutating func memberLeft(_ user: UserID, _ chat: Chat) throws(MLSStorageError) {
    if user == me { return try leftElsewhere(chat) }
    guard chat.head.standing == .active else { return }
    try load(chat)
    var transaction = MLSTransaction()
    let changes = try depart(user, by: nil, at: chat.head.processedSeq, chat, &transaction)
    guard !transaction.isEmpty else { return }
    try storage.apply(transaction)
    tell(changes, of: chat)
    tidyLater(chat, isOwn: false)
  }

  /// Notes that somebody left, at a number of the server's, with the clearing up that follows.
  mutating func depart(
    _ user: UserID, by sender: DeviceName?, at seq: Int64, _ chat: Chat, _ transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard chat.head.shape.members[user] != nil, chat.head.departed.insert(user).inserted else { return [] }
    let changes = try fold(.memberLeft(user), by: sender, at: seq, in: chat, &transaction)
    // Of a direct chat nothing is left to clear up.
    if !chat.head.shape.isDirect { tidy(chat, &transaction) }
    save(chat, &transaction)
    return changes
  }

  /// The group was founded anew by somebody: a welcome comes, and nothing of the old group counts (section 3 #11).
  mutating func wasReset(_ chat: Chat, generation: Int64) throws(MLSStorageError) {
    guard chat.head.standing == .active || chat.head.standing == .diverged else { return }
    // One of our own that the server took and has not answered for.
    if let operation = chat.operations.first, operation.intent == .reset, operation.prepared != nil { return }
    guard generation > chat.head.generation else { return }
    try load(chat)
    forgetRequests(of: chat)
    chat.sending = .idle
    var transaction = MLSTransaction()
    if let groupID = chat.head.groupID {
      transaction.eraseGroup(groupID)
      byGroupID[groupID] = nil
    }
    chat.group = nil
    chat.head.groupID = nil
    chat.head.generation = generation
    chat.head.standing = .resetting
    unsealAll(in: chat, &transaction)
    finishAll(chat, .failed(code: "stale_epoch"), &transaction)
    let changes = try fold(.groupReset, by: nil, at: chat.head.processedSeq, in: chat, &transaction)
    save(chat, &transaction)
    try storage.apply(transaction)
    tell(changes, of: chat)
  }

  /// Rows were not fetched in time and are gone (2.9i). Whether the group can be followed shows with the next row.
  mutating func gap(in chat: Chat) throws(MLSStorageError) {
    try load(chat)
    var transaction = MLSTransaction()
    let changes = try fold(.historyGap, by: nil, at: chat.head.processedSeq, in: chat, &transaction)
    try storage.apply(transaction)
    tell(changes, of: chat)
    if chat.head.standing == .active { askLog(of: chat) }
  }

  // MARK: Leaving

  mutating func leave(_ chat: Chat, _ command: CommandID) throws(EngineError) {
    if chat.head.standing == .active {
      let envelope = Envelope(
        id: ClientMessageID(at: now.wall, using: &random), sentAt: now.wall, content: .control(.leaving))
      return try send(envelope, in: chat, with: .leave, command)
    }
    try queue(.leave, for: chat, command)
  }

  mutating func left(
    _ order: UInt64, in id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let (chat, operation) = underway(order, in: id) else { return }
    if case .failure(let refusal) = result, !refusal.saysOut {
      return try fail(chat, code: refusal.code)
    }
    if let command = chat.commands.removeValue(forKey: operation.order) {
      events.append(.finished(command, .done))
    }
    try leftElsewhere(chat)
  }

  /// The user left, here or on another device.
  mutating func leftElsewhere(_ chat: Chat) throws(MLSStorageError) {
    guard chat.head.standing != .left else { return }
    try load(chat)
    var transaction = MLSTransaction()
    end(chat, .left, &transaction)
    try storage.apply(transaction)
    forgetRequests(of: chat)
    try ended(chat, [])
  }
}
