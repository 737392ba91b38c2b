import PalbeUnits

@testable import PalbeChatCore

extension FuzzTarget {
  /// Records of a transcript: what is read is written as it was read, and can be shown.
  ///
  /// Input: a byte that says which record, and its bytes.
  static let chatRecord = FuzzTarget(name: "chat-record") { bytes in
    guard let kind = bytes.first else { return }
    let rest = Array(bytes.dropFirst())
    switch kind % 7 {
    case 0:
      check(rest, MessageRecord.self) { record in
        let row = Row(record, at: .lowest)
        demand(MessagePreview(row) == nil || row.kind.isBubble, "a preview of nothing")
      }
    case 1: check(rest, SummaryRecord.self)
    case 2: check(rest, PendingRecord.self)
    case 3: check(rest, OrphanRecord.self) { _ = $0.action }
    case 4: check(rest, PlaceRecord.self)
    case 5: check(rest, ReceiptRecord.self)
    default: check(rest, GoneRecord.self)
    }
    if let orphan = try? OrphanList.Entry(name: rest) {
      demand(orphan.target.bytes == Array(rest[8..<24]), "a name")
    }
    _ = try? ExpiryTimers.Timer(name: rest)
  }

  private static func check<Record: ChatRecord>(
    _ bytes: [UInt8], _ type: Record.Type, _ use: (Record) -> Void = { _ in }
  ) {
    guard let record = try? Record(decoding: bytes.span) else { return }
    use(record)
    demand((try? Record(record.record)) == record, "\(type) changes")
  }
}
