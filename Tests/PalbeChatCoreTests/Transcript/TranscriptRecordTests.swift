import PalbeMLS
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeChatCore

@Suite struct TranscriptRecordTests {
  typealias Rig = TranscriptRig

  /// One of each, every field set.
  static func samples() throws -> [RecordSample] {
    let rig = try Rig()
    let id = ClientMessageID(bytes: [UInt8](1...16))!
    let target = ClientMessageID(bytes: [UInt8](repeating: 9, count: 16))!
    let quote = ReplyReference(
      parent: target, quote: ReplyQuote(sender: Rig.cleo.user, kind: "text", text: "quoted"))
    let mention = Mention(start: 0, length: 2, user: Rig.me.user)
    let envelope = Envelope(
      id: id, sentAt: rig.now.wall, content: .text(TextBody("héllo", mentions: [mention], reply: quote)),
      expiry: Expiry(seconds: 60, start: .read))
    var message = try #require(MessageRecord(envelope, sender: Rig.ben, epoch: 7))
    message.apply(
      try #require(
        MessageAction(.reaction(target: id, emoji: "👍", isRemoved: false), by: Rig.cleo.user, seq: 4)))
    message.apply(try #require(MessageAction(.edit(target: id, TextBody("b")), by: Rig.ben.user, seq: 5)))
    message.deadline = ChatDeadline(.seconds(9), after: rig.now)
    let system = MessageRecord(
      .system(.memberAdded([Rig.ben.user, Rig.cleo.user])), shape: .system, id: id, sender: nil, epoch: 1,
      sentAt: rig.now.wall)
    let unsupported = try #require(
      MessageRecord(
        Envelope(id: id, sentAt: rig.now.wall, content: .unknown(field: 40), fallback: "f"), sender: Rig.ben,
        epoch: 1))
    var summary = ChatSummary(chat: [1, 2], kind: .direct, state: .active, createdAt: rig.now.wall)
    (summary.group, summary.peer) = (GroupID(bytes: [UInt8](1...16)), Rig.ben.user)
    (summary.notifyScope, summary.consent) = (NotifyScope.none, .denied)
    summary.serverUnread = ServerUnread(groupMaxSeq: 9, lastReadSeq: 8, deliveredSeq: 7, unreadCount: 1)
    summary.profile = GroupProfile(
      name: "n", nameVersion: ProfileVersion(epoch: 1, seq: 2, control: id), timer: Expiry(seconds: 3),
      timerVersion: ProfileVersion(epoch: 2, seq: 3))
    summary.lastMessage = MessagePreview(Row(message, at: TranscriptPosition(seq: 6)))
    summary.lastMessage?.delivery = .failed(code: "forbidden")
    (summary.lastSeq, summary.readSeq, summary.unreadCount) = (9, 8, 1)
    (summary.deliveredUpTo, summary.readUpTo) = (5, 4)
    summary.deadlines = [ChatDeadline(.seconds(1), after: rig.now)]
    summary.counters = FoldCounters(
      rows: 1, trimmedThrough: TranscriptPosition(rawValue: 77), pending: 2, nextPending: 3, orphans: 4,
      nextOrphan: 5, timers: 6, readers: 7, gone: 8..<9)
    let edit = Envelope(id: id, sentAt: rig.now.wall, content: .edit(target: target, TextBody("b")))
    let orphan = OrphanRecord(
      user: Rig.ben.user, seq: 3, deadline: ChatDeadline(.seconds(1), after: rig.now),
      bytes: try edit.serialized())
    var receipt = ReceiptRecord()
    (receipt.delivered, receipt.read) = (3, 2)
    return [
      RecordSample(message), RecordSample(system), RecordSample(unsupported),
      RecordSample(SummaryRecord(summary)),
      RecordSample(PendingRecord(failure: "f", isHidden: true, bytes: try envelope.serialized())),
      RecordSample(orphan), RecordSample(PlaceRecord(.hidden, TranscriptPosition(rawValue: 5))),
      RecordSample(receipt), RecordSample(GoneRecord(id)),
    ]
  }

  @Test("S0-54 every record is read as it was written")
  func roundTrip() throws {
    for sample in try Self.samples() { #expect(sample.roundTrip(sample.bytes) == true) }
  }

  @Test("S0-54 no part of a record is one, nor is a record with a byte behind it or one of a newer schema")
  func truncation() throws {
    for sample in try Self.samples() {
      for count in sample.bytes.indices { #expect(sample.roundTrip(Array(sample.bytes[..<count])) == nil) }
      #expect(sample.roundTrip(sample.bytes + [0]) == nil)
    }
    let newer: [UInt8] = [ChatSchema.current + 1, 1]
    #expect(throws: MLSStorageError.newerSchema(found: 2, known: 1)) {
      _ = try GoneRecord(decoding: newer.span)
    }
    #expect(throws: MLSStorageError.self) {
      _ = try GoneRecord(decoding: [UInt8](repeating: 0, count: 17).span)
    }
  }

  @Test("S0-54 a changed byte is refused or read, and never a trap")
  func corruption() throws {
    for sample in try Self.samples() {
      for index in sample.bytes.indices {
        for value in [0, 1, 0x7f, 0xff] as [UInt8] {
          var changed = sample.bytes
          changed[index] = value
          #expect(sample.roundTrip(changed) != false)
        }
      }
    }
  }

  @Test("S0-54 the bytes of records stay what they are")
  func golden() {
    func bytes(_ record: some ChatRecord) -> String { Hex.encode(record.record.withSpan { [UInt8]($0) }) }
    #expect(bytes(PlaceRecord(.row, TranscriptPosition(seq: 258)!)) == "01010000000000010200")
    #expect(bytes(MarkRecord()) == "01")
    let record = MessageRecord(
      .system(.renamed("ab")), shape: .system, id: ClientMessageID(bytes: [UInt8](1...16))!, sender: Rig.ben,
      epoch: 2, sentAt: WallTime(microseconds: 3))
    #expect(
      bytes(record)
        == "01" + "0102030405060708090a0b0c0d0e0f10" + "01" + String(repeating: "02", count: 16)
        + String(repeating: "01", count: 16) + "0000000000000002" + "0000000000000003" + "08"
        + "0304000000026162" + "0000000000000000" + "0000" + "00" + "00")
  }

  @Test("a record that cannot be read is an error with a type, and what was there stays")
  func damaged() throws {
    var rig = try Rig()
    let id = try rig.text("a")
    let key = try #require(
      rig.storage.keys(under: MLSRecordKey(group: Rig.chat, name: [])).first {
        $0.name.starts(with: [0x80, 0x54, 1])
      })
    var transaction = MLSTransaction()
    transaction.write(MLSRecord(copying: [1, 2, 3].span), key)
    try rig.storage.apply(transaction)
    #expect(throws: MLSStorageError.self) { _ = try rig.transcript.row(id) }
    #expect(throws: MLSStorageError.self) { _ = try rig.rows() }
    #expect(rig.preview?.text == "a")
  }

  @Test("a place names its row and is named by it; a message's id names none")
  func localIDs() {
    var random = RandomSource(seed: 1)
    for seq in [0, 1, 77, 1 << 30, TranscriptPosition.maximumSeq] as [Int64] {
      for part in [0, 1, 255] as [UInt8] {
        let position = TranscriptPosition(seq: seq, part: part)!
        #expect(TranscriptPosition(localID: position.localID) == position)
        #expect(position.seq == seq && position.part == part)
      }
    }
    for _ in 0..<100 {
      let id = ClientMessageID(at: WallTime(microseconds: 1_700_000_000_000_000), using: &random)
      #expect(TranscriptPosition(localID: id) == nil)
    }
    #expect(TranscriptPosition(seq: -1) == nil && TranscriptPosition(seq: .max) == nil)
  }
}

/// A record's bytes, and whether others are one that is written as it was read; nil when they are none.
struct RecordSample {
  let bytes: [UInt8]
  let roundTrip: ([UInt8]) -> Bool?

  init<Record: ChatRecord>(_ record: Record) {
    bytes = record.record.withSpan { [UInt8]($0) }
    roundTrip = { bytes in
      guard let read = try? Record(decoding: bytes.span) else { return nil }
      if let message = read as? MessageRecord { _ = Row(message, at: .lowest) }
      return (try? Record(read.record)) == read
    }
  }
}
