import PalbeChatCore
import PalbeMLS
import PalbeUnits
import Testing

@Suite struct TranscriptSendingTests {
  typealias Rig = TranscriptRig

  @Test("S3-13 S3-14 S3-15 S3-16 a message shows at once, with what is known of it, and survives a restart")
  func optimistic() throws {
    var rig = try Rig()
    try rig.text("theirs")
    let sent = try rig.send(.text("mine"))
    let row = try rig.row(sent.id)
    #expect(sent.changes == [.inserted(row)])
    #expect(row.delivery == .pending && row.seq == nil && row.sender == Rig.me && row.text == "mine")
    #expect(row.sentAt == rig.now.wall && row.reactions.isEmpty && row.kind == .text && row.epoch == 0)
    #expect(try rig.texts() == ["theirs", "mine"])
    #expect(rig.preview?.text == "mine" && rig.unread == 1)
    try rig.restart()
    #expect(try rig.row(sent.id) == row)
    #expect(rig.transcript.unconfirmed.map(\.id) == [sent.id])
  }

  @Test("S3-7 S3-17 S0-39 the confirmed row is the same row, at its place, once")
  func confirmation() throws {
    var rig = try Rig()
    let first = try rig.send(.text("1")).id
    let second = try rig.send(.text("2")).id
    try rig.text("theirs", seq: 1)
    #expect(try rig.texts() == ["theirs", "1", "2"])
    #expect(try rig.confirm(first, seq: 2) == [.updated(try rig.row(first))])
    #expect(try rig.texts() == ["theirs", "1", "2"])
    try rig.confirm(second, seq: 3)
    #expect(try rig.rows().map(\.id) == [try rig.rows()[0].id, first, second])
    let row = try rig.row(second)
    #expect(row.delivery == .sent && row.seq == 3 && row.epoch == 4)
    #expect(try rig.confirm(second, seq: 3).isEmpty)
    #expect(try rig.rows().count == 3 && rig.unread == 1)
    #expect(rig.preview?.id == second && rig.preview?.delivery == .sent)
  }

  @Test("S3-17 an own message that comes by the queue first is the confirmation; nobody else's takes its id")
  func echo() throws {
    var rig = try Rig()
    let id = try rig.send(.text("mine")).id
    #expect(try rig.receive(.text("stolen"), id: id, seq: 5).changes.isEmpty)
    #expect(try rig.row(id).text == "mine")
    try rig.receive(.text("mine"), from: Rig.me, id: id, seq: 4)
    #expect(try rig.row(id).seq == 4 && rig.transcript.unconfirmed.isEmpty)
    #expect(try rig.confirm(id, seq: 4).isEmpty)
    #expect(try rig.receive(.text("stolen"), id: id, seq: 6).changes.isEmpty)
    #expect(try rig.texts() == ["mine"])
  }

  @Test("S3-18 a failure stays and says so; retried it keeps its place; cancelled it is gone")
  func failure() throws {
    var rig = try Rig()
    try rig.text("theirs")
    let first = try rig.send(.text("1")).id
    let second = try rig.send(.text("2")).id
    let changes = try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.fail(first, code: "no_key_package", in: &transaction)
    }
    #expect(changes == [.updated(try rig.row(first))])
    try rig.restart()
    #expect(try rig.row(first).delivery == .failed(code: "no_key_package"))
    try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.retry(first, in: &transaction)
    }
    #expect(try rig.texts() == ["theirs", "1", "2"] && rig.row(first).delivery == .pending)
    let gone = try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.cancel(second, in: &transaction) + transcript.cancel(first, in: &transaction)
    }
    #expect(gone == [.removed(second), .removed(first)])
    #expect(try rig.texts() == ["theirs"] && rig.preview?.text == "theirs")
    try rig.restart()
    #expect(try rig.texts() == ["theirs"])
    #expect(try rig.confirm(first).isEmpty)
  }

  @Test("S3-18 a file's row is there before its upload is, and gets its descriptor under the same id")
  func replacement() throws {
    var rig = try Rig()
    let id = try rig.send(.custom(type: "upload", payload: [1])).id
    let done = rig.envelope(id, .custom(type: "upload", payload: [2]))
    try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.replaceOptimistic(done, in: &transaction)
    }
    try rig.restart()
    #expect(try rig.row(id).kind == .custom(type: "upload", payload: [2]))
    #expect(try rig.rows().count == 1)
  }

  @Test(
    "S0-66 an own edit shows at once, goes when it fails, comes back when it is retried, holds when confirmed"
  )
  func ownEdit() throws {
    var rig = try Rig()
    let id = try rig.send(.text("a")).id
    try rig.confirm(id)
    let edit = try rig.send(.edit(id, "b")).id
    #expect(try rig.row(id).text == "b" && rig.row(id).isEdited && rig.preview?.text == "b")
    try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.fail(edit, code: "unavailable", in: &transaction)
    }
    #expect(try rig.row(id).text == "a" && !rig.row(id).isEdited && rig.preview?.text == "a")
    try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.retry(edit, in: &transaction)
    }
    try rig.restart()
    #expect(try rig.row(id).text == "b")
    try rig.confirm(edit)
    #expect(try rig.row(id).text == "b" && rig.transcript.unconfirmed.isEmpty)
    // Two at once: the later one shows.
    let third = try rig.send(.edit(id, "c")).id
    let fourth = try rig.send(.edit(id, "d")).id
    #expect(try rig.row(id).text == "d")
    try rig.confirm(third)
    #expect(try rig.row(id).text == "d")
    try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.cancel(fourth, in: &transaction)
    }
    #expect(try rig.row(id).text == "c")
  }

  @Test("S0-71 a pending row that was hidden is sent and does not come back")
  func hiddenWhilePending() throws {
    var rig = try Rig()
    let id = try rig.send(.text("a")).id
    #expect(try rig.hide(id) == [.removed(id)])
    try rig.restart()
    #expect(try rig.rows().isEmpty && rig.preview == nil)
    #expect(rig.transcript.unconfirmed.map(\.id) == [id])
    #expect(try rig.confirm(id).isEmpty)
    #expect(try rig.rows().isEmpty && rig.transcript.unconfirmed.isEmpty)
  }

  @Test("S3-29 2.9f what another device of one's own sent is a row of one's own: read, and no mention")
  func otherDevice() throws {
    var rig = try Rig()
    let changes = try rig.receive(
      .text("a", mentions: [Mention(start: 0, length: 1, user: Rig.me.user)]), from: Rig.myOther
    ).changes
    #expect(changes.count == 1 && rig.unread == 0 && rig.preview?.sender == Rig.me.user)
    #expect(try rig.rows().first?.delivery == .sent)
  }

  @Test("what the server takes no twice is shown once: the same id again is nothing")
  func repeated() throws {
    var rig = try Rig()
    let id = try rig.send(.text("a")).id
    let again = rig.envelope(id, .text("b"))
    let changes = try rig.run { (transcript, now, transaction) throws(MLSStorageError) in
      try transcript.insertOptimistic(again, at: now, in: &transaction)
    }
    #expect(try changes.isEmpty && rig.texts() == ["a"])
  }
}
