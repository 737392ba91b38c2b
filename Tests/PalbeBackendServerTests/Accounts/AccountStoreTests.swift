import Foundation
import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendKit
import PalbeEventLoop
import PalbeSQLStore
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import Synchronization
import Testing

@testable import PalbeBackendServer

/// Random requests about accounts, to a store over dictionaries and to one over SQLite, which must answer alike.
private final class AccountHistory {
  let memory: AccountRig<MemoryAccountStore>
  var sqlite: AccountRig<SQLiteAccountStore>
  let path: String
  let seed: UInt64
  var random: RandomSource
  var step = 0
  var answers: [SignedIn] = []
  var codes: [String: Int] = [:]

  init(seed: UInt64, path: String) throws {
    (self.seed, self.path) = (seed, path)
    random = RandomSource(seed: seed)
    memory = try AccountRig(MemoryAccountStore(), seed: seed)
    sqlite = try AccountRig(SQLiteAccountStore(path: path), seed: seed)
  }

  var note: Comment { "seed \(seed), step \(step)" }
  func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

  /// Asks both.
  @discardableResult
  func ask<Value: Equatable>(
    _ one: (AccountRig<MemoryAccountStore>) throws -> Value,
    _ other: (AccountRig<SQLiteAccountStore>) throws -> Value
  ) -> Value? {
    func result<S>(
      _ rig: AccountRig<S>, _ body: (AccountRig<S>) throws -> Value
    ) -> Result<Value, AccountFailure> {
      do { return .success(try body(rig)) } catch { return .failure(error as! AccountFailure) }
    }
    let (first, second) = (result(memory, one), result(sqlite, other))
    #expect(first == second, note)
    #expect(memory.ended() == sqlite.ended(), note)
    #expect(memory.accounts.refused == sqlite.accounts.refused, note)
    switch first {
    case .success(let value):
      codes["ok", default: 0] += 1
      return value
    case .failure(let failure):
      codes[failure.code, default: 0] += 1
      return nil
    }
  }

  func keep(_ answer: SignedIn?) {
    guard let answer else { return }
    answers.append(answer)
    if answers.count > 40 { answers.remove(at: below(30)) }
  }

  func run() throws {
    step += 1
    let email = "u\(below(6))@example.org"
    let password = ["correct horse", "battery staple"][below(4) / 3]
    switch below(20) {
    case 0: keep(ask({ try $0.signUp(email, password) }, { try $0.signUp(email, password) }))
    case 1, 2: keep(ask({ try $0.signIn(email, password) }, { try $0.signIn(email, password) }))
    case 3:
      // A zero in a name is not its end.
      let identity = ExternalIdentity(issuer: "i", subject: ["a", "a\0b", "a\0c", "ä"][below(4)])
      keep(ask({ try $0.signIn(identity) }, { try $0.signIn(identity) }))
    case 4:
      let delta = [TimeDelta.seconds(1), .seconds(29), .seconds(400), .seconds(86_400 * 20)][below(4)]
      memory.advance(by: delta)
      sqlite.advance(by: delta)
    case 5:
      let delta = TimeDelta.seconds((below(3) - 1) * 5_000)
      memory.jump(by: delta)
      sqlite.jump(by: delta)
    case 6: if below(4) == 0 { try restart() }
    default:
      guard !answers.isEmpty else { return }
      let answer = answers[below(answers.count)]
      let now = memory.now
      let session = VerifiedSession(
        user: answer.user, session: answer.session, expiresAt: now.wall, deadline: now.instant)
      switch below(12) {
      case 0:
        ask(
          {
            try $0.accounts.endSession(answer.session, of: answer.user, at: now)
            return true
          },
          {
            try $0.accounts.endSession(answer.session, of: answer.user, at: now)
            return true
          })
      case 1:
        let device = DeviceID(at: WallTime(microseconds: 1), using: &random)
        ask(
          {
            try $0.accounts.setDevice(device, of: answer.session)
            return true
          },
          {
            try $0.accounts.setDevice(device, of: answer.session)
            return true
          })
        if below(3) == 0 {
          ask(
            {
              try $0.accounts.endSessions(of: device, at: now)
              return true
            },
            {
              try $0.accounts.endSessions(of: device, at: now)
              return true
            })
        }
      case 2:
        let new = ["correct horse", "battery staple"][below(2)]
        ask(
          {
            try $0.changePassword(of: session, from: password, to: new)
            return true
          },
          {
            try $0.changePassword(of: session, from: password, to: new)
            return true
          })
      case 3, 4:
        ask(
          { try $0.accounts.sessions(of: session, at: now) },
          { try $0.accounts.sessions(of: session, at: now) })
      default:
        // One of them lies behind: that is a lost answer or a theft.
        keep(ask({ try $0.refresh(answer.refreshToken) }, { try $0.refresh(answer.refreshToken) }))
      }
    }
  }

  /// A restart of the one over SQLite: what is durable is what was answered.
  func restart() throws {
    let now = sqlite.now
    let keys = sqlite.accounts.keys
    sqlite = try AccountRig(SQLiteAccountStore(path: ":memory:"))
    sqlite = try AccountRig(SQLiteAccountStore(path: path), seed: seed &+ UInt64(step), keys: keys, at: now)
    try memory.restart(seed: seed &+ UInt64(step))
  }
}

@Suite("Accounts in SQLite")
struct AccountStoreTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("4.1: random requests are answered as the store over dictionaries answers them", arguments: 1...4)
  func model(seed: Int) throws {
    let history = try AccountHistory(seed: UInt64(seed), path: folder.path("db"))
    for _ in 0..<1_000 { try history.run() }
    for code in ["ok", "account_exists", "invalid_credentials", "session_expired", "refresh_token_reused"] {
      #expect(history.codes[code, default: 0] > 2, "\(code): \(history.codes)")
    }
  }

  /// A little life of every kind of request.
  private func live(_ rig: AccountRig<SQLiteAccountStore>) throws {
    let anna = try rig.signUp("anna@example.org")
    let second = try rig.signIn("anna@example.org", agent: "tablet")
    let ben = try rig.signIn(ExternalIdentity(issuer: "i", subject: "ben"))
    try rig.accounts.setDevice(DeviceID(bytes: [UInt8](repeating: 7, count: 16))!, of: ben.session)
    var current = anna
    for _ in 0..<5 { current = try rig.refresh(current.refreshToken) }
    #expect(accountRefusal { try rig.refresh(anna.refreshToken) } == .refreshTokenReused)
    let session = try rig.session(second.accessToken)
    try rig.changePassword(of: session, from: "correct horse", to: "battery staple")
    _ = try rig.signIn("anna@example.org", "battery staple")
    try rig.accounts.endSession(second.session, of: second.user, at: rig.now)
    rig.advance(by: .seconds(61 * 86_400))
  }

  @Test("Killed before or after any transaction's end, the file is the one before or after it, whole")
  func crashes() throws {
    let store = try SQLiteAccountStore(path: folder.path("db"))
    let watch = try CrashWatch(folder, store.connection)
    store.willCommit = { () throws(AccountFailure) in watch.willCommit() }
    store.didCommit = { () throws(AccountFailure) in watch.didCommit() }
    try live(AccountRig(store))
    #expect(watch.states.count >= 15)
    store.willCommit = {}
    store.didCommit = {}
    try watch.checkCutLogs()
  }

  @Test("Killed between a rotation and its answer: the token gives the same successor, once more within 30 s")
  func lostAnswer() throws {
    let store = try SQLiteAccountStore(path: folder.path("db"))
    let rig = try AccountRig(store)
    let first = try rig.signUp("anna@example.org")
    let lost = try rig.refresh(first.refreshToken)
    var late = rig.now
    late.wall = late.wall + .seconds(20)
    late.instant = .zero
    let path = try folder.copyDatabase(to: "crash")
    let after = try AccountRig(SQLiteAccountStore(path: path), seed: 2, keys: rig.accounts.keys, at: late)
    let again = try after.refresh(first.refreshToken)
    #expect(again.refreshToken == lost.refreshToken)
    _ = try after.refresh(again.refreshToken)
    #expect(accountRefusal { try after.refresh(first.refreshToken) } == .refreshTokenReused)
    // What was refused is refused after another start.
    #expect(throws: BackendFailure.sessionExpired) { try after.session(again.accessToken) }
  }

  @Test(
    "An error that leaves open whether a transaction is there: all is refused until the file is opened again")
  func reopening() throws {
    let store = try SQLiteAccountStore(path: folder.path("db"))
    let rig = try AccountRig(store)
    let first = try rig.signUp("anna@example.org")
    let second = try rig.signIn("anna@example.org")
    // The transaction is there, and nobody was told.
    store.didCommit = { () throws(AccountFailure) in
      store.connection.refuseEverything()
      throw .unavailable(.failed)
    }
    #expect(
      accountRefusal { try rig.accounts.endSession(first.session, of: first.user, at: rig.now) }
        == .unavailable(.failed))
    store.didCommit = {}
    #expect(accountRefusal { try rig.refresh(second.refreshToken) } == .unavailable(.failed))
    #expect(!store.isUsable)
    try store.reopen()
    try rig.accounts.storeReopened()
    #expect(rig.ended() == [first.session])
    #expect(throws: BackendFailure.sessionExpired) { try rig.session(first.accessToken) }
    #expect(throws: Never.self) { try rig.refresh(second.refreshToken) }
  }

  @Test(
    "Bug: accounts were never told of a store that was opened again when telling them failed the first time")
  func behind() throws {
    let store = try SQLiteAccountStore(path: folder.path("db"))
    let rig = try AccountRig(store)
    let first = try rig.signUp("anna@example.org")
    let ended = Mutex<[SessionID]>([])
    let thread = AccountThread(
      rig.accounts, store: store, keysFile: KeyFile(folder.path("keys")), view: AccountView(rig.accounts),
      mailbox: try Mailbox(capacity: 1), log: ServerLog(level: .warning, descriptor: -1),
      faults: FaultLog(ServerLog(level: .warning, descriptor: -1)),
      sessionsEnded: { sessions in ended.withLock { $0 += sessions } })
    store.didCommit = { () throws(AccountFailure) in
      store.connection.refuseEverything()
      throw .unavailable(.failed)
    }
    #expect(throws: AccountFailure.unavailable(.failed)) {
      try thread.accounts.endSession(first.session, of: first.user, at: rig.now)
    }
    // The file opens, but the first look at it fails.
    store.didCommit = { () throws(AccountFailure) in throw .unavailable(.failed) }
    thread.reopenIfNeeded(at: rig.now.instant)
    store.didCommit = {}
    #expect(store.isUsable && ended.withLock { $0.isEmpty })
    thread.reopenIfNeeded(at: rig.now.instant + .milliseconds(999))
    #expect(ended.withLock { $0.isEmpty })
    thread.reopenIfNeeded(at: rig.now.instant + .seconds(1))
    #expect(ended.withLock { $0 } == [first.session] && thread.accounts.refused[first.session] != nil)
  }

  @Test("What is refused after a start is what was ended before it")
  func refused() throws {
    let answer: SignedIn
    let keys: SigningKeys
    let now: ServerTime
    do {
      let rig = try AccountRig(SQLiteAccountStore(path: folder.path("db")))
      answer = try rig.signUp("anna@example.org")
      try rig.accounts.endSession(answer.session, of: answer.user, at: rig.now)
      (keys, now) = (rig.accounts.keys, rig.now)
    }
    let rig = try AccountRig(SQLiteAccountStore(path: folder.path("db")), seed: 2, keys: keys, at: now)
    #expect(throws: BackendFailure.sessionExpired) { try rig.session(answer.accessToken) }
  }

  @Test("Disk full: a typed error, nothing of it there, and all goes on when there is room")
  func full() throws {
    let store = try SQLiteAccountStore(path: folder.path("db"))
    let rig = try AccountRig(store)
    // Its row has its full length.
    let first = try rig.refresh(try rig.signUp("anna@example.org").refreshToken)
    let pages = try store.connection.statement("PRAGMA page_count").first { row in row.integer(0) } ?? 0
    try store.connection.execute("PRAGMA max_page_count = \(pages + 2)")
    var failure: AccountFailure?
    for index in 0..<200 where failure == nil {
      failure = accountRefusal { try rig.signIn(ExternalIdentity(issuer: "i", subject: "\(index)")) }
    }
    #expect(failure == .unavailable(.full))
    // What needs no page more goes on.
    let second = try rig.refresh(first.refreshToken)
    try store.connection.execute("PRAGMA max_page_count = 100000")
    #expect(throws: Never.self) { try rig.signUp("ben@example.org") }
    #expect(throws: Never.self) { try rig.refresh(second.refreshToken) }
  }

  @Test("S0, issue 5: no password, token or key is in the file, only hashes")
  func blindness() throws {
    let store = try SQLiteAccountStore(path: folder.path("db"))
    let rig = try AccountRig(store)
    let first = try rig.signUp("anna@example.org", "Xylophone-Marker-77")
    let second = try rig.refresh(first.refreshToken)
    try rig.changePassword(
      of: rig.session(second.accessToken), from: "Xylophone-Marker-77", to: "Yucatan-Marker-78")
    let secrets: [[UInt8]] =
      ["Xylophone-Marker-77", "Yucatan-Marker-78"].map { Array($0.utf8) }
      + [first, second].flatMap { answer in
        // The random part: the rest names the session.
        [Array(Data(base64URL: answer.refreshToken)[24..<56]), Array(answer.accessToken.utf8.suffix(40))]
      }
    for bytes in try folder.dump() {
      for secret in secrets {
        #expect(Data(bytes).range(of: Data(secret)) == nil)
      }
    }
    #expect(try folder.dump().contains { Data($0).range(of: Data("anna@example.org".utf8)) != nil })
  }

  @Test("A file of schema 1 opens, holds what it held, and goes on")
  func schema1() throws {
    let golden = "Tests/PalbeBackendServerTests/Golden/accounts1.sql"
    let start = ServerTime(
      wall: WallTime(microseconds: 1_800_000_000_000_000), instant: Instant(nanoseconds: 1_000_000_000))
    // From this seed come the tokens that the file knows.
    let writer = try AccountRig(SQLiteAccountStore(path: folder.path("db")), seed: 11, at: start)
    let anna = try writer.signUp("anna@example.org")
    let next = try writer.refresh(anna.refreshToken)
    let ben = try writer.signIn(ExternalIdentity(issuer: "i", subject: "ben"))
    let gone = try writer.signIn("anna@example.org")
    try writer.accounts.endSession(gone.session, of: gone.user, at: writer.now)
    if ProcessInfo.processInfo.environment["PALBE_WRITE_FIXTURES"] != nil {
      let connection = try SQLConnection(path: folder.copyDatabase(to: "copy"), settings: .server())
      try dump(connection, version: AccountSchema.steps.count)
        .write(to: Vectors.projectRoot.appendingPathComponent(golden))
    }
    do {
      let connection = try SQLConnection(path: folder.path("old"))
      try connection.execute(String(decoding: try Vectors.golden(golden), as: UTF8.self))
    }
    let rig = try AccountRig(
      SQLiteAccountStore(path: folder.path("old")), seed: 12, keys: writer.accounts.keys, at: start)
    #expect(try rig.signIn("anna@example.org").user == anna.user)
    #expect(try rig.signIn(ExternalIdentity(issuer: "i", subject: "ben")).user == ben.user)
    #expect(try rig.refresh(anna.refreshToken).refreshToken == next.refreshToken)
    #expect(throws: Never.self) { try rig.refresh(next.refreshToken) }
    #expect(throws: BackendFailure.sessionExpired) { try rig.session(gone.accessToken) }
  }

  @Test("Issue 5, 3: a file that a server wrote holds together; what does not is named")
  func check() throws {
    let path = folder.path("db")
    #expect(try AccountCheck.problems(in: folder.path("none")) == ["no tables"])
    do {
      let rig = try AccountRig(SQLiteAccountStore(path: path))
      try live(rig)
      _ = try rig.signUp("ben@example.org")
      _ = try rig.refresh(try rig.signIn("ben@example.org").refreshToken)
      #expect(throws: SQLError.busy) { try AccountCheck.problems(in: path) }
    }
    #expect(try AccountCheck.problems(in: path) == [])
    for (damage, words) in [
      ("DELETE FROM account WHERE email = CAST('ben@example.org' AS BLOB)", "2 sessions of nobody"),
      ("UPDATE session SET cover = NULL", "1 sessions without a refresh token"),
      ("UPDATE session SET current = x'00'", "sessions without a refresh token"),
      ("UPDATE account SET salt = x'00' WHERE salt IS NOT NULL", "passwords without"),
      ("UPDATE account SET n = 3 WHERE n IS NOT NULL", "a password's cost"),
      ("DELETE FROM identity", "1 accounts that nobody can sign in to"),
      ("INSERT INTO refused SELECT id, 1, 0 FROM session", "2 sessions that are over"),
    ] {
      let copy = try folder.copyDatabase(to: "damaged")
      do {
        let connection = try SQLConnection(path: copy, settings: .server())
        try connection.execute(damage)
      }
      let problems = try AccountCheck.problems(in: copy)
      #expect(problems.contains { $0.contains(words) }, "\(damage): \(problems)")
    }
  }

  @Test("Every operation reads by an index, never a whole table")
  func plans() throws {
    let store = try SQLiteAccountStore(path: folder.path("db"))
    try live(AccountRig(store))
    for sql in store.connection.preparedStatements where !sql.hasPrefix("PRAGMA") {
      guard let plan = try? store.connection.statement("EXPLAIN QUERY PLAN " + sql) else { continue }
      for line in try plan.all({ row in row.text(3) }) where line.hasPrefix("SCAN") {
        // Once, at the start.
        #expect(line.hasPrefix("SCAN refused"), "\(line): \(sql)")
      }
    }
  }
}

extension Data {
  fileprivate init(base64URL text: String) {
    let standard = text.replacing("-", with: "+").replacing("_", with: "/")
    self = Data(base64Encoded: standard) ?? Data()
  }
}
