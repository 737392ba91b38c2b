import PalbeChatCore
import PalbeMLS
import PalbeUnits
import Testing

@Suite struct TranscriptHistoryTests {
  typealias Rig = TranscriptRig

  @Test("S0-48 rows are in the server's order, whatever order they come in, each once")
  func order() throws {
    var rig = try Rig()
    for seq in [3, 1, 900, 2, 70_000, 899] as [Int64] { try rig.text("\(seq)", seq: seq) }
    #expect(try rig.texts() == ["1", "2", "3", "899", "900", "70000"])
    let rows = try rig.rows()
    for row in rows {
      #expect(try rig.receive(.text("again"), id: row.id, seq: row.seq).changes.isEmpty)
      #expect(try rig.receive(.text("again"), id: row.id, seq: 500).changes.isEmpty)
    }
    #expect(try rig.rows() == rows && rig.unread == 6)
    try rig.restart()
    #expect(try rig.rows() == rows)
  }

  @Test("S0-48 two messages with one number, or a number out of reach, lose and break nothing")
  func numbers() throws {
    var rig = try Rig()
    try rig.text("a", seq: 4)
    try rig.text("b", seq: 4)
    for seq in [0, -1, .min, .max, TranscriptPosition.maximumSeq + 1] as [Int64] {
      try rig.text("no", seq: seq)
    }
    try rig.text("c", seq: TranscriptPosition.maximumSeq)
    #expect(try rig.texts() == ["a", "b", "c"])
  }

  @Test("S0-48 a file has no text; S0-141 S3-8 S3-9 what is not known shows its fallback")
  func contents() throws {
    var rig = try Rig()
    try rig.receive(.custom(type: "gift", payload: [1, 2]), fallback: "a gift")
    try rig.receive(.unknown(field: 40), fallback: "from the future")
    // Without one it is nothing, as docs/wire-format.md has it.
    #expect(try rig.receive(.unknown(field: 41)).changes.isEmpty)
    let rows = try rig.rows()
    #expect(rows.map(\.kind) == [.custom(type: "gift", payload: [1, 2]), .unsupported(field: 40)])
    #expect(rows.map(\.text) == ["a gift", "from the future"] && rig.unread == 2)
    #expect(try rig.receive(.receipt(ReceiptBody(kind: .read, upTo: rows[0].id))).changes.isEmpty)
  }

  @Test("S0-48 S0-56 S0-57 S3-6 a file's row has its descriptor and no text; media have pages of their own")
  func files() throws {
    var rig = try Rig()
    var samples = Samples(seed: 5)
    var sent: [(id: ClientMessageID, AttachmentDescriptor)] = []
    for index in 0..<30 {
      try rig.text("between \(index)")
      let body = AttachmentBody(samples.descriptor(), caption: "caption \(index)")
      sent.append((try rig.receive(.attachment(body)).id, body.descriptor))
    }
    let words: [AttachmentKind: String] = [.image: "image", .video: "video", .file: "file", .voice: "voice"]
    try rig.restart()
    for (index, (id, descriptor)) in sent.enumerated() {
      let row = try rig.row(id)
      #expect(row.attachment == descriptor && row.text == nil && row.caption == "caption \(index)")
      #expect(row.kind.word == words[descriptor.kind])
    }
    #expect(rig.unread == 60 && rig.preview?.text == "caption 29")
    // An answer quotes the kind and what stands under it.
    #expect(try rig.transcript.quote(of: sent[3].id)?.quote.text == "caption 3")
    try rig.receive(.delete(target: sent[7].id))
    try rig.receive(.edit(sent[8].id, "no"))
    var page = try rig.transcript.page(limit: 4, isMedia: true)
    var ids = page.rows.map(\.id)
    while let earlier = page.earlier {
      page = try rig.transcript.page(before: earlier, limit: 4, isMedia: true)
      ids = page.rows.map(\.id) + ids
    }
    #expect(ids == sent.indices.filter { $0 != 7 }.map { sent[$0].id })
    // A file's key and thumbnail go with it.
    let gone = try rig.row(sent[7].id)
    #expect(gone.isDeleted && gone.attachment == nil && gone.caption == nil)
  }

  @Test(
    "S0-51 S3-22 pages go back to the start, each row once, and stay what they are when rows come"
  )
  func pages() throws {
    for gap in [1, 7, 300, 5_000] as [Int64] {
      var rig = try Rig()
      for index in 1...60 { try rig.text("\(index)", seq: Int64(index) * gap) }
      let pending = try rig.send(.text("pending")).id
      try rig.restart()
      var texts: [String?] = []
      var page = try rig.transcript.page(limit: 7)
      #expect(page.rows.last?.id == pending && page.rows.count == 8)
      texts = page.rows.map(\.text)
      var count = 1
      while let earlier = page.earlier {
        try rig.text("new \(count)", seq: 60 * gap + Int64(count))
        page = try rig.transcript.page(before: earlier, limit: 7)
        #expect(page == (try rig.transcript.page(before: earlier, limit: 7)))
        texts = page.rows.map(\.text) + texts
        count += 1
      }
      #expect(texts == (1...60).map { "\($0)" } + ["pending"] && count == 9)
      #expect(try rig.transcript.page(limit: 0).rows.count == 1)
    }
  }

  @Test(
    "S0-53 the cap holds at 999, 1,000 and 1,001 rows, is configurable, and takes the oldest",
    arguments: [
      999, 1_000, 1_001,
    ])
  func cap(count: Int) throws {
    var rig = try Rig()
    #expect(rig.limits.rows == 1_000)
    var removed: [ClientMessageID] = []
    var first: ClientMessageID?
    for index in 1...count {
      let (id, changes) = try rig.receive(.text("\(index)"))
      first = first ?? id
      for case .removed(let id) in changes { removed.append(id) }
      if index == 500 { try rig.restart() }
    }
    let rows = try rig.rows()
    #expect(rows.count == min(count, 1_000) && rows.last?.text == "\(count)" && rig.unread == rows.count)
    #expect(removed == (count > 1_000 ? [first] : []))
    #expect(try rig.transcript.page(limit: .max).earlier == nil)
  }

  @Test("S0-53 what was trimmed does not come back, and its records are gone")
  func trimming() throws {
    var limits = TranscriptLimits()
    limits.rows = 3
    var rig = try Rig(limits: limits)
    let first = try rig.text("first one")
    for index in 2...9 { try rig.text("\(index)") }
    #expect(try rig.texts() == ["7", "8", "9"] && rig.unread == 3)
    #expect(try rig.receive(.text("again"), id: first, seq: 1).changes.isEmpty)
    try rig.text("late", seq: 2)
    #expect(try rig.texts() == ["7", "8", "9"])
    #expect(rig.storage.keys(under: MLSRecordKey(group: Rig.chat, name: [])).count == 6)
    for row in try rig.rows() { try rig.hide(row.id) }
    #expect(try rig.rows().isEmpty && rig.preview == nil && rig.unread == 0)
    try rig.text("late too", seq: 5)
    #expect(try rig.rows().isEmpty)
  }

  @Test("S0-71 a hidden row is gone here for good: it does not come back, count, or take a reaction")
  func hiding() throws {
    var rig = try Rig()
    let first = try rig.text("first")
    let second = try rig.text("second")
    #expect(try rig.hide(second) == [.removed(second)])
    #expect(try rig.hide(second).isEmpty && rig.hide(rig.idForTests()).isEmpty)
    #expect(try rig.texts() == ["first"] && rig.unread == 1 && rig.preview?.id == first)
    try rig.restart()
    #expect(try rig.receive(.text("again"), id: second, seq: 2).changes.isEmpty)
    #expect(try rig.receive(.react(second, "👍")).changes.isEmpty)
    #expect(try rig.texts() == ["first"])
    #expect(!rig.storage.dump().contains { String(decoding: $0, as: UTF8.self).contains("second") })
    try rig.system(.historyGap)
    let system = try #require(try rig.rows().last)
    #expect(try rig.hide(system.id) == [.removed(system.id)] && rig.rows().count == 1)
  }

  @Test("S0-71 what is remembered of rows that are gone is bounded")
  func goneBound() throws {
    var limits = TranscriptLimits()
    limits.gone = 4
    var rig = try Rig(limits: limits)
    for _ in 0..<20 { try rig.hide(try rig.text("a")) }
    #expect(rig.storage.keys(under: MLSRecordKey(group: Rig.chat, name: [])).count == 8)
  }

  @Test("2.3 2.9d 2.9i system rows stand behind what was said at their place, once each, and count nothing")
  func systemRows() throws {
    var rig = try Rig()
    let id = try rig.text("a", seq: 4)
    let events: [SystemEvent] = [
      .memberAdded([Rig.cleo.user, Rig.ben.user]), .memberRemoved([Rig.cleo.user]), .memberLeft(Rig.ben.user),
      .renamed("name"), .roleChanged(Rig.ben.user, .admin), .timerChanged(Expiry(seconds: 5)),
      .timerChanged(nil),
      .keyChanged(Rig.ben.user), .historyGap, .groupReset,
    ]
    for event in events { #expect(try rig.system(event, seq: 4).count == 1) }
    for event in events { #expect(try rig.system(event, seq: 4).isEmpty) }
    try rig.text("b", seq: 5)
    try rig.restart()
    let rows = try rig.rows()
    #expect(rows.map(\.kind) == [.text] + events.map { .system($0) } + [.text])
    #expect(Set(rows.map(\.id)).count == rows.count && rig.unread == 2 && rig.preview?.text == "b")
    #expect(rows[1].sender == Rig.ben && rows[1].text == nil)
    try rig.hide(rows[11].id)
    #expect(rig.preview?.id == id)
    #expect(try rig.transcript.row(rows[3].id) == rows[3])
    // Nobody's message takes the name of such a row.
    #expect(try rig.receive(.text("forged"), id: rows[2].id).changes.isEmpty)
  }

  @Test("2.2 a message that cannot be read has a row, once, that nobody counts or answers")
  func unreadable() throws {
    var rig = try Rig()
    for count in [1, 0] {
      let changes = try rig.run { (transcript, now, transaction) throws(MLSStorageError) in
        try transcript.addUnreadable(seq: 3, from: Rig.ben, epoch: 2, at: now, in: &transaction)
      }
      #expect(changes.count == count)
    }
    let row = try #require(try rig.rows().first)
    #expect(row.kind == .unreadable && row.sender == Rig.ben && rig.unread == 0 && rig.preview == nil)
    #expect(try rig.transcript.quote(of: row.id) == nil)
  }

  @Test(
    "S0-60 S0-61 a quote is the real message while it is here, whatever the sender says of it"
  )
  func replies() throws {
    var rig = try Rig()
    let parent = try rig.text("truth")
    let claim = ReplyQuote(sender: Rig.cleo.user, kind: "image", text: "lie")
    let id = try rig.receive(.answer("a", to: parent, quoting: claim), from: Rig.cleo).id
    func reply() throws -> ResolvedReply? { try rig.row(id).reply }
    let quoted = ResolvedReply(
      parent: parent, state: .resolved, quoteSender: Rig.ben.user, quoteKind: "text", quoteText: "truth")
    #expect(try reply() == quoted)
    try rig.receive(.edit(parent, "new truth"))
    #expect(try reply()?.quoteText == "new truth")
    try rig.receive(.delete(target: parent))
    #expect(try reply()?.quoteText == nil && reply()?.state == .resolved)
    // What was never here: the preview is all there is.
    let unknown = rig.id()
    let other = try rig.receive(.answer("b", to: unknown, quoting: claim)).id
    #expect(
      try rig.row(other).reply
        == ResolvedReply(
          parent: unknown, state: .unavailable, quoteSender: Rig.cleo.user, quoteKind: "image",
          quoteText: "lie"))
    try rig.receive(.text("it came"), id: unknown)
    #expect(try rig.row(other).reply?.quoteText == "it came")
    // What was hidden does not come back through a quote.
    try rig.hide(unknown)
    #expect(try rig.row(other).reply?.state == .unavailable && rig.row(other).reply?.quoteText == nil)
    // One's own pending message can be answered and quoted.
    let pending = try rig.send(.text("pending")).id
    let last = try rig.receive(.answer("c", to: pending, quoting: claim)).id
    #expect(try rig.row(last).reply?.quoteText == "pending")
  }

  @Test("S0-62 an answer to a system row, to nothing, or to what is gone is a plain text")
  func quotes() throws {
    var rig = try Rig()
    let id = try rig.text(String(repeating: "é", count: 400))
    let reference = try #require(try rig.transcript.quote(of: id))
    #expect(
      reference.parent == id && reference.quote.kind == "text" && reference.quote.sender == Rig.ben.user)
    #expect(reference.quote.text == String(repeating: "é", count: 256))
    try rig.system(.historyGap)
    #expect(try rig.transcript.quote(of: rig.rows()[1].id) == nil)
    #expect(try rig.transcript.quote(of: rig.idForTests()) == nil)
    try rig.receive(.delete(target: id))
    #expect(try rig.transcript.quote(of: id) == nil)
  }

  @Test("section 3 #22 an emoji of several scalars is not cut in a quote or a preview")
  func beginnings() throws {
    var rig = try Rig()
    let family = "👨‍👩‍👧‍👦"
    let id = try rig.text(String(repeating: family, count: 40))
    #expect(rig.preview?.text == String(repeating: family, count: 10))
    #expect(try rig.transcript.quote(of: id)?.quote.text == String(repeating: family, count: 20))
  }
}
