import PalbeChatCore
import PalbeChatKit
import PalbeMLS
import PalbeUnits
import Testing

/// Random lives of a transcript, each from its seed, beside the model that knows nothing of records.
@Suite struct TranscriptPropertyTests {
  @Test(
    "S0-48 S0-65 S0-70 S0-71 S0-89 S3-5 S3-17 S3-21 any life shows what the model does, restarts and all",
    arguments: 0..<40)
  func randomLife(seed: UInt64) throws {
    var life = try TranscriptLife(seed: seed, cap: seed.isMultiple(of: 3) ? 12 : 1_000)
    for step in 0..<140 {
      try life.step()
      if step % 7 == 6 || step == 139 { try life.check("seed \(seed), step \(step)") }
    }
  }

  @Test("2.9a S0-65 what came is shown alike in whatever order it came", arguments: 200..<220)
  func anyOrder(seed: UInt64) throws {
    var random = RandomSource(seed: seed)
    let came = try mixed(&random)
    var expected: TranscriptRig?
    for _ in 0..<6 {
      var rig = try TranscriptRig(seed: seed)
      for (index, incoming) in came.shuffled(using: &random).enumerated() {
        try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
          try transcript.apply(incoming, in: &transaction)
        }
        if index.isMultiple(of: 13) { try rig.restart() }
      }
      if var expected {
        #expect(try rig.rows() == expected.rows())
        #expect(rig.preview == expected.preview && rig.unread == expected.unread)
        #expect(rig.transcript.summary.profile == expected.transcript.summary.profile)
      }
      expected = expected ?? rig
    }
  }

  /// Eight messages that answer each other, and what is done to them, and names for the chat.
  private func mixed(_ random: inout RandomSource) throws -> [Incoming] {
    var rig = try TranscriptRig(seed: random.next())
    let senders = [
      TranscriptRig.ben, TranscriptRig.cleo, TranscriptRig.myOther, TranscriptRig.device(2, 8),
    ]
    let ids = (0..<8).map { _ in rig.id() }
    return (0..<60).map { index in
      let target = ids[Int.random(in: 0..<8, using: &random)]
      let emoji = ["👍", "🎉"][Int.random(in: 0..<2, using: &random)]
      var id = rig.id()
      let content: Content
      if index.isMultiple(of: 7), index < 56 {
        id = ids[index / 7]
        content = .answer(
          "\(index)", to: ids[(index / 7 + 3) % 8], quoting: ReplyQuote(sender: senders[0].user, kind: "text")
        )
      } else {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4: content = .react(target, emoji, off: Int.random(in: 0..<3, using: &random) == 0)
        case 4..<8: content = .edit(target, "edit \(index)")
        case 8: content = index.isMultiple(of: 3) ? .delete(target: target) : .react(target, emoji)
        default: content = .control(.renamed("name \(index)"))
        }
      }
      return Incoming(
        seq: Int64(index + 1), sender: senders[Int.random(in: 0..<4, using: &random)], epoch: 1,
        receivedAt: rig.now, serverAt: rig.now.wall, envelope: rig.envelope(id, content))
    }
  }

  @Test(
    "S3-14 a transaction that is not carried out leaves everything as before, at every step",
    arguments: 100..<110)
  func crashes(seed: UInt64) throws {
    var life = try TranscriptLife(seed: seed, cap: 12)
    for _ in 0..<60 {
      let before = life.rig.transcript
      let records = InMemoryMLSStorage(copying: life.rig.storage)
      var lost = life
      lost.isLosing = true
      try lost.step()
      // The process ends here, or puts its copy back.
      var kept = before
      var loaded = try #require(
        try Transcript.load(TranscriptRig.chat, me: TranscriptRig.me, from: records, limits: life.rig.limits))
      #expect(try kept.page(limit: .max) == loaded.page(limit: .max) && kept.summary == loaded.summary)
      try life.step()
    }
    try life.check("seed \(seed)")
  }
}

/// One such life.
struct TranscriptLife {
  var rig: TranscriptRig
  /// Transactions are made and not carried out.
  var isLosing = false
  private var random: RandomSource
  private var log: [TranscriptModel.Input] = []
  private var ids: [ClientMessageID] = []
  private var unsent: [ClientMessageID] = []
  private var sent: [Incoming] = []
  private var free: [Int64] = []

  init(seed: UInt64, cap: Int) throws {
    random = RandomSource(seed: seed)
    var limits = TranscriptLimits()
    limits.rows = cap
    rig = try TranscriptRig(limits: limits, seed: seed &+ 77)
  }

  private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  /// Mostly the next number; sometimes one that was passed over.
  private mutating func nextSeq() -> Int64 {
    if !free.isEmpty, pick(3) == 0 { return free.remove(at: pick(free.count)) }
    rig.seq += 1
    while pick(4) == 0 {
      free.append(rig.seq)
      rig.seq += 1
    }
    if free.count > 6 { free.removeFirst() }
    return rig.seq
  }

  private mutating func content() -> Content {
    let emoji = ["👍", "🎉", "👨‍👩‍👧‍👦"]
    // Sometimes of a message that has not come, or never will.
    let target = ids.isEmpty || pick(12) == 0 ? rig.id() : ids[pick(ids.count)]
    switch pick(10) {
    case 0, 1: return .react(target, emoji[pick(3)], off: pick(3) == 0)
    case 2: return .edit(target, "edit \(pick(1_000))")
    case 3 where pick(2) == 0: return .delete(target: target)
    case 4:
      return .answer(
        "answer \(pick(1_000))", to: target,
        quoting: ReplyQuote(sender: TranscriptRig.cleo.user, kind: "text", text: "claim"))
    default: return .text("text \(pick(1_000))")
    }
  }

  private mutating func expiry() -> Expiry? {
    pick(4) == 0 ? Expiry(seconds: UInt32(1 + pick(90)), start: pick(2) == 0 ? .send : .read) : nil
  }

  private mutating func run(
    _ input: TranscriptModel.Input,
    _ body: (inout Transcript, ChatTime, inout MLSTransaction) throws(MLSStorageError) -> [TranscriptChange]
  ) throws {
    log.append(input)
    if isLosing {
      var transaction = MLSTransaction()
      _ = try body(&rig.transcript, rig.now, &transaction)
      return
    }
    let before = try rig.transcript.page(limit: .max).rows
    let changes = try rig.run(body)
    try compare(before, changes, try rig.transcript.page(limit: .max).rows)
  }

  /// What was told is what changed, but for quotes of rows that changed.
  private func compare(_ before: [Row], _ changes: [TranscriptChange], _ after: [Row]) throws {
    var rows = Dictionary(uniqueKeysWithValues: before.map { ($0.id, $0) })
    for change in changes {
      switch change {
      case .inserted(let row):
        #expect(rows[row.id] == nil)
        rows[row.id] = row
      case .updated(let row):
        #expect(rows[row.id] != nil)
        rows[row.id] = row
      case .removed(let id): #expect(rows.removeValue(forKey: id) != nil)
      case .elevated: break
      }
    }
    #expect(Set(rows.keys) == Set(after.map(\.id)) && rows.count == after.count)
    for row in after {
      var told = rows[row.id]
      told?.reply = row.reply
      #expect(told == row)
    }
  }

  mutating func step() throws {
    if pick(5) == 0 { rig.pass(pick(20)) }
    if pick(30) == 0 { rig.now.wall = rig.now.wall + .seconds(pick(200) - 100) }
    if pick(20) == 0, !isLosing { try rig.restart() }
    switch pick(16) {
    case 0..<6: try receive()
    case 6, 7:
      let envelope = rig.envelope(rig.id(), content(), expiry: expiry())
      ids.append(envelope.id)
      unsent.append(envelope.id)
      try run(.made(envelope, rig.now)) { (transcript, now, transaction) throws(MLSStorageError) in
        try transcript.insertOptimistic(envelope, at: now, in: &transaction)
      }
    case 8, 9:
      guard !unsent.isEmpty else { return }
      let id = unsent.remove(at: pick(2) == 0 ? 0 : pick(unsent.count))
      let seq = nextSeq()
      try run(.confirmed(id, seq: seq, rig.now)) { (transcript, now, transaction) throws(MLSStorageError) in
        try transcript.confirm(id, seq: seq, epoch: 4, at: now, in: &transaction)
      }
    case 10: try trouble()
    case 11:
      guard !ids.isEmpty else { return }
      let id = ids[pick(ids.count)]
      try run(.hidden(id)) { (transcript, now, transaction) throws(MLSStorageError) in
        try transcript.hide(id, at: now, in: &transaction)
      }
    case 12:
      let seq = Int64(pick(Int(rig.seq) + 2))
      try run(.read(seq, rig.now)) { (transcript, now, transaction) throws(MLSStorageError) in
        try transcript.markRead(upTo: seq, at: now, in: &transaction)
      }
    case 13:
      try run(.swept(rig.now)) { (transcript, now, transaction) throws(MLSStorageError) in
        try transcript.expire(at: now, in: &transaction)
      }
    case 14:
      let event: SystemEvent = pick(2) == 0 ? .historyGap : .memberLeft(TranscriptRig.user(UInt8(pick(3))))
      let seq = pick(3) == 0 ? rig.seq : nextSeq()
      try run(.system(event, seq: seq)) { (transcript, now, transaction) throws(MLSStorageError) in
        try transcript.addSystem(event, seq: seq, at: now, in: &transaction)
      }
    default:
      // The same message once more.
      guard !sent.isEmpty else { return }
      try apply(sent[pick(sent.count)])
    }
  }

  private mutating func receive() throws {
    let senders = [TranscriptRig.ben, TranscriptRig.cleo, TranscriptRig.myOther, TranscriptRig.device(2, 8)]
    let envelope = rig.envelope(rig.id(), content(), expiry: expiry())
    ids.append(envelope.id)
    let incoming = Incoming(
      seq: nextSeq(), sender: senders[pick(4)], epoch: 3, receivedAt: rig.now,
      serverAt: rig.now.wall - .seconds(pick(4)), envelope: envelope)
    sent.append(incoming)
    try apply(incoming)
  }

  private mutating func apply(_ incoming: Incoming) throws {
    var incoming = incoming
    incoming.receivedAt = rig.now
    try run(.received(incoming)) { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.apply(incoming, in: &transaction)
    }
  }

  private mutating func trouble() throws {
    guard !unsent.isEmpty else { return }
    let place = pick(unsent.count)
    let id = unsent[place]
    switch pick(3) {
    case 0:
      try run(.failed(id)) { (transcript, _, transaction) throws(MLSStorageError) in
        try transcript.fail(id, code: "unavailable", in: &transaction)
      }
    case 1:
      try run(.retried(id)) { (transcript, _, transaction) throws(MLSStorageError) in
        try transcript.retry(id, in: &transaction)
      }
    default:
      unsent.remove(at: place)
      try run(.cancelled(id)) { (transcript, _, transaction) throws(MLSStorageError) in
        try transcript.cancel(id, in: &transaction)
      }
    }
  }

  mutating func check(_ place: Comment) throws {
    let model = TranscriptModel(log, me: TranscriptRig.me.user, cap: rig.limits.rows)
    let page = try rig.transcript.page(limit: .max)
    let shown = page.rows.map { TranscriptModel.Shown($0) }
    #expect(shown == model.rows, place)
    #expect(rig.unread == model.unread, place)
    let preview = rig.preview.map { $0.text ?? "" }
    #expect(preview == model.preview, place)
    var loaded = try #require(
      try Transcript.load(TranscriptRig.chat, me: TranscriptRig.me, from: rig.storage, limits: rig.limits))
    #expect(loaded.summary == rig.transcript.summary, place)
    #expect(try loaded.page(limit: .max) == page, place)
    // In small pages it is the same.
    var small = try loaded.page(limit: 3)
    var rows = small.rows
    while let earlier = small.earlier {
      small = try loaded.page(before: earlier, limit: 3)
      rows = small.rows + rows
    }
    #expect(rows == page.rows, place)
  }
}
