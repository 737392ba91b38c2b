import PalbeMLS
import PalbeUnits

extension Transcript {
  /// A name or a timer holds when its place in the server's order is behind that of the one before, and makes
  /// a row that nobody said; a message's own time never touches the chat's (S0-84, section 3 #28).
  mutating func control(
    _ body: ControlBody, _ incoming: Incoming, at position: TranscriptPosition,
    in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    let id = incoming.envelope.id
    let version = ProfileVersion(epoch: incoming.epoch, seq: incoming.seq, control: id)
    let event: SystemEvent
    switch body {
    case .renamed(let name): event = .renamed(name)
    case .timer(let expiry): event = .timerChanged(expiry)
    case .timerAcknowledged(let control):
      if control == summary.profile.timerVersion.control {
        transaction.put(MarkRecord(), names.acknowledgement(incoming.sender.user))
      }
      return []
    // The engine's affairs.
    case .leaving, .profile: return []
    }
    guard try place(of: id, after: transaction) == nil else { return [] }
    switch body {
    case .renamed(let name) where version > summary.profile.nameVersion:
      (summary.profile.name, summary.profile.nameVersion) = (name.isEmpty ? nil : name, version)
    case .timer(let expiry) where version > summary.profile.timerVersion:
      setTimer(expiry, version, in: &transaction)
      transaction.put(MarkRecord(), names.acknowledgement(incoming.sender.user))
    default: break
    }
    guard let free = try freePosition(position, after: transaction) else { return [] }
    let record = MessageRecord(
      .system(event), shape: .system, id: id, sender: incoming.sender, epoch: incoming.epoch,
      sentAt: incoming.envelope.sentAt)
    return try insert(record, at: free, now: incoming.receivedAt, in: &transaction).map { [.inserted($0)] }
      ?? []
  }

  /// Takes over name and timer from a profile that the engine trusts, each where it is newer than what is
  /// known here. Rows do not change.
  package mutating func adopt(_ profile: GroupProfile, in transaction: inout MLSTransaction) {
    if profile.nameVersion > summary.profile.nameVersion || summary.profile.nameVersion == .initial {
      (summary.profile.name, summary.profile.nameVersion) = (profile.name, profile.nameVersion)
    }
    if profile.timerVersion > summary.profile.timerVersion || summary.profile.timerVersion == .initial {
      setTimer(profile.timer, profile.timerVersion, in: &transaction)
    }
    save(in: &transaction)
  }

  private mutating func setTimer(
    _ expiry: Expiry?, _ version: ProfileVersion, in transaction: inout MLSTransaction
  ) {
    if version != summary.profile.timerVersion { transaction.eraseAll(under: names.acknowledgements) }
    (summary.profile.timer, summary.profile.timerVersion) = (expiry, version)
  }

  /// Who said that a device of theirs applied the timer that holds now (S0-86); cooperative, as the timer is.
  package func timerAcknowledgedBy() throws(MLSStorageError) -> [UserID] {
    try storage.keys(under: names.acknowledgements).compactMap {
      UserID(bytes: TranscriptNames.fields(of: $0))
    }
  }

  // MARK: Receipts

  /// How far a device of another user got, or what they have read: a user's devices, and all peers, count by
  /// the furthest, and nothing ever falls (S0-91). True when anything changed. What this user's own devices
  /// say is `markRead`.
  @discardableResult
  package mutating func note(
    _ kind: ReceiptKind, by user: UserID, upTo seq: Int64, in transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> Bool {
    guard user != me.user, seq > 0 else { return false }
    let seq = min(seq, TranscriptPosition.maximumSeq)
    var receipt = try receipt(of: user, after: transaction)
    let old = receipt
    switch kind {
    case .delivered: receipt.delivered = max(receipt.delivered, seq)
    case .read: receipt.read = max(receipt.read, seq)
    }
    guard receipt != old else { return false }
    transaction.put(receipt, names.receipt(user))
    summary.deliveredUpTo = max(summary.deliveredUpTo, receipt.delivered)
    summary.readUpTo = max(summary.readUpTo, receipt.read)
    save(in: &transaction)
    return true
  }

  /// How far a user's devices got and what they have read; 0 for nothing known (S0-97).
  package func watermarks(of user: UserID) throws(MLSStorageError) -> (delivered: Int64, read: Int64) {
    let receipt = try receipt(of: user, after: MLSTransaction())
    return (receipt.delivered, receipt.read)
  }

  /// The other users who have read up to this number, by their ids (S0-97).
  package func readers(upTo seq: Int64) throws(MLSStorageError) -> [UserID] {
    var readers: [UserID] = []
    for key in try storage.keys(under: names.receipts) {
      guard let user = UserID(bytes: TranscriptNames.fields(of: key)),
        let receipt = try storage.read(key, as: ReceiptRecord.self)
      else { continue }
      if receipt.read >= seq { readers.append(user) }
    }
    return readers
  }

  private func receipt(
    of user: UserID, after transaction: borrowing MLSTransaction
  ) throws(MLSStorageError) -> ReceiptRecord {
    try storage.read(names.receipt(user), as: ReceiptRecord.self, after: transaction) ?? ReceiptRecord()
  }
}
