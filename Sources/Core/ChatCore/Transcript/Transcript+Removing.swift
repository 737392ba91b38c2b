import PalbeMLS
import PalbeUnits

extension Transcript {
  /// Takes a row away on this device alone, for good (S0-71). What the server has not taken is sent all the
  /// same.
  package mutating func hide(
    _ id: ClientMessageID, at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    if var item = pending[id] {
      guard item.isRow, !item.isHidden else { return [] }
      item.isHidden = true
      pending.replace(item)
      write(item, in: &transaction)
      if summary.lastMessage?.id == id { try findPreview(after: transaction) }
    } else {
      guard let place = try place(of: id, after: transaction), place.state == .row else { return [] }
      try erase(at: place.position, leaving: .hidden, now: now, in: &transaction)
    }
    save(in: &transaction)
    return [.removed(id)]
  }

  /// Takes away what is due: at `nextExpiry`, when the chat is opened, when a clock was set, and when the
  /// device wakes (section 3 #30).
  package mutating func expire(
    at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    var changes: [TranscriptChange] = []
    try loadTimers(after: transaction)
    while let timer = timers?.popDue(at: now) {
      transaction.erase(names.timer(timer))
      guard let place = try place(of: timer.id, after: transaction), place.state == .row else { continue }
      try erase(at: place.position, leaving: .expired, now: now, in: &transaction)
      changes.append(.removed(timer.id))
    }
    try dropOldOrphans(at: now, in: &transaction)
    noteDeadlines(at: now)
    save(in: &transaction)
    return changes
  }

  /// When `expire` has something to do; nil for never.
  package func nextExpiry(at now: ChatTime) -> Instant? { summary.nextExpiry(at: now) }

  /// Erases the oldest rows beyond the cap (S0-53).
  mutating func trim(
    at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    var changes: [TranscriptChange] = []
    while summary.counters.rows > limits.rows {
      try extendIndex(all: true, after: transaction)
      guard let oldest = index.first else { throw .inconsistent }
      let id = try erase(at: oldest, leaving: nil, now: now, in: &transaction)
      summary.counters.trimmedThrough = max(summary.counters.trimmedThrough, oldest)
      changes.append(.removed(id))
    }
    return changes
  }

  /// Erases a confirmed row and all that hangs on it.
  @discardableResult
  private mutating func erase(
    at position: TranscriptPosition, leaving state: PlaceRecord.State?, now: ChatTime,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> ClientMessageID {
    let record = try message(at: position, after: transaction)
    transaction.erase(names.row(position))
    if countsAsUnread(record, at: position) { fallUnread() }
    if let deadline = record.deadline {
      try stop(ExpiryTimers.Timer(id: record.id, deadline: deadline), at: now, in: &transaction)
    } else if record.waitsForReader {
      transaction.erase(names.reader(position))
      summary.counters.readers = max(0, summary.counters.readers - 1)
    }
    index.remove(position)
    summary.counters.rows = max(0, summary.counters.rows - 1)
    if let state {
      try forget(record.id, as: state, at: position, in: &transaction)
    } else {
      transaction.erase(names.place(record.id))
    }
    if summary.lastMessage?.id == record.id { try findPreview(after: transaction) }
    return record.id
  }

  /// Remembers that a message was here and is gone, so that nothing brings it back; the oldest such memory
  /// fades.
  mutating func forget(
    _ id: ClientMessageID, as state: PlaceRecord.State, at position: TranscriptPosition,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    // A row made here is not made again.
    guard TranscriptPosition(localID: id) == nil else { return }
    transaction.put(PlaceRecord(state, position), names.place(id))
    let gone = summary.counters.gone
    transaction.put(GoneRecord(id), names.gone(gone.upperBound))
    summary.counters.gone = gone.lowerBound..<gone.upperBound + 1
    while summary.counters.gone.count > limits.gone {
      let oldest = summary.counters.gone.lowerBound
      if let record = try storage.read(names.gone(oldest), as: GoneRecord.self, after: transaction) {
        transaction.erase(names.place(record.id))
        transaction.erase(names.gone(oldest))
      }
      summary.counters.gone = oldest + 1..<summary.counters.gone.upperBound
    }
  }

  /// Looks for the last that was said, behind what was taken away.
  mutating func findPreview(after transaction: borrowing MLSTransaction) throws(MLSStorageError) {
    if let item = pending.items.last(where: { $0.isRow && !$0.isHidden }) {
      summary.lastMessage = MessagePreview(try resolve(item, after: transaction))
      return
    }
    summary.lastMessage = nil
    var end = TranscriptPosition.highest
    while let position = try older(than: end, after: transaction) {
      end = position
      let record = try message(at: position, after: transaction)
      guard record.shape.isBubble else { continue }
      summary.lastMessage = MessagePreview(try resolve(record, at: position, after: transaction))
      return
    }
  }

  // MARK: Timers

  private mutating func loadTimers(after transaction: borrowing MLSTransaction) throws(MLSStorageError) {
    guard timers == nil else { return }
    var loaded = ExpiryTimers()
    if summary.counters.timers > 0 {
      for key in try storage.keys(under: names.timers, after: transaction) {
        loaded.insert(try ExpiryTimers.Timer(name: TranscriptNames.fields(of: key)))
      }
    }
    timers = loaded
  }

  /// Writes what ends a new row: its deadline, or that its time begins when it is read.
  mutating func keepTime(
    of record: MessageRecord, at position: TranscriptPosition, now: ChatTime,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    if let deadline = record.deadline {
      try start(ExpiryTimers.Timer(id: record.id, deadline: deadline), at: now, in: &transaction)
    } else if record.waitsForReader {
      transaction.put(MarkRecord(), names.reader(position))
      summary.counters.readers += 1
    }
  }

  mutating func start(
    _ timer: ExpiryTimers.Timer, at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    try loadTimers(after: transaction)
    timers?.insert(timer)
    transaction.put(MarkRecord(), names.timer(timer))
    noteDeadlines(at: now)
  }

  private mutating func stop(
    _ timer: ExpiryTimers.Timer, at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    try loadTimers(after: transaction)
    timers?.remove(timer.id)
    transaction.erase(names.timer(timer))
    noteDeadlines(at: now)
  }

  private mutating func noteDeadlines(at now: ChatTime) {
    summary.counters.timers = timers?.count ?? 0
    summary.deadlines = timers?.soonest(at: now) ?? []
  }
}
