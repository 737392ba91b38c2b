import PalbeChatCore
import PalbeMLS
import PalbeUnits
import Testing

@Suite struct TranscriptActionTests {
  typealias Rig = TranscriptRig

  @Test("S0-64 S3-19 S3-21 a reaction, an edit and a deletion change a row and are none")
  func folds() throws {
    var rig = try Rig()
    let id = try rig.text("a")
    for content in [Content.react(id, "👍"), .edit(id, "b"), .delete(target: id)] {
      let changes = try rig.receive(content).changes
      guard case .updated(let row) = changes.first else {
        Issue.record("\(changes)")
        continue
      }
      #expect(changes.count == 1 && row.id == id)
      #expect(try rig.rows() == [row])
    }
  }

  @Test(
    "S0-63 S0-65 a tally an emoji, in the server's order; the last word of a user holds"
  )
  func reactions() throws {
    var rig = try Rig()
    let id = try rig.text("a")
    try rig.receive(.react(id, "👍"))
    try rig.receive(.react(id, "🎉"), from: Rig.cleo)
    try rig.receive(.react(id, "👍"), from: Rig.cleo)
    #expect(
      try rig.row(id).reactions == [
        ReactionTally(emoji: "👍", users: [Rig.ben.user, Rig.cleo.user]),
        ReactionTally(emoji: "🎉", users: [Rig.cleo.user]),
      ])
    try rig.receive(.react(id, "👍", off: true), seq: 10)
    // Set before it was taken off, told later.
    #expect(try rig.receive(.react(id, "👍"), seq: 9).changes.isEmpty)
    #expect(try rig.row(id).reactions.map(\.users) == [[Rig.cleo.user], [Rig.cleo.user]])
    #expect(rig.unread == 1)
  }

  @Test("S0-65 one's own reaction shows at once, and the echo changes nothing more")
  func ownReaction() throws {
    var rig = try Rig()
    let id = try rig.text("a")
    let sent = try rig.send(.react(id, "👍"))
    let tally = [ReactionTally(emoji: "👍", users: [Rig.me.user])]
    #expect(try rig.row(id).reactions == tally && sent.changes == [.updated(rig.row(id))])
    try rig.restart()
    #expect(try rig.row(id).reactions == tally)
    try rig.confirm(sent.id)
    #expect(try rig.row(id).reactions == tally)
    // It was refused: the row is as before.
    let other = try rig.send(.react(id, "🎉")).id
    try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.fail(other, code: "forbidden", in: &transaction)
    }
    #expect(try rig.row(id).reactions == tally)
  }

  @Test("2.9j of one user's reactions to a message twenty count")
  func reactionLimit() throws {
    var rig = try Rig()
    let id = try rig.text("a")
    let emoji = (0..<25).map { String(UnicodeScalar(0x1F600 + $0)!) }
    for emoji in emoji { try rig.receive(.react(id, emoji)) }
    #expect(try rig.row(id).reactions.map(\.emoji) == Array(emoji[..<20]))
    try rig.receive(.react(id, emoji[24]), from: Rig.cleo)
    #expect(try rig.row(id).reactions.last == ReactionTally(emoji: emoji[24], users: [Rig.cleo.user]))
    for emoji in emoji { try rig.receive(.react(id, emoji, off: true)) }
    #expect(try rig.row(id).reactions.map(\.emoji) == [emoji[24]])
  }

  @Test("S0-66 S0-68 an edit supersedes; editing back still shows edited")
  func edits() throws {
    var rig = try Rig()
    let id = try rig.text("one")
    try rig.receive(.edit(id, "two"))
    #expect(try rig.row(id).text == "two")
    try rig.receive(.edit(id, "one"))
    let row = try rig.row(id)
    #expect(row.text == "one" && row.isEdited)
    #expect(rig.preview?.text == "one")
  }

  @Test("2.9b of two edits the one behind holds, in whatever order they come")
  func editOrder() throws {
    var rig = try Rig()
    let id = try rig.text("one")
    try rig.receive(.edit(id, "three"), seq: 9)
    #expect(try rig.receive(.edit(id, "two"), seq: 8).changes.isEmpty)
    #expect(try rig.row(id).text == "three")
  }

  @Test(
    "S0-67 S0-69 section 3 #21 what is another's is neither edited nor deleted, in the preview neither"
  )
  func authorGate() throws {
    var rig = try Rig()
    let id = try rig.text("mine")
    let before = try rig.rows()
    for content in [Content.edit(id, "forged"), .delete(target: id)] {
      #expect(try rig.receive(content, from: Rig.cleo).changes.isEmpty)
      #expect(try rig.receive(content, from: Rig.me).changes.isEmpty)
    }
    #expect(try rig.rows() == before)
    #expect(rig.preview?.text == "mine" && rig.preview?.isDeleted == false && rig.unread == 1)
    // Another device of the same user may.
    try rig.receive(.edit(id, "again"), from: Rig.device(2, 9))
    #expect(try rig.row(id).text == "again")
    // One's own optimistic forgery does not show either.
    let forged = try rig.send(.edit(id, "forged")).id
    #expect(try rig.row(id).text == "again")
    try rig.confirm(forged)
    #expect(try rig.row(id).text == "again")
  }

  @Test("S0-67 an edit of a file or a system row is nothing")
  func editOfOthers() throws {
    var rig = try Rig()
    let custom = try rig.receive(.custom(type: "gift", payload: [1]), fallback: "a gift").id
    #expect(try rig.receive(.edit(custom, "b")).changes.isEmpty)
    #expect(try rig.row(custom).text == "a gift" && !rig.row(custom).isEdited)
    try rig.system(.historyGap)
    let system = try #require(try rig.rows().last)
    for content in [Content.edit(system.id, "b"), .react(system.id, "👍"), .delete(target: system.id)] {
      #expect(try rig.receive(content).changes.isEmpty)
    }
    #expect(try rig.rows().last == system)
  }

  @Test(
    "S0-70 2.9b a deletion takes everything, also what comes later, also what was before it and comes later")
  func deletion() throws {
    var rig = try Rig()
    let parent = try rig.text("p")
    let id = try rig.receive(
      .answer("a", to: parent, quoting: ReplyQuote(sender: Rig.ben.user, kind: "text", text: "p"))
    ).id
    try rig.receive(.react(id, "👍"), from: Rig.cleo)
    try rig.receive(.edit(id, "b"))
    #expect(rig.unread == 2)
    try rig.receive(.delete(target: id), seq: 20)
    #expect(rig.unread == 1)
    for (content, seq) in [(Content.react(id, "🎉"), 21), (.edit(id, "c"), 22), (.edit(id, "d"), 10)]
      as [(Content, Int64)]
    {
      #expect(try rig.receive(content, seq: seq).changes.isEmpty)
    }
    let row = try rig.row(id)
    #expect(
      row.isDeleted && row.text == nil && row.reactions.isEmpty && row.reply == nil && row.mentions.isEmpty)
    #expect(rig.preview?.id == id && rig.preview?.isDeleted == true && rig.preview?.text == nil)
  }

  @Test("S0-69 S0-70 nothing of a deleted message's words is left in the storage")
  func deletionErases() throws {
    var rig = try Rig()
    let id = try rig.text("a marker that nobody else has")
    func isFound() -> Bool {
      rig.storage.dump().contains { String(decoding: $0, as: UTF8.self).contains("marker that nobody") }
    }
    #expect(isFound())
    try rig.receive(.delete(target: id))
    #expect(!isFound())
  }

  @Test("2.9a section 3 #20 what comes before its message waits for it, in any order, and gives the same row")
  func orphans() throws {
    let id = try Rig(seed: 9).idForTests()
    func actions(_ id: ClientMessageID) -> [(Content, DeviceName)] {
      [
        (.text("first"), Rig.ben), (.react(id, "👍"), Rig.cleo), (.edit(id, "second"), Rig.ben),
        (.edit(id, "forged"), Rig.cleo), (.react(id, "👍", off: true), Rig.cleo), (.react(id, "🎉"), Rig.ben),
        (.edit(id, "third"), Rig.ben),
      ]
    }
    var expected: [Row]?
    var random = RandomSource(seed: 4)
    for _ in 0..<40 {
      var rig = try Rig()
      for (place, (content, sender)) in actions(id).enumerated().shuffled(using: &random) {
        let seq = Int64(place + 1)
        if place == 0 {
          try rig.receive(content, from: sender, id: id, seq: seq)
        } else {
          try rig.receive(content, from: sender, seq: seq)
        }
        if place == 2 { try rig.restart() }
      }
      let rows = try rig.rows()
      #expect(rows == expected ?? rows)
      expected = rows
      #expect(rig.unread == 1)
    }
    #expect(expected?.first?.text == "third" && expected?.first?.reactions.map(\.emoji) == ["🎉"])
  }

  @Test("2.9a a deletion before its message leaves only that it was deleted, and counts nobody")
  func orphanedDeletion() throws {
    var rig = try Rig()
    let id = rig.id()
    #expect(try rig.receive(.delete(target: id), seq: 5).changes.isEmpty)
    try rig.receive(.text("a", mentions: [Mention(start: 0, length: 1, user: Rig.me.user)]), id: id, seq: 4)
    #expect(try rig.row(id).isDeleted && rig.unread == 0)
  }

  @Test("2.9a what waits is bounded: the oldest goes first, and after 30 days")
  func orphanBounds() throws {
    var limits = TranscriptLimits()
    limits.orphans = 3
    var rig = try Rig(limits: limits)
    let ids = (0..<5).map { _ in rig.id() }
    for id in ids { try rig.receive(.react(id, "👍")) }
    // The same once more takes nobody's place.
    try rig.receive(.react(ids[4], "👍"), seq: rig.seq)
    try rig.restart()
    for id in ids { try rig.receive(.text("a"), id: id) }
    #expect(try rig.rows().map { $0.reactions.count } == [0, 0, 1, 1, 1])
    let late = rig.id()
    try rig.receive(.react(late, "👍"))
    rig.pass(30 * 86_400 - 1)
    try rig.expire()
    let early = rig.id()
    try rig.receive(.react(early, "👍"))
    rig.pass(1)
    try rig.restart()
    try rig.expire()
    try rig.receive(.text("a"), id: late)
    try rig.receive(.text("a"), id: early)
    #expect(try rig.rows().suffix(2).map { $0.reactions.count } == [0, 1])
  }

  @Test("2.9a a peer's reaction that overtakes the server's answer to our message finds it")
  func reactionBeforeConfirmation() throws {
    var rig = try Rig()
    let id = try rig.send(.text("a")).id
    try rig.receive(.react(id, "👍"), seq: 2)
    try rig.confirm(id, seq: 1)
    #expect(try rig.row(id).reactions.count == 1)
  }
}

extension TranscriptRig {
  func idForTests() -> ClientMessageID {
    var copy = self
    return copy.id()
  }
}
