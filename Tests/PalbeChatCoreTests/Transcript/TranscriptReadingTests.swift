import PalbeChatCore
import PalbeMLS
import PalbeUnits
import Testing

@Suite struct TranscriptReadingTests {
  typealias Rig = TranscriptRig

  @Test("S0-89 S3-29 section 3 #25 unread is what others said behind the read position and is still there")
  func unread() throws {
    var rig = try Rig()
    let ids = try (1...6).map { try rig.text("\($0)") }
    try rig.receive(.react(ids[0], "👍"))
    try rig.receive(.edit(ids[0], "b"))
    try rig.send(.text("mine"))
    try rig.system(.historyGap)
    #expect(rig.unread == 6)
    try rig.markRead(3)
    #expect(rig.unread == 3)
    try rig.hide(ids[0])
    try rig.receive(.delete(target: ids[1]))
    #expect(rig.unread == 3)
    try rig.hide(ids[4])
    try rig.receive(.delete(target: ids[5]))
    try rig.receive(.delete(target: ids[5]), seq: rig.seq)
    #expect(rig.unread == 1)
    try rig.restart()
    try rig.text("7")
    #expect(rig.unread == 2)
    try rig.markRead(rig.seq)
    #expect(rig.unread == 0)
    // Read on another device before it came here.
    try rig.markRead(rig.seq + 2)
    try rig.text("8")
    try rig.text("9")
    try rig.text("10")
    #expect(rig.unread == 1)
  }

  @Test("S0-96 the read position never falls, and the same again changes nothing")
  func readPosition() throws {
    var rig = try Rig()
    for _ in 0..<5 { try rig.text("a") }
    try rig.markRead(4)
    let summary = rig.transcript.summary
    #expect(try rig.markRead(4).isEmpty && rig.markRead(2).isEmpty && rig.markRead(.min).isEmpty)
    #expect(rig.transcript.summary == summary && summary.readSeq == 4 && summary.unreadCount == 1)
    try rig.markRead(.max)
    #expect(rig.unread == 0 && rig.transcript.summary.readSeq == TranscriptPosition.maximumSeq)
  }

  @Test(
    "S0-91 S0-92 S0-97 receipts fold to the furthest of devices and of peers, from 0 on, and never fall"
  )
  func receipts() throws {
    var rig = try Rig()
    func note(_ kind: ReceiptKind, _ device: DeviceName, _ seq: Int64) throws -> Bool {
      try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
        try transcript.note(kind, by: device.user, upTo: seq, in: &transaction)
      }
    }
    #expect(rig.transcript.summary.deliveredUpTo == 0 && rig.transcript.summary.readUpTo == 0)
    #expect(try note(.delivered, Rig.ben, 5) && note(.delivered, Rig.device(2, 7), 8))
    #expect(try !note(.delivered, Rig.ben, 6))
    #expect(try note(.delivered, Rig.cleo, 7) && note(.read, Rig.cleo, 4))
    #expect(try !note(.read, Rig.cleo, 3) && !note(.read, Rig.ben, 0) && !note(.read, Rig.ben, .min))
    // One's own other device is no peer.
    #expect(try !note(.delivered, Rig.myOther, 100))
    try rig.restart()
    let summary = rig.transcript.summary
    #expect(summary.deliveredUpTo == 8 && summary.readUpTo == 4)
    #expect(try rig.transcript.watermarks(of: Rig.ben.user) == (8, 0))
    #expect(try rig.transcript.watermarks(of: Rig.cleo.user) == (7, 4))
    #expect(try rig.transcript.readers(upTo: 4) == [Rig.cleo.user] && rig.transcript.readers(upTo: 5).isEmpty)
  }

  @Test("S0-79 S0-80 a mention of this user is a bubble, told once, ever, and no edit tells it later")
  func mentions() throws {
    var rig = try Rig()
    func mention(_ user: UserID) -> Content {
      .text("@x", mentions: [Mention(start: 0, length: 2, user: user)])
    }
    let first = try rig.receive(mention(Rig.me.user))
    #expect(first.changes.last == .elevated(first.id) && first.changes.count == 2)
    #expect(try rig.row(first.id).mentions.map(\.user) == [Rig.me.user] && rig.unread == 1)
    try rig.restart()
    #expect(try rig.receive(mention(Rig.me.user), id: first.id, seq: 1).changes.isEmpty)
    #expect(try rig.receive(mention(Rig.cleo.user)).changes.count == 1)
    #expect(try rig.receive(mention(Rig.me.user), from: Rig.myOther).changes.count == 1)
    let plain = try rig.text("plain")
    let edit = Content.edit(
      target: plain, TextBody("@x", mentions: [Mention(start: 0, length: 2, user: Rig.me.user)]))
    #expect(try rig.receive(edit).changes == [.updated(try rig.row(plain))])
    #expect(try rig.row(plain).mentions.count == 1)
    try rig.hide(first.id)
    #expect(try rig.receive(mention(Rig.me.user), id: first.id, seq: 1).changes.isEmpty)
  }

  @Test(
    "S3-28 the list has the last message and when it was; a reaction, an edit, a system row do not raise it")
  func activity() throws {
    var rig = try Rig()
    let created = rig.now.wall
    #expect(rig.transcript.summary.lastActivity == created)
    rig.pass(10)
    let id = try rig.text("a")
    let said = rig.now.wall
    rig.pass(10)
    try rig.receive(.react(id, "👍"))
    try rig.system(.historyGap)
    #expect(rig.transcript.summary.lastActivity == said)
    try rig.send(.text("mine"))
    #expect(rig.transcript.summary.lastActivity == rig.now.wall)
  }

  @Test("S3-22 the list of chats reads one record a chat, and a chat that is opened reads its page only")
  func reads() throws {
    var rig = try Rig()
    for index in 1...300 { try rig.text("\(index)") }
    let counting = CountingStorage(rig.storage)
    let list = try ChatSummary.all(in: counting)
    #expect(list == [rig.transcript.summary] && counting.reads == 1)
    var transcript = try #require(try Transcript.load(Rig.chat, me: Rig.me, from: counting))
    #expect(try transcript.page(limit: 20).rows.count == 20)
    #expect(counting.reads == 22)
  }

  @Test("S3-20 S3-32 a message costs the same in a long chat and in a short one: three records")
  func writes() throws {
    var rig = try Rig()
    for count in [1, 400] {
      for index in 1...count { try rig.text("\(index)") }
      var transaction = MLSTransaction()
      let counting = CountingStorage(rig.storage)
      var transcript = try #require(try Transcript.load(Rig.chat, me: Rig.me, from: counting))
      let before = counting.reads
      let incoming = Incoming(
        seq: rig.seq + 1, sender: Rig.ben, epoch: 1, receivedAt: rig.now, serverAt: rig.now.wall,
        envelope: rig.envelope(rig.id(), .text("a")))
      _ = try transcript.apply(incoming, in: &transaction)
      #expect(transaction.changes.count == 3 && counting.reads == before + 1 && counting.lists == 0)
    }
  }

  @Test("S0-12 S0-16 S0-88 a draft has a row in the storage alone, and everything of a chat goes at once")
  func drafts() throws {
    let rig = try Rig()
    var transaction = MLSTransaction()
    var draft = Transcript.create(
      ChatSummary(chat: [9], kind: .direct, createdAt: rig.now.wall), me: Rig.me, storage: rig.storage,
      in: &transaction)
    try rig.storage.apply(transaction)
    #expect(try ChatSummary.all(in: rig.storage).map(\.state) == [.active, .draft])
    transaction = MLSTransaction()
    draft.updateSummary(in: &transaction) {
      ($0.state, $0.peer, $0.notifyScope) = (.active, Rig.ben.user, NotifyScope.none)
    }
    _ = try draft.insertOptimistic(
      Envelope(id: rig.idForTests(), sentAt: rig.now.wall, content: .text("a")), at: rig.now, in: &transaction
    )
    try rig.storage.apply(transaction)
    #expect(try ChatSummary.load([9], from: rig.storage) == draft.summary)
    #expect(draft.summary.isMuted && !rig.transcript.summary.isMuted)
    transaction = MLSTransaction()
    Transcript.eraseAll([9], in: &transaction)
    try rig.storage.apply(transaction)
    #expect(try ChatSummary.all(in: rig.storage).count == 1 && rig.storage.groups() == [])
  }
}

/// Counts what is read.
final class CountingStorage: MLSStorage, @unchecked Sendable {
  private let storage: InMemoryMLSStorage
  // One thread uses it.
  private(set) var reads = 0
  private(set) var lists = 0

  init(_ storage: InMemoryMLSStorage) { self.storage = storage }

  func read(_ key: MLSRecordKey) -> MLSRecord? {
    reads += 1
    return storage.read(key)
  }
  func keys(under prefix: MLSRecordKey) -> [MLSRecordKey] {
    lists += 1
    return storage.keys(under: prefix)
  }
  func groups() -> [[UInt8]] { storage.groups() }
  func apply(_ transaction: MLSTransaction) throws(MLSStorageError) { try storage.apply(transaction) }
}
