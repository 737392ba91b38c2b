import PalbeUnits

/// What the server says is only its word: a number that no log has comes to its nearest bound here, where answers, rows and
/// events come in, so that nothing behind has to think of overflows.
enum ServerNumbers {
  /// Half of what a transcript can count: two logs of one chat fit behind each other (`ChatHead.seqBase`).
  static let maximumSeq = TranscriptPosition.maximumSeq / 2
  /// Nobody is told to wait for longer.
  static let longestWait = TimeDelta.seconds(3_600)

  static func seq(_ seq: Int64) -> Int64 { min(max(seq, 0), maximumSeq) }
}

extension ServerAnswer {
  var bounded: ServerAnswer {
    switch self {
    case .committed(let seq, let epoch): .committed(seq: ServerNumbers.seq(seq), epoch: epoch)
    case .accepted(let seq, let epoch): .accepted(seq: ServerNumbers.seq(seq), epoch: epoch)
    case .commits(let rows): .commits(rows.map(\.bounded))
    case .queue(let rows, let hasMore): .queue(rows.map(\.bounded), hasMore: hasMore)
    case .unread(let unread):
      .unread(
        ServerUnread(
          groupMaxSeq: ServerNumbers.seq(unread.groupMaxSeq),
          lastReadSeq: ServerNumbers.seq(unread.lastReadSeq),
          deliveredSeq: ServerNumbers.seq(unread.deliveredSeq), unreadCount: max(unread.unreadCount, 0)))
    case .keyPackageCount(let count, let hasLastResort):
      .keyPackageCount(max(count, 0), hasLastResort: hasLastResort)
    default: self
    }
  }
}

extension ServerLogRow {
  var bounded: ServerLogRow {
    var row = self
    row.seq = ServerNumbers.seq(seq)
    return row
  }
}

extension QueueRow {
  var bounded: QueueRow {
    guard case .message(let group, let row) = content else { return self }
    return QueueRow(id: id, content: .message(group, row.bounded))
  }
}

extension LiveEvent {
  var bounded: LiveEvent {
    switch self {
    case .ownRead(let group, let seq): .ownRead(group, ServerNumbers.seq(seq))
    case .delivered(let group, let user, let device, let seq):
      .delivered(group, user, device, ServerNumbers.seq(seq))
    case .read(let group, let user, let seq): .read(group, user, ServerNumbers.seq(seq))
    case .queueChanged, .deviceRevoked, .typing, .presence: self
    }
  }
}

extension ServerRefusal {
  var bounded: ServerRefusal {
    guard case .rateLimited(let wait) = self else { return self }
    return .rateLimited(retryAfter: min(max(wait, .zero), ServerNumbers.longestWait))
  }
}
