import PalbeChatCore
import PalbeMLS
import PalbeUnits
import Testing

@Suite struct TranscriptRepairTests {
  typealias Rig = TranscriptRig

  private static let hiddenID = ClientMessageID(bytes: [UInt8](repeating: 7, count: 16))!

  /// A chat with something of everything in it.
  static func full() throws -> TranscriptRig {
    var rig = try Rig()
    let first = try rig.text("first")
    try rig.receive(.react(first, "👍"), from: Rig.cleo)
    try rig.receive(.text("short"), expiry: Expiry(seconds: 600))
    try rig.receive(.text("when read"), expiry: Expiry(seconds: 60, start: .read))
    try rig.hide(try rig.receive(.text("hidden"), id: hiddenID).id)
    try rig.system(.historyGap)
    try rig.receive(.react(rig.id(), "🎉"))
    try rig.markRead(1)
    try rig.text("last")
    try rig.send(.text("pending"))
    try rig.send(.edit(first, "no"))
    try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.note(.read, by: Rig.ben.user, upTo: 3, in: &transaction)
    }
    return rig
  }

  private func repair(_ rig: inout TranscriptRig) throws -> Int {
    var transaction = MLSTransaction()
    let fallback = ChatSummary(chat: Rig.chat, kind: .group, state: .active, createdAt: rig.now.wall)
    let (transcript, lost) = try Transcript.repair(
      fallback, me: Rig.me, storage: rig.storage, at: rig.now, in: &transaction)
    rig.transcript = transcript
    try rig.storage.apply(transaction)
    return lost
  }

  @Test("S2-84 a chat that is whole is the same after a repair")
  func whole() throws {
    var rig = try Self.full()
    let rows = try rig.rows()
    let summary = rig.transcript.summary
    #expect(try repair(&rig) == 0)
    #expect(try rig.rows() == rows)
    #expect(rig.transcript.summary == summary)
  }

  @Test("S2-84 any record may be damaged: a repair loses it alone, and everything goes on")
  func damaged() throws {
    let keys = try Self.full().storage
    let all =
      keys.keys(under: MLSRecordKey(group: Rig.chat, name: []))
      + keys.keys(under: MLSRecordKey(group: nil, name: []))
    #expect(all.count > 15)
    for key in all {
      var rig = try Self.full()
      let rows = try rig.rows()
      var transaction = MLSTransaction()
      transaction.write(MLSRecord(copying: [1, 0xff].span), key)
      try rig.storage.apply(transaction)
      #expect(try ChatSummary.survey(in: rig.storage).damaged.count == (key.group == nil ? 1 : 0))
      let lost = try repair(&rig)
      #expect(lost <= 1)
      let after = try rig.rows()
      // A row is there for every row but a pending one that was lost.
      #expect(after.count >= rows.count - 1 && after.filter { !rows.contains($0) }.count <= 1)
      if key.group == nil { #expect(after == rows && rig.unread == 0) }
      try rig.restart()
      #expect(try rig.rows() == after)
      #expect(try rig.expire().isEmpty)
      rig.pass(600)
      for case .removed(let id) in try rig.expire() { #expect(try rig.transcript.row(id) == nil) }
      if key.group != nil {
        #expect(try rig.receive(.text("hidden"), id: Self.hiddenID).changes.isEmpty, "\(key)")
      }
      let id = try rig.text("new")
      try rig.receive(.react(id, "👍"))
      #expect(try rig.rows().dropLast(1).last?.id == id || rig.rows().last?.id == id)
      try rig.markRead(rig.seq)
      #expect(rig.unread == 0)
      #expect(try repair(&rig) == 0, "\(key)")
    }
  }

  @Test("S2-84 a record that is gone, or leads nowhere, is repaired too; one of a newer schema is left alone")
  func missing() throws {
    for prefix in [[0x80, 0x54, 1], [0x80, 0x54, 2]] as [[UInt8]] {
      var rig = try Self.full()
      let keys = rig.storage.keys(under: MLSRecordKey(group: Rig.chat, name: prefix))
      var transaction = MLSTransaction()
      transaction.erase(keys[0])
      try rig.storage.apply(transaction)
      _ = try repair(&rig)
      for row in try rig.rows() { #expect(try rig.transcript.row(row.id) == row) }
      #expect(
        rig.unread
          == (try rig.rows().filter { $0.sender == Rig.ben && ($0.seq ?? 0) > 1 && $0.kind == .text }).count)
    }
    var rig = try Self.full()
    let key = try #require(
      rig.storage.keys(under: MLSRecordKey(group: Rig.chat, name: [0x80, 0x54, 1])).first)
    var transaction = MLSTransaction()
    transaction.write(MLSRecord(copying: [9, 1].span), key)
    try rig.storage.apply(transaction)
    #expect(throws: MLSStorageError.newerSchema(found: 9, known: 1)) { try repair(&rig) }
  }

  /// Three rows, as many as are kept, at 300 to 302; the records of the oldest so many are gone.
  private func counted(missing count: Int, limit: Int) throws -> TranscriptRig {
    var limits = TranscriptLimits()
    limits.rows = 3
    var rig = try Rig(limits: limits)
    for seq in 300...302 as ClosedRange<Int64> { try rig.text("\(seq)", seq: seq) }
    let keys = rig.storage.keys(under: MLSRecordKey(group: Rig.chat, name: [0x80, 0x54, 1]))
    #expect(keys.count == 3)
    var transaction = MLSTransaction()
    for key in keys.prefix(count) { transaction.erase(key) }
    try rig.storage.apply(transaction)
    rig.limits.rows = limit
    try rig.restart()
    return rig
  }

  @Test("S2-84 S0-53 a count above the rows that are there is told by the next message, and traps nothing")
  func counted() throws {
    // A block is known and nothing lies before it: the oldest that is there goes.
    var rig = try counted(missing: 1, limit: 3)
    #expect(try rig.transcript.page(limit: 1).rows.map(\.text) == ["302"])
    try rig.text("303")
    #expect(try rig.texts() == ["302", "303"])

    // No row at all is left to take away.
    rig = try counted(missing: 3, limit: 2)
    #expect(throws: MLSStorageError.inconsistent) { try rig.receive(.react(rig.id(), "👍")) }
    rig = try counted(missing: 3, limit: 2)
    #expect(throws: MLSStorageError.inconsistent) { try rig.text("303") }
  }
}
