import PalbeChatCore
import PalbeMLS
import PalbeUnits
import Testing

@Suite struct TranscriptExpiryTests {
  typealias Rig = TranscriptRig

  @Test(
    "S0-81 S0-82 a message disappears when its time since it was composed is over, and does not come back")
  func sent() throws {
    var rig = try Rig()
    let id = try rig.receive(.text("a"), expiry: Expiry(seconds: 60)).id
    try rig.text("stays")
    #expect(try rig.row(id).expiresAt == rig.now.wall + .seconds(60))
    #expect(rig.transcript.nextExpiry(at: rig.now) == rig.now.instant + .seconds(60))
    rig.pass(59)
    #expect(try rig.expire().isEmpty)
    rig.pass(1)
    try rig.restart()
    #expect(try rig.expire() == [.removed(id)])
    #expect(try rig.texts() == ["stays"] && rig.unread == 1)
    #expect(rig.transcript.nextExpiry(at: rig.now) == nil)
    #expect(try rig.receive(.text("a"), id: id, seq: 1).changes.isEmpty)
    #expect(try rig.receive(.react(id, "👍")).changes.isEmpty)
  }

  @Test("2.9l a skewed sender cannot make a message expire at once, nor keep it longer")
  func skew() throws {
    var rig = try Rig()
    for (offset, left) in [(-86_400, 300), (86_400, 600), (-100, 500), (0, 600)] {
      let id = rig.id()
      let envelope = Envelope(
        id: id, sentAt: rig.now.wall + .seconds(offset), content: .text("a"), expiry: Expiry(seconds: 600))
      rig.seq += 1
      let incoming = Incoming(
        seq: rig.seq, sender: Rig.ben, epoch: 1, receivedAt: rig.now, serverAt: rig.now.wall,
        envelope: envelope)
      try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
        try transcript.apply(incoming, in: &transaction)
      }
      #expect(try rig.row(id).expiresAt == rig.now.wall + .seconds(left))
    }
  }

  @Test("S0-82 what was over before it came is never shown; what waited at the server has so much less time")
  func late() throws {
    var rig = try Rig()
    let start = rig.now
    rig.pass(100)
    for (seconds, isShown) in [(100, false), (99, false), (101, true)] as [(UInt32, Bool)] {
      rig.seq += 1
      let incoming = Incoming(
        seq: rig.seq, sender: Rig.ben, epoch: 1, receivedAt: rig.now, serverAt: start.wall,
        envelope: Envelope(
          id: rig.id(), sentAt: start.wall, content: .text("a"), expiry: Expiry(seconds: seconds)))
      let changes = try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
        try transcript.apply(incoming, in: &transaction)
      }
      #expect(changes.isEmpty != isShown)
      #expect(
        try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
          try transcript.apply(incoming, in: &transaction)
        }.isEmpty)
    }
    #expect(try rig.rows().count == 1 && rig.unread == 1)
  }

  @Test("S0-82 with start read, time begins when this device first reads it, or at once for who wrote it")
  func read() throws {
    var rig = try Rig()
    let expiry = Expiry(seconds: 30, start: .read)
    let first = try rig.receive(.text("1"), expiry: expiry).id
    let second = try rig.receive(.text("2"), expiry: expiry).id
    let own = try rig.receive(.text("3"), from: Rig.myOther, expiry: expiry).id
    let sent = try rig.send(.text("4"), expiry: expiry).id
    #expect(try rig.row(first).expiresAt == nil && rig.row(sent).expiresAt == nil)
    #expect(try rig.row(own).expiresAt == rig.now.wall + .seconds(30))
    try rig.confirm(sent)
    #expect(try rig.row(sent).expiresAt == rig.now.wall + .seconds(30))
    rig.pass(1_000)
    #expect(try rig.expire().count == 2)
    try rig.restart()
    #expect(try rig.markRead(1) == [.updated(try rig.row(first))])
    #expect(try rig.row(first).expiresAt == rig.now.wall + .seconds(30) && rig.row(second).expiresAt == nil)
    rig.pass(20)
    try rig.markRead(2)
    // Read elsewhere before it came.
    try rig.markRead(10)
    let late = try rig.receive(.text("5"), seq: 9, expiry: expiry).id
    rig.pass(10)
    #expect(try rig.expire() == [.removed(first)])
    rig.pass(20)
    #expect(
      Set(try rig.expire().map { "\($0)" }) == Set([second, late].map { "\(TranscriptChange.removed($0))" }))
    #expect(try rig.rows().isEmpty)
  }

  @Test("S0-85 within a boot the clock that is further decides; across a reboot the wall clock alone")
  func clocks() throws {
    // The wall clock set back by a day: the steady clock decides.
    var rig = try Rig()
    let id = try rig.receive(.text("a"), expiry: Expiry(seconds: 60)).id
    rig.now.wall = rig.now.wall - .seconds(86_400)
    rig.now.instant = rig.now.instant + .seconds(59)
    #expect(try rig.expire().isEmpty)
    #expect(rig.transcript.nextExpiry(at: rig.now) == rig.now.instant + .seconds(1))
    rig.now.instant = rig.now.instant + .seconds(1)
    try rig.restart()
    #expect(try rig.expire() == [.removed(id)])
    // The steady clock slept, or the wall clock was set forward: the wall clock decides.
    rig = try Rig()
    try rig.receive(.text("a"), expiry: Expiry(seconds: 60))
    rig.now.wall = rig.now.wall + .seconds(60)
    #expect(rig.transcript.nextExpiry(at: rig.now) == rig.now.instant)
    #expect(try rig.expire().count == 1)
    // After a reboot the steady clock began anew, and may read anything.
    rig = try Rig()
    try rig.receive(.text("a"), expiry: Expiry(seconds: 60))
    rig.now.boot = 2
    rig.now.instant = rig.now.instant + .seconds(10_000)
    try rig.restart()
    #expect(try rig.expire().isEmpty)
    rig.now.wall = rig.now.wall + .seconds(59)
    #expect(try rig.expire().isEmpty)
    #expect(rig.transcript.nextExpiry(at: rig.now) == rig.now.instant + .seconds(1))
    rig.now.wall = rig.now.wall + .seconds(1)
    #expect(try rig.expire().count == 1)
    // The longest time there is breaks nothing.
    try rig.receive(.text("a"), expiry: Expiry(seconds: .max))
    rig.now.wall = WallTime(microseconds: .min)
    #expect(try rig.transcript.nextExpiry(at: rig.now) != nil && rig.expire().isEmpty)
    rig.now.wall = WallTime(microseconds: .max)
    #expect(try rig.expire().count == 1)
  }

  @Test(
    "section 3 #30 hundreds of messages go each at its own deadline, out of one heap"
  )
  func heap() throws {
    var rig = try Rig()
    var random = RandomSource(seed: 3)
    var due: [ClientMessageID: Int] = [:]
    for _ in 0..<300 {
      let seconds = Int.random(in: 1...400, using: &random)
      due[try rig.receive(.text("a"), expiry: Expiry(seconds: UInt32(seconds))).id] = seconds
    }
    let hidden = try #require(due.keys.min())
    try rig.hide(hidden)
    due[hidden] = nil
    var passed = 0
    while let next = rig.transcript.nextExpiry(at: rig.now) {
      let wait = Int((next - rig.now.instant).inSeconds)
      #expect(passed + wait == due.values.min())
      rig.pass(wait)
      passed += wait
      if passed % 7 == 0 { try rig.restart() }
      for case .removed(let id) in try rig.expire() { #expect(due.removeValue(forKey: id) == passed) }
    }
    #expect(try due.isEmpty && rig.rows().isEmpty)
  }

  @Test(
    "S0-83 S0-84 section 3 #28 the last timer control holds, makes no bubble, and no message touches it"
  )
  func timer() throws {
    var rig = try Rig()
    let changes = try rig.receive(.control(.timer(Expiry(seconds: 60))), seq: 5).changes
    guard case .inserted(let row) = changes.first, changes.count == 1 else {
      Issue.record("\(changes)")
      return
    }
    #expect(row.kind == .system(.timerChanged(Expiry(seconds: 60))) && rig.unread == 0 && rig.preview == nil)
    #expect(rig.transcript.summary.profile.timer == Expiry(seconds: 60))
    // An older one, and one again.
    try rig.receive(.control(.timer(nil)), from: Rig.cleo, seq: 4)
    #expect(try rig.receive(.control(.timer(nil)), id: row.id, seq: 9).changes.isEmpty)
    try rig.receive(.text("a"), expiry: Expiry(seconds: 7), fallback: nil)
    try rig.restart()
    #expect(rig.transcript.summary.profile.timer == Expiry(seconds: 60))
    // S0-83: what a message says for itself wins.
    #expect(rig.transcript.expiry(explicit: nil) == Expiry(seconds: 60))
    #expect(rig.transcript.expiry(explicit: Expiry(seconds: 5)) == Expiry(seconds: 5))
    try rig.receive(.control(.timer(nil)), seq: 12)
    #expect(rig.transcript.expiry(explicit: nil) == nil)
    // A sealed profile that is older does not bring it back; a newer one does.
    var profile = GroupProfile(timer: Expiry(seconds: 9), timerVersion: ProfileVersion(epoch: 3, seq: 11))
    try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      transcript.adopt(profile, in: &transaction)
    }
    #expect(rig.transcript.summary.profile.timer == nil)
    profile.timerVersion.seq = 13
    try rig.run { (transcript, _, transaction) throws(MLSStorageError) in
      transcript.adopt(profile, in: &transaction)
    }
    #expect(rig.transcript.summary.profile.timer == Expiry(seconds: 9))
  }

  @Test("S0-86 who applied the timer that holds is known, until the next")
  func acknowledgements() throws {
    var rig = try Rig()
    let first = try rig.receive(.control(.timer(Expiry(seconds: 60)))).id
    try rig.receive(.control(.timerAcknowledged(first)), from: Rig.cleo)
    try rig.receive(.control(.timerAcknowledged(rig.idForTests())), from: Rig.me)
    #expect(try rig.transcript.timerAcknowledgedBy() == [Rig.ben.user, Rig.cleo.user])
    try rig.restart()
    let second = try rig.send(.control(.timer(nil))).id
    #expect(rig.transcript.summary.profile.timer == Expiry(seconds: 60))
    try rig.confirm(second)
    #expect(rig.transcript.summary.profile.timer == nil)
    #expect(try rig.transcript.timerAcknowledgedBy() == [Rig.me.user])
    try rig.receive(.control(.timerAcknowledged(first)), from: Rig.cleo)
    #expect(try rig.transcript.timerAcknowledgedBy() == [Rig.me.user])
  }

  @Test("S0-29 S3-26 a name is the last by the server's order, with a row that says so")
  func names() throws {
    var rig = try Rig()
    try rig.receive(.control(.renamed("two")), seq: 8)
    try rig.receive(.control(.renamed("one")), seq: 7)
    #expect(rig.transcript.summary.profile.name == "two")
    #expect(try rig.rows().map(\.kind) == [.system(.renamed("one")), .system(.renamed("two"))])
    try rig.receive(.control(.renamed("")), seq: 9)
    #expect(rig.transcript.summary.profile.name == nil)
    #expect(try rig.receive(.control(.leaving)).changes.isEmpty)
  }
}
