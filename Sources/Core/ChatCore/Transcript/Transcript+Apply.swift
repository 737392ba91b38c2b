import PalbeMLS
import PalbeUnits

extension Transcript {
  /// Folds in a message that MLS authenticated and the engine let through; what it needs a role for (a name,
  /// a timer) has been checked. The same message again changes nothing.
  package mutating func apply(
    _ incoming: Incoming, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    let envelope = incoming.envelope
    guard incoming.seq > 0, let position = TranscriptPosition(seq: incoming.seq),
      TranscriptPosition(localID: envelope.id) == nil
    else { return [] }
    if pending[envelope.id] != nil {
      // Ours came by the queue before the server's answer. Nobody else's takes its name away.
      guard incoming.sender == me else { return [] }
      return try confirm(
        envelope.id, seq: incoming.seq, epoch: incoming.epoch, serverAt: incoming.serverAt,
        at: incoming.receivedAt, in: &transaction)
    }
    var changes: [TranscriptChange]
    if let action = MessageAction(envelope.content, by: incoming.sender.user, seq: incoming.seq) {
      changes = try act(action, from: envelope, at: incoming.receivedAt, in: &transaction)
    } else if case .control(let body) = envelope.content {
      changes = try control(body, incoming, at: position, in: &transaction)
    } else if let record = MessageRecord(envelope, sender: incoming.sender, epoch: incoming.epoch) {
      changes = try receive(record, incoming, at: position, in: &transaction)
    } else {
      changes = []
    }
    summary.lastSeq = max(summary.lastSeq, incoming.seq)
    changes += try trim(at: incoming.receivedAt, in: &transaction)
    save(in: &transaction)
    return changes
  }

  private mutating func receive(
    _ record: MessageRecord, _ incoming: Incoming, at position: TranscriptPosition,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard try place(of: record.id, after: transaction) == nil,
      let position = try freePosition(position, after: transaction)
    else { return [] }
    var record = record
    record.deadline = deadline(of: record, incoming)
    guard let row = try insert(record, at: position, now: incoming.receivedAt, in: &transaction) else {
      return []
    }
    summary.lastActivity = max(summary.lastActivity, incoming.serverAt)
    var changes: [TranscriptChange] = [.inserted(row)]
    // Decided once, with the row: what is edited into it later calls nobody (S0-80).
    if incoming.sender.user != me.user, !row.isDeleted,
      case .text(let body) = incoming.envelope.content, body.mentions.contains(where: { $0.user == me.user })
    {
      changes.append(.elevated(row.id))
    }
    return changes
  }

  /// When a message that comes in, or is confirmed, disappears here; nil for never, or not before it is read.
  func deadline(of record: MessageRecord, _ incoming: Incoming) -> ChatDeadline? {
    guard let expiry = record.expiry else { return nil }
    switch expiry.start {
    case .send:
      return .sent(
        expiry, sentAt: record.sentAt, serverAt: incoming.serverAt, receivedAt: incoming.receivedAt)
    // Who wrote it has read it.
    case .read where incoming.sender.user == me.user || incoming.seq <= summary.readSeq:
      return .read(expiry, at: incoming.receivedAt)
    case .read: return nil
    }
  }

  /// A row for a message that cannot be read, here for good. Again for the same number it changes nothing.
  package mutating func addUnreadable(
    seq: Int64, from sender: DeviceName?, epoch: UInt64, at now: ChatTime,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    try addLocal(.unreadable, .unreadable, seq: seq, by: sender, epoch: epoch, at: now, in: &transaction)
  }

  /// A row for what happened to the chat at a place in the server's log, behind what was said there. The same
  /// event again changes nothing.
  package mutating func addSystem(
    _ event: SystemEvent, seq: Int64, by actor: DeviceName? = nil, epoch: UInt64 = 0, at now: ChatTime,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    try addLocal(.system(event), .system, seq: seq, by: actor, epoch: epoch, at: now, in: &transaction)
  }

  private mutating func addLocal(
    _ body: MessageRecord.Body, _ shape: MessageRecord.Shape, seq: Int64, by sender: DeviceName?,
    epoch: UInt64,
    at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard (0...TranscriptPosition.maximumSeq).contains(seq) else { return [] }
    var part: UInt8 = 0
    for key in try storage.keys(under: names.parts(of: seq), after: transaction) {
      guard let last = key.name.last, let position = TranscriptPosition(seq: seq, part: last) else {
        continue
      }
      let other = try message(at: position, after: transaction)
      if other.body == body, other.sender == sender { return [] }
      part = last
    }
    guard part < .max, let position = TranscriptPosition(seq: seq, part: part + 1),
      position > summary.counters.trimmedThrough
    else { return [] }
    let record = MessageRecord(
      body, shape: shape, id: position.localID, sender: sender, epoch: epoch, sentAt: now.wall)
    summary.lastSeq = max(summary.lastSeq, seq)
    guard let row = try insert(record, at: position, now: now, in: &transaction) else { return [] }
    let changes = [.inserted(row)] + (try trim(at: now, in: &transaction))
    save(in: &transaction)
    return changes
  }

  // MARK: Rows

  /// The place itself, or the next part that is free: two messages with one number are the server's fault,
  /// and none is lost for it. Nil where the place was trimmed, or no part is left.
  func freePosition(
    _ position: TranscriptPosition, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> TranscriptPosition? {
    guard position > summary.counters.trimmedThrough else { return nil }
    if position.seq > summary.lastSeq { return position }
    var free = position
    while try storage.read(names.row(free), after: transaction) != nil {
      guard free.part < .max, let next = TranscriptPosition(seq: free.seq, part: free.part + 1) else {
        return nil
      }
      free = next
    }
    return free
  }

  /// Writes a row that is new, with all that waited for it. Nil when its time is over already.
  mutating func insert(
    _ record: MessageRecord, at position: TranscriptPosition, now: ChatTime,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> Row? {
    var record = record
    for action in try takeOrphans(of: record.id, in: &transaction) { record.apply(action) }
    if let deadline = record.deadline, deadline.isDue(at: now) {
      try forget(record.id, as: .expired, at: position, in: &transaction)
      return nil
    }
    transaction.put(record, names.row(position))
    if TranscriptPosition(localID: record.id) == nil {
      transaction.put(PlaceRecord(.row, position), names.place(record.id))
    }
    try keepTime(of: record, at: position, now: now, in: &transaction)
    index.insert(position)
    summary.counters.rows += 1
    if countsAsUnread(record, at: position) { summary.unreadCount += 1 }
    let row = try resolve(record, at: position, after: transaction)
    if row.kind.isBubble, summary.lastMessage.map({ $0.position.map { $0 < position } ?? false }) ?? true {
      summary.lastMessage = MessagePreview(row)
    }
    return row
  }

  // MARK: Actions

  /// Folds an action into its message, or parks it until that comes (2.9a).
  mutating func act(
    _ action: MessageAction, from envelope: Envelope, at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard let place = try place(of: action.target, after: transaction) else {
      try park(action, from: envelope, at: now, in: &transaction)
      return []
    }
    guard place.state == .row else { return [] }
    let old = try message(at: place.position, after: transaction)
    var new = old
    new.apply(action)
    guard new != old else { return [] }
    transaction.put(new, names.row(place.position))
    if countsAsUnread(old, at: place.position), !countsAsUnread(new, at: place.position) { fallUnread() }
    let row = try resolve(new, at: place.position, after: transaction)
    refreshPreview(row)
    return [.updated(row)]
  }

  mutating func fallUnread() { summary.unreadCount = max(0, summary.unreadCount - 1) }

  /// The preview follows the row it shows.
  mutating func refreshPreview(_ row: Row) {
    if summary.lastMessage?.id == row.id { summary.lastMessage = MessagePreview(row) }
  }

  // MARK: Orphans

  /// Takes the list out, to be changed and kept again. One that is not kept is read anew.
  private mutating func takeOrphanList(
    after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> OrphanList {
    defer { orphans = nil }
    if let orphans { return orphans }
    var list = OrphanList()
    if summary.counters.orphans > 0 {
      for key in try storage.keys(under: names.orphans, after: transaction) {
        list.append(try OrphanList.Entry(name: TranscriptNames.fields(of: key)))
      }
    }
    return list
  }

  private mutating func park(
    _ action: MessageAction, from envelope: Envelope, at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    guard limits.orphans > 0, let bytes = try? envelope.serialized() else { return }
    var list = try takeOrphanList(after: transaction)
    guard !list.contains(target: action.target, seq: action.seq) else { return keep(list) }
    while list.entries.count >= limits.orphans { drop(&list, in: &transaction) }
    let entry = OrphanList.Entry(
      number: summary.counters.nextOrphan, target: action.target, seq: action.seq)
    let deadline = ChatDeadline(OrphanRecord.lifetime, after: now)
    let record = OrphanRecord(user: action.user, seq: action.seq, deadline: deadline, bytes: bytes)
    transaction.put(record, names.orphan(entry))
    list.append(entry)
    summary.counters.nextOrphan += 1
    keep(list)
  }

  /// Takes out what waited for a message, in the server's order.
  private mutating func takeOrphans(
    of id: ClientMessageID, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [MessageAction] {
    guard summary.counters.orphans > 0 else { return [] }
    var list = try takeOrphanList(after: transaction)
    var actions: [MessageAction] = []
    for entry in list.take(id) {
      let key = names.orphan(entry)
      if let action = try storage.read(key, as: OrphanRecord.self, after: transaction)?.action {
        actions.append(action)
      }
      transaction.erase(key)
    }
    keep(list)
    return actions
  }

  /// Drops those that waited too long.
  mutating func dropOldOrphans(at now: ChatTime, in transaction: inout MLSTransaction) throws(MLSStorageError)
  {
    guard summary.counters.orphans > 0 else { return }
    var list = try takeOrphanList(after: transaction)
    while let oldest = list.entries.first {
      let record = try storage.read(names.orphan(oldest), as: OrphanRecord.self, after: transaction)
      if let record, !record.deadline.isDue(at: now) { break }
      drop(&list, in: &transaction)
    }
    keep(list)
  }

  private mutating func drop(_ list: inout OrphanList, in transaction: inout MLSTransaction) {
    guard let oldest = list.entries.first else { return }
    transaction.erase(names.orphan(oldest))
    list.removeFirst()
  }

  private mutating func keep(_ list: OrphanList) {
    summary.counters.orphans = list.entries.count
    orphans = list
  }
}
