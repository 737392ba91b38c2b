import PalbeMLS
import PalbeUnits

extension Transcript {
  /// Makes a chat whole again whose records cannot all be read, or do not fit together: what can be read stays, a row that
  /// cannot becomes one that says so at its place, and everything that is counted is counted anew.
  ///
  /// After `corrupted` or `inconsistent` from any other call; a chat that is whole stays as it is. A record of a newer schema
  /// is no damage: `newerSchema` is thrown, and nothing of it is touched.
  /// - Parameter summary: taken where the chat's own cannot be read. The name, the timer and the read position are gone
  ///   then: nothing counts as unread, and the engine adopts the group's profile again.
  /// - Returns: the transcript, and how many records were lost.
  package static func repair(
    _ summary: ChatSummary, me: DeviceName, storage: any MLSStorage,
    limits: TranscriptLimits = TranscriptLimits(), at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> (transcript: Transcript, lost: Int) {
    let names = TranscriptNames(chat: summary.chat)
    var lost = 0
    var repaired = summary
    if let stored = try storage.read(names.summary, SummaryRecord.self, &lost)?.summary {
      repaired = stored
    } else {
      repaired.readSeq = TranscriptPosition.maximumSeq
    }
    var transcript = Transcript(repaired, me: me, storage: storage, limits: limits)
    try transcript.repairRows(at: now, &lost, in: &transaction)
    try transcript.repairPending(&lost, in: &transaction)
    try transcript.repairOrphans(&lost, in: &transaction)
    try transcript.repairGone(&lost, in: &transaction)
    try transcript.repairReceipts(&lost, in: &transaction)
    if transcript.summary.readSeq == TranscriptPosition.maximumSeq {
      transcript.summary.readSeq = transcript.summary.lastSeq
    }
    try transcript.loadPending(after: transaction)
    try transcript.findPreview(after: transaction)
    if let last = transcript.summary.lastMessage?.sentAt {
      transcript.summary.lastActivity = max(transcript.summary.lastActivity, last)
    }
    transcript.save(in: &transaction)
    return (transcript, lost)
  }

  private mutating func repairRows(
    at now: ChatTime, _ lost: inout Int, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    var places: [ClientMessageID: TranscriptPosition] = [:]
    var rows: [(position: TranscriptPosition, record: MessageRecord)] = []
    for key in try storage.keys(under: names.rows) {
      let position = TranscriptPosition(rawValue: TranscriptNames.number(of: key))
      if let record = try storage.read(key, MessageRecord.self, &lost), places[record.id] == nil {
        places[record.id] = position
        rows.append((position, record))
      } else {
        let record = MessageRecord(
          .unreadable, shape: .unreadable, id: position.localID, sender: nil, epoch: 0, sentAt: now.wall)
        transaction.put(record, key)
        rows.append((position, record))
      }
    }
    for key in try storage.keys(under: names.places) {
      guard let id = ClientMessageID(bytes: TranscriptNames.fields(of: key)) else { continue }
      let place = try storage.read(key, PlaceRecord.self, &lost)
      // A place that leads nowhere, or elsewhere.
      guard let place, place.state != .row || places[id] == place.position else {
        transaction.erase(key)
        continue
      }
    }
    for (position, record) in rows where TranscriptPosition(localID: record.id) == nil {
      transaction.put(PlaceRecord(.row, position), names.place(record.id))
    }
    // The index reads the names again, the timers are made again from the rows.
    transaction.eraseAll(under: names.timers)
    transaction.eraseAll(under: names.readers)
    summary.counters.rows = rows.count
    (summary.counters.timers, summary.counters.readers, summary.unreadCount) = (0, 0, 0)
    summary.deadlines = []
    for (position, record) in rows {
      summary.lastSeq = max(summary.lastSeq, position.seq)
      if countsAsUnread(record, at: position) { summary.unreadCount += 1 }
      try keepTime(of: record, at: position, now: now, in: &transaction)
    }
  }

  private mutating func repairPending(
    _ lost: inout Int, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    summary.counters.pending = 0
    for key in try storage.keys(under: names.pending) {
      summary.counters.nextPending = max(summary.counters.nextPending, TranscriptNames.number(of: key) + 1)
      if let record = try storage.read(key, PendingRecord.self, &lost) {
        if (try? Envelope(serialized: record.bytes.span)) != nil {
          summary.counters.pending += 1
          continue
        }
        lost += 1
      }
      transaction.erase(key)
    }
  }

  private mutating func repairOrphans(
    _ lost: inout Int, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    summary.counters.orphans = 0
    for key in try storage.keys(under: names.orphans) {
      let entry = try? OrphanList.Entry(name: TranscriptNames.fields(of: key))
      if let entry {
        summary.counters.nextOrphan = max(summary.counters.nextOrphan, entry.number + 1)
        summary.lastSeq = max(summary.lastSeq, min(entry.seq, TranscriptPosition.maximumSeq))
      }
      if try storage.read(key, OrphanRecord.self, &lost) != nil, entry != nil {
        summary.counters.orphans += 1
      } else {
        transaction.erase(key)
      }
    }
  }

  private mutating func repairGone(
    _ lost: inout Int, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    let keys = try storage.keys(under: names.gone)
    for key in keys {
      guard let id = try storage.read(key, GoneRecord.self, &lost)?.id else {
        transaction.erase(key)
        continue
      }
      // Where its place was lost, it stays gone.
      if try storage.read(names.place(id), after: transaction) == nil {
        transaction.put(PlaceRecord(.hidden, .lowest), names.place(id))
      }
    }
    guard let first = keys.first, let last = keys.last else { return }
    summary.counters.gone = TranscriptNames.number(of: first)..<TranscriptNames.number(of: last) + 1
  }

  private mutating func repairReceipts(
    _ lost: inout Int, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) {
    for key in try storage.keys(under: names.receipts) {
      guard let receipt = try storage.read(key, ReceiptRecord.self, &lost) else {
        transaction.erase(key)
        continue
      }
      summary.deliveredUpTo = max(summary.deliveredUpTo, receipt.delivered)
      summary.readUpTo = max(summary.readUpTo, receipt.read)
    }
  }
}

extension MLSStorage {
  /// A record that may be damaged: nil, and one more that is lost, where it cannot be read.
  fileprivate func read<Record: ChatRecord>(
    _ key: MLSRecordKey, _ type: Record.Type, _ lost: inout Int
  ) throws(MLSStorageError) -> Record? {
    do throws(MLSStorageError) {
      return try read(key, as: type)
    } catch {
      guard case .corrupted = error else { throw error }
      lost += 1
      return nil
    }
  }
}
