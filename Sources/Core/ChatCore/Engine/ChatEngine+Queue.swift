import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// Rows of the device's queue on their way through.
struct QueueState {
  var rows: ArraySlice<QueueRow> = []
  /// More lie with the server than came.
  var hasMore = false
  var isFetching = false
  /// Somebody asked for a fetch while there was one.
  var isWanted = false
  /// All up to here are carried out and in storage.
  var processed: Int64 = 0
  /// All up to here are acknowledged, or on the way to be.
  var acknowledged: Int64 = 0
  var isAcknowledging = false
  /// The row at the front waits for something of this chat.
  var blockedBy: ChatID?
  /// The log was asked for the front row's sake already, and it did not help.
  var hasAskedLog = false

  /// Nothing is here, and as far as one knows nothing there.
  var isDrained: Bool { rows.isEmpty && !isFetching && !hasMore }
}

/// Fetch, carry out in order, acknowledge (S0-55, section 3 #3): a row is acknowledged when all that it did is stored.
extension ChatEngine {
  mutating func fetchQueue() {
    guard isReady else { return }
    guard !queue.isFetching, queue.rows.isEmpty else {
      queue.isWanted = true
      return
    }
    queue.isFetching = true
    queue.isWanted = false
    ask(.fetchQueue(after: queue.processed, limit: configuration.rowsPerFetch), for: .fetch)
  }

  mutating func fetched(_ result: Result<ServerAnswer, ServerRefusal>) throws(MLSStorageError) {
    queue.isFetching = false
    guard case .success(.queue(let rows, let hasMore)) = result else { return }
    try take(rows, hasMore: hasMore)
  }

  mutating func take(_ rows: [QueueRow], hasMore: Bool) throws(MLSStorageError) {
    let last = queue.rows.last?.id ?? queue.processed
    queue.rows += rows.filter { $0.id > last }
    queue.hasMore = hasMore
    try drain()
  }

  /// Carries out what is here, until a row must wait.
  mutating func drain() throws(MLSStorageError) {
    while let row = queue.rows.first {
      queue.blockedBy = nil
      guard try carryOut(row) else {
        acknowledge()
        return
      }
      queue.rows.removeFirst()
      queue.processed = max(queue.processed, row.id)
      queue.hasAskedLog = false
    }
    acknowledge()
    if queue.hasMore || queue.isWanted {
      fetchQueue()
    } else {
      drained()
    }
  }

  /// What a row waited for is here.
  mutating func resumeQueue(for chat: ChatID) throws(MLSStorageError) {
    if queue.blockedBy == chat { try drain() }
  }

  mutating func acknowledge() {
    guard isReady, !queue.isAcknowledging, queue.processed > queue.acknowledged else { return }
    queue.isAcknowledging = true
    queue.acknowledged = queue.processed
    ask(.acknowledge(upTo: queue.processed), for: .acknowledge)
  }

  mutating func acknowledged(_ result: Result<ServerAnswer, ServerRefusal>) {
    queue.isAcknowledging = false
    // Who consumes the queue instead acknowledges it.
    if case .failure = result { return }
    acknowledge()
  }

  /// Nothing is left: who waits for a commit that did not come asks the log.
  private mutating func drained() {
    let behind = chats.values.filter { chat in
      let awaited: UInt64? =
        if case .behind(let epoch) = chat.sending { epoch } else { chat.run?.waitsFor }
      return chat.head.standing == .active && awaited.map { $0 > chat.head.epoch } ?? false
    }
    for chat in behind.sorted(by: { $0.id < $1.id }) { askLog(of: chat) }
  }

  /// Carries a row out; false when it must wait.
  private mutating func carryOut(_ row: QueueRow) throws(MLSStorageError) -> Bool {
    switch row.content {
    case .message(let group, let message): return try carryOut(message, in: group)
    case .welcome(let group, let blob): return try join(blob, as: group)
    case .devicesChanged(let user): try devicesChanged(of: user)
    case .memberLeft(let group, let user): if let chat = chat(named: group) { try memberLeft(user, chat) }
    case .roleChanged: break
    case .groupReset(let group, let generation):
      if let chat = chat(named: group) { try wasReset(chat, generation: generation) }
    case .historyGap(let group): if let chat = chat(named: group) { try gap(in: chat) }
    case .malformed: break
    }
    return true
  }

  /// The chat that has this name now: a direct chat that began again hears no more of the group before.
  func chat(named group: GroupID) -> Chat? {
    guard let chat = byGroup[group].flatMap({ chats[$0] }), chat.head.group == group else { return nil }
    return chat
  }

  private mutating func carryOut(
    _ row: ServerLogRow, in group: GroupID
  ) throws(MLSStorageError) -> Bool {
    let header = try? MLSMessage(decoding: row.blob)
    guard let chat = chat(named: group) else {
      // A group that we founded, and whose founding was not answered yet.
      guard let groupID = header?.groupID, let id = byGroupID[groupID] ?? foundingOf(groupID) else {
        return true
      }
      queue.blockedBy = id
      return false
    }
    if chat.head.standing.awaitsGroup {
      // Ours, if the founding was: then its answer is on the way.
      if let groupID = header?.groupID, groupID == chat.operations.first?.prepared?.groupID {
        queue.blockedBy = chat.id
        return false
      }
      return true
    }
    guard chat.head.standing == .active, row.seq > chat.head.processedSeq else { return true }
    guard let header, header.epoch == row.epoch else {
      try undecryptable(row, in: chat)
      return true
    }
    guard header.groupID == chat.head.groupID, let group = try self.group(of: chat) else { return true }
    if row.epoch > group.stored.group.epochNumber { return try catchUp(chat, to: row) }
    if row.kind == .commit {
      guard row.epoch == group.stored.group.epochNumber else { return true }
      try carryOut(commit: row, in: chat, group, byQueue: true)
      return queue.blockedBy != chat.id
    } else {
      try receive(row, in: chat, group)
    }
    return true
  }

  /// The chat whose founding or resetting has this group.
  private func foundingOf(_ groupID: [UInt8]) -> ChatID? {
    chats.values.first { $0.operations.first?.prepared?.groupID == groupID }?.id
  }

  // MARK: Commits that did not come

  /// A row is ahead of the group: the commits between are the only way there (section 3 #4).
  private mutating func catchUp(_ chat: Chat, to row: ServerLogRow) throws(MLSStorageError) -> Bool {
    if queue.hasAskedLog && !chat.isAskingLog {
      // The log has no way there: what is between is gone.
      try comeBack(chat)
      return true
    }
    queue.blockedBy = chat.id
    queue.hasAskedLog = true
    askLog(of: chat)
    return false
  }

  mutating func askLog(of chat: Chat) {
    guard !chat.isAskingLog, let group = chat.head.group else { return }
    chat.isAskingLog = true
    ask(.commits(group, from: chat.head.epoch), for: .log(chat.id))
  }

  mutating func gotLog(
    of id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let chat = chats[id] else { return }
    chat.isAskingLog = false
    switch result {
    case .success(.commits(let rows)):
      // As far as the waiting row needs, or all where nothing waits: the queue has nothing before them then.
      let target: UInt64 =
        if queue.blockedBy == id, case .message(_, let row)? = queue.rows.first?.content { row.epoch } else {
          .max
        }
      for row in rows {
        guard chat.head.standing == .active, let group = try group(of: chat) else { break }
        let epoch = group.stored.group.epochNumber
        guard row.epoch >= epoch else { continue }
        guard row.epoch == epoch, epoch < target else { break }
        // Only our own goes before what the queue still has.
        if target == .max, !queue.isDrained, !isOwn(row, chat) { break }
        try carryOut(commit: row, in: chat, group, byQueue: false)
      }
    case .success: break
    case .failure(let refusal):
      if refusal.saysOut { try wasRemoved(from: chat) }
    }
    try logArrived(in: chat)
    try resumeQueue(for: id)
    try advance(chat)
  }

  private func isOwn(_ row: ServerLogRow, _ chat: Chat) -> Bool {
    chat.operations.first?.prepared?.commit?.commit == row.blob
  }
}
