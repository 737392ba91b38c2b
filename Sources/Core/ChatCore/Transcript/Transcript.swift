import PalbeMLS
import PalbeUnits

/// How much a transcript keeps.
package struct TranscriptLimits: Hashable, Sendable {
  /// Confirmed rows of a chat; the oldest go first, at each write (S0-53).
  package var rows = 1_000
  /// Actions that wait for their message; the oldest go first.
  package var orphans = 512
  /// Messages that are gone and still known by their ids, so that nothing brings them back.
  package var gone = 1_000

  package init() {}
}

/// What one chat shows on this device: the fold of all that its members sent (S3-21).
///
///     var transcript = try Transcript.load(chat, me: me, from: storage) ?? …
///     try group.update { … } also: { received, transaction throws(MLSStorageError) in
///       changes = try transcript.apply(incoming, in: &transaction)
///     }
///
/// Every mutation reads through the transaction it is given and writes its records into it, so that a
/// decrypted message, its rows and the key that is erased are one. When the transaction is not carried out,
/// the caller puts back the copy it took before. Nothing is kept in memory that is not in the records: a
/// transcript that is loaded again goes on as this one.
///
/// A message costs the same in every chat: its row, its place and the summary are written, one lookup tells
/// that it is new, and beyond the cap the oldest row is erased. The order of rows is read from the names of
/// records, a block at a time, when somebody pages.
package struct Transcript: Sendable {
  /// This device.
  package let me: DeviceName
  /// The chat as the list shows it.
  package internal(set) var summary: ChatSummary

  let storage: any MLSStorage
  let names: TranscriptNames
  let limits: TranscriptLimits
  var pending = PendingList()
  var index = OrderIndex()
  /// Nil until they are needed.
  var orphans: OrphanList?
  /// Nil until they are needed.
  var timers: ExpiryTimers?
  /// As the transaction, or before it the storage, has it.
  private var written: ChatSummary?

  init(
    _ summary: ChatSummary, me: DeviceName, storage: any MLSStorage, limits: TranscriptLimits
  ) {
    (self.summary, self.me, self.storage, self.limits) = (summary, me, storage, limits)
    names = TranscriptNames(chat: summary.chat)
  }

  /// A chat that is new on this device.
  package static func create(
    _ summary: ChatSummary, me: DeviceName, storage: any MLSStorage,
    limits: TranscriptLimits = TranscriptLimits(), in transaction: inout MLSTransaction
  ) -> Transcript {
    var transcript = Transcript(summary, me: me, storage: storage, limits: limits)
    transcript.save(in: &transaction)
    return transcript
  }

  /// A chat from its records; nil where there is none. Throws `newerSchema`, `corrupted`.
  package static func load(
    _ chat: [UInt8], me: DeviceName, from storage: any MLSStorage,
    limits: TranscriptLimits = TranscriptLimits()
  ) throws(MLSStorageError) -> Transcript? {
    guard let summary = try ChatSummary.load(chat, from: storage) else { return nil }
    var transcript = Transcript(summary, me: me, storage: storage, limits: limits)
    transcript.written = summary
    try transcript.loadPending()
    return transcript
  }

  /// Erases all of a chat's rows and its summary.
  package static func eraseAll(_ chat: [UInt8], in transaction: inout MLSTransaction) {
    let names = TranscriptNames(chat: chat)
    transaction.eraseAll(under: names.all)
    transaction.erase(names.summary)
  }

  /// Changes what of the summary is the engine's.
  package mutating func updateSummary(
    in transaction: inout MLSTransaction, _ body: (inout ChatSummary) -> Void
  ) {
    body(&summary)
    save(in: &transaction)
  }

  /// Writes the summary when it changed; the last step of every mutation.
  mutating func save(in transaction: inout MLSTransaction) {
    guard summary != written else { return }
    transaction.put(SummaryRecord(summary), names.summary)
    written = summary
  }

  mutating func loadPending(
    after transaction: borrowing MLSTransaction = MLSTransaction()
  ) throws(MLSStorageError) {
    guard summary.counters.pending > 0 else { return }
    for key in try storage.keys(under: names.pending, after: transaction) {
      guard let record = try storage.read(key, as: PendingRecord.self, after: transaction) else { continue }
      guard let envelope = try? Envelope(serialized: record.bytes.span) else { throw .inconsistent }
      var item = PendingList.Item(
        number: TranscriptNames.number(of: key), envelope: envelope, me: me.user)
      (item.failure, item.isHidden) = (record.failure, record.isHidden)
      pending.append(item)
    }
  }
}

// MARK: Reading through a transaction

extension Transcript {
  func place(
    of id: ClientMessageID, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> PlaceRecord? {
    if let position = TranscriptPosition(localID: id) {
      return try storage.read(names.row(position), after: transaction) == nil
        ? nil : PlaceRecord(.row, position)
    }
    return try storage.read(names.place(id), as: PlaceRecord.self, after: transaction)
  }

  func message(
    at position: TranscriptPosition, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> MessageRecord {
    // A place without a row, or a name without a record.
    let record = try storage.read(names.row(position), as: MessageRecord.self, after: transaction)
    guard let record else { throw .inconsistent }
    return record
  }

  /// Counts for the unread messages of this user (S0-89).
  func countsAsUnread(_ record: MessageRecord, at position: TranscriptPosition) -> Bool {
    record.shape.isBubble && !record.isDeleted && record.sender?.user != me.user
      && position.seq > summary.readSeq
  }

  /// The newest row before a place; nil for none. No more is read of the rows' order than that takes.
  mutating func older(
    than place: TranscriptPosition, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> TranscriptPosition? {
    while true {
      if let older = index.last(before: place) { return older }
      if index.isComplete { return nil }
      try extendIndex(after: transaction)
    }
  }

  /// Learns more of the rows' order: the next block of numbers, or everything where blocks are empty.
  mutating func extendIndex(
    all: Bool = false, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) {
    guard !index.isComplete else { return }
    let newest = index.floor == .highest ? summary.lastSeq : index.floor.seq - 1
    // Numbers without rows, such as those of reactions, may fill many blocks.
    let readsAll = all || newest < 256 || index.emptyBlocks >= 4
    let block = newest >> 8
    let prefix = readsAll ? names.rows : names.block(block)
    var older: [TranscriptPosition] = []
    for key in try storage.keys(under: prefix, after: transaction) {
      let position = TranscriptPosition(rawValue: TranscriptNames.number(of: key))
      if position < index.floor { older.append(position) }
    }
    index.emptyBlocks = older.isEmpty ? index.emptyBlocks + 1 : 0
    let floor = readsAll ? .lowest : TranscriptPosition(rawValue: UInt64(block) << 16)
    index.extend(with: older, downTo: floor)
    if index.count >= summary.counters.rows { index.extend(with: [], downTo: .lowest) }
  }
}
