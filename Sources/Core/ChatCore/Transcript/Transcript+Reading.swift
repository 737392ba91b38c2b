import PalbeMLS
import PalbeUnits

/// Part of a transcript, the oldest row first.
package struct TranscriptPage: Equatable, Sendable {
  package var rows: [Row]
  /// Where to go on towards older rows; nil when there are none.
  package var earlier: TranscriptPosition?
}

extension Transcript {
  /// At most `limit` confirmed rows before a place, and behind the newest of them all that is pending, in the
  /// order it was made (S0-48, S0-51). Only the names of the rows around there are read, and the rows
  /// themselves.
  /// - Parameter isMedia: of the rows only those with a file.
  package mutating func page(
    before end: TranscriptPosition? = nil, limit: Int, isMedia: Bool = false,
    after transaction: MLSTransaction = MLSTransaction()
  ) throws(MLSStorageError) -> TranscriptPage {
    var rows: [Row] = []
    var place = end ?? .highest
    while rows.count < limit, let position = try older(than: place, after: transaction) {
      place = position
      let record = try message(at: position, after: transaction)
      if isMedia, !record.shape.isMedia || record.isDeleted { continue }
      rows.append(try resolve(record, at: position, after: transaction))
    }
    rows.reverse()
    let isAtStart = try older(than: place, after: transaction) == nil
    if end == nil {
      for item in pending.items where item.isRow && !item.isHidden {
        let row = try resolve(item, after: transaction)
        if !isMedia || row.attachment != nil { rows.append(row) }
      }
    }
    return TranscriptPage(rows: rows, earlier: isAtStart ? nil : place)
  }

  /// One row as it is now; nil when it is not here, or no longer.
  package func row(
    _ id: ClientMessageID, after transaction: borrowing MLSTransaction = MLSTransaction()
  ) throws(MLSStorageError) -> Row? {
    if let item = pending[id] {
      return item.isRow && !item.isHidden ? try resolve(item, after: transaction) : nil
    }
    guard let place = try place(of: id, after: transaction), place.state == .row else { return nil }
    return try resolve(
      try message(at: place.position, after: transaction), at: place.position, after: transaction)
  }

  /// What an answer to a row carries; nil for a row that cannot be answered, so that the answer is a plain
  /// text (S0-62).
  package func quote(of id: ClientMessageID) throws(MLSStorageError) -> ReplyReference? {
    guard let row = try row(id), row.kind.isBubble, !row.isDeleted, let sender = row.sender else {
      return nil
    }
    let text = row.excerpt(byteCount: ContentLimits.quoteByteCount)
    return ReplyReference(
      parent: id, quote: ReplyQuote(sender: sender.user, kind: row.kind.word, text: text))
  }

  /// When a new message disappears: what was said for it wins over the chat's default (S0-83).
  package func expiry(explicit: Expiry?) -> Expiry? { explicit ?? summary.profile.timer }

  /// The user has read up to this number here or on another device (S0-96, 2.9g). It never falls. Messages
  /// that disappear after they were read begin to.
  package mutating func markRead(
    upTo seq: Int64, at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    let seq = min(seq, TranscriptPosition.maximumSeq)
    guard seq > summary.readSeq else { return [] }
    summary.readSeq = seq
    if summary.unreadCount > 0 { try countUnread(after: transaction) }
    let changes = try startReaders(upTo: seq, at: now, in: &transaction)
    save(in: &transaction)
    return changes
  }

  private mutating func countUnread(after transaction: borrowing MLSTransaction) throws(MLSStorageError) {
    summary.unreadCount = 0
    guard summary.readSeq < summary.lastSeq else { return }
    while !index.isComplete, index.floor.seq > summary.readSeq { try extendIndex(after: transaction) }
    for position in index.after(seq: summary.readSeq) {
      if countsAsUnread(try message(at: position, after: transaction), at: position) {
        summary.unreadCount += 1
      }
    }
  }

  private mutating func startReaders(
    upTo seq: Int64, at now: ChatTime, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    guard summary.counters.readers > 0 else { return [] }
    var changes: [TranscriptChange] = []
    for key in try storage.keys(under: names.readers, after: transaction) {
      let position = TranscriptPosition(rawValue: TranscriptNames.number(of: key))
      guard position.seq <= seq else { break }
      transaction.erase(key)
      summary.counters.readers = max(0, summary.counters.readers - 1)
      var record = try message(at: position, after: transaction)
      guard let expiry = record.expiry, record.deadline == nil else { continue }
      let deadline = ChatDeadline.read(expiry, at: now)
      record.deadline = deadline
      transaction.put(record, names.row(position))
      try start(ExpiryTimers.Timer(id: record.id, deadline: deadline), at: now, in: &transaction)
      changes.append(.updated(try resolve(record, at: position, after: transaction)))
    }
    return changes
  }

  // MARK: From records to rows

  func resolve(
    _ item: PendingList.Item, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> Row {
    // Only rows come here, and they have a record.
    guard let record = MessageRecord(item.envelope, sender: me, epoch: 0) else { throw .inconsistent }
    var row = try resolve(record, at: nil, after: transaction)
    row.delivery = item.delivery
    return row
  }

  /// The row of a record, with what is about to be done to it, and with the message that it answers.
  func resolve(
    _ record: MessageRecord, at position: TranscriptPosition?, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> Row {
    var row = folded(record, at: position)
    if let reference = row.replyReference { row.reply = try resolve(reference, after: transaction) }
    return row
  }

  private func resolve(
    _ reference: ReplyReference, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> ResolvedReply {
    let id = reference.parent
    var parent: Row?
    var wasHere = false
    if let item = pending[id], let record = MessageRecord(item.envelope, sender: me, epoch: 0) {
      wasHere = true
      if !item.isHidden { parent = folded(record, at: nil) }
    } else if let place = try place(of: id, after: transaction) {
      wasHere = true
      if place.state == .row {
        parent = folded(try message(at: place.position, after: transaction), at: place.position)
      }
    }
    guard let parent, let sender = parent.sender, parent.kind.isBubble else {
      let quote = reference.quote
      // What the user hid, and what was to disappear, does not come back as somebody's quote.
      return ResolvedReply(
        parent: id, state: .unavailable, quoteSender: quote.sender, quoteKind: quote.kind,
        quoteText: wasHere ? nil : quote.text)
    }
    return ResolvedReply(
      parent: id, state: .resolved, quoteSender: sender.user, quoteKind: parent.kind.word,
      quoteText: parent.excerpt(byteCount: ContentLimits.quoteByteCount))
  }

  private func folded(_ record: MessageRecord, at position: TranscriptPosition?) -> Row {
    var record = record
    for action in pending.actions(on: record.id) { record.apply(action) }
    return Row(record, at: position)
  }
}
