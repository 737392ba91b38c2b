import PalbeMLS
import PalbeUnits

extension Transcript {
  /// Shows what this device is about to send, before any network (S3-13): a row at the end, or an action on
  /// its row. What cannot be encoded, or is there already, changes nothing.
  package mutating func insertOptimistic(
    _ envelope: Envelope, at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard pending[envelope.id] == nil, TranscriptPosition(localID: envelope.id) == nil,
      try place(of: envelope.id, after: transaction) == nil,
      // As it will be read again: whole milliseconds.
      let bytes = try? envelope.serialized(), let envelope = try? Envelope(serialized: bytes.span)
    else { return [] }
    let item = PendingList.Item(number: summary.counters.nextPending, envelope: envelope, me: me.user)
    summary.counters.nextPending += 1
    summary.counters.pending += 1
    pending.append(item)
    write(item, in: &transaction)
    var changes: [TranscriptChange] = []
    if item.isRow {
      summary.lastActivity = max(summary.lastActivity, now.wall)
      let row = try resolve(item, after: transaction)
      summary.lastMessage = MessagePreview(row)
      changes = [.inserted(row)]
    } else {
      changes = try update(targetOf: item, after: transaction)
    }
    save(in: &transaction)
    return changes
  }

  /// Gives a pending row another content under its id: a file whose upload is done (S3-18).
  package mutating func replaceOptimistic(
    _ envelope: Envelope, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard var item = pending[envelope.id], item.isRow, let bytes = try? envelope.serialized(),
      let envelope = try? Envelope(serialized: bytes.span)
    else { return [] }
    var new = PendingList.Item(number: item.number, envelope: envelope, me: me.user)
    guard new.isRow else { return [] }
    (new.failure, new.isHidden) = (item.failure, item.isHidden)
    item = new
    return try change(item, in: &transaction)
  }

  /// The server took it under this number. A row keeps its identity and goes to its place (S3-17); an action
  /// holds from now on; a control too. What is not pending (again confirmed, cancelled) changes nothing.
  /// - Parameter serverAt: when the server took it, where that is known.
  package mutating func confirm(
    _ id: ClientMessageID, seq: Int64, epoch: UInt64, serverAt: WallTime? = nil, at now: ChatTime,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard seq > 0, let position = TranscriptPosition(seq: seq), let item = pending[id] else { return [] }
    remove(item, in: &transaction)
    var changes: [TranscriptChange] = []
    let incoming = Incoming(
      seq: seq, sender: me, epoch: epoch, receivedAt: now, serverAt: serverAt ?? now.wall,
      envelope: item.envelope)
    if let action = MessageAction(item.envelope.content, by: me.user, seq: seq) {
      changes = try act(action, from: item.envelope, at: now, in: &transaction)
      // It showed already, or was not allowed: the row is told either way, for it no longer rests on what is
      // pending.
      if changes.isEmpty { changes = try update(targetOf: item, after: transaction) }
    } else if case .control(let body) = item.envelope.content {
      changes = try control(body, incoming, at: position, in: &transaction)
    } else if let record = MessageRecord(item.envelope, sender: me, epoch: epoch) {
      changes = try settle(item, record, incoming, at: position, in: &transaction)
    }
    summary.lastSeq = max(summary.lastSeq, seq)
    changes += try trim(at: now, in: &transaction)
    save(in: &transaction)
    return changes
  }

  /// A pending row goes to its place.
  private mutating func settle(
    _ item: PendingList.Item, _ record: MessageRecord, _ incoming: Incoming, at position: TranscriptPosition,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    var record = record
    record.deadline = deadline(of: record, incoming)
    let free = try freePosition(position, after: transaction)
    if item.isHidden {
      try forget(record.id, as: .hidden, at: free ?? position, in: &transaction)
      return []
    }
    let row: Row? =
      if let free { try insert(record, at: free, now: incoming.receivedAt, in: &transaction) } else { nil }
    if summary.lastMessage?.id == record.id || summary.lastMessage?.position == nil {
      try findPreview(after: transaction)
    }
    return [row.map { .updated($0) } ?? .removed(record.id)]
  }

  /// It did not get to the server, and nothing more is tried: the row stays and says so, an action no longer
  /// shows.
  package mutating func fail(
    _ id: ClientMessageID, code: String, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard var item = pending[id], item.failure != code else { return [] }
    item.failure = code
    return try change(item, in: &transaction)
  }

  /// It is tried again: pending, where it was.
  package mutating func retry(
    _ id: ClientMessageID, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard var item = pending[id], item.failure != nil else { return [] }
    item.failure = nil
    return try change(item, in: &transaction)
  }

  /// It will not be sent.
  package mutating func cancel(
    _ id: ClientMessageID, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard let item = pending[id] else { return [] }
    remove(item, in: &transaction)
    var changes: [TranscriptChange] = []
    if !item.isRow {
      changes = try update(targetOf: item, after: transaction)
    } else if !item.isHidden {
      if summary.lastMessage?.id == id { try findPreview(after: transaction) }
      changes = [.removed(id)]
    }
    save(in: &transaction)
    return changes
  }

  /// What was made and not confirmed, in the order it was made.
  package var unconfirmed: [Envelope] { pending.items.map(\.envelope) }

  // MARK: Parts

  private mutating func change(
    _ item: PendingList.Item, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    pending.replace(item)
    write(item, in: &transaction)
    var changes: [TranscriptChange] = []
    if !item.isRow {
      changes = try update(targetOf: item, after: transaction)
    } else if !item.isHidden {
      let row = try resolve(item, after: transaction)
      refreshPreview(row)
      changes = [.updated(row)]
    }
    save(in: &transaction)
    return changes
  }

  /// Tells of the row that a pending action is on, if it is here.
  private mutating func update(
    targetOf item: PendingList.Item, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard let target = item.action?.target, let row = try row(target, after: transaction) else { return [] }
    refreshPreview(row)
    return [.updated(row)]
  }

  func write(_ item: PendingList.Item, in transaction: inout MLSTransaction) {
    // It was encoded when it came in.
    guard let bytes = try? item.envelope.serialized() else { return }
    let record = PendingRecord(failure: item.failure, isHidden: item.isHidden, bytes: bytes)
    transaction.put(record, names.pending(item.number))
  }

  private mutating func remove(_ item: PendingList.Item, in transaction: inout MLSTransaction) {
    pending.remove(item)
    transaction.erase(names.pending(item.number))
    summary.counters.pending = pending.items.count
  }
}
