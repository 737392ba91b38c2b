import Foundation
import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendKit
import PalbeSQLStore
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeBackendServer

/// Databases whose columns hold what no server has written: every column of numbers in turn, with numbers that overflow whoever
/// reckons with them, with a text and with NULL.
@Suite("Damaged values in the databases (section 3)", .serialized)
final class DamagedValueTests {
  private let folder: TemporaryFolder
  private static let values = ["-1", "9223372036854775807", "-9223372036854775808", "'text'", "NULL"]

  init() throws { folder = try TemporaryFolder() }

  private func open(_ path: String) throws -> SQLConnection {
    var settings = SQLConnection.Settings.server()
    settings.isDurable = false
    return try SQLConnection(path: path, settings: settings)
  }

  /// The columns that are declared as numbers.
  private func numberColumns(of path: String) throws -> [(table: String, column: String)] {
    let connection = try open(path)
    return try connection.statement(
      """
      SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
      WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND c.type = 'INTEGER' ORDER BY t.name, c.cid
      """
    ).all { ($0.text(0), $0.text(1)) }.filter { $0 != ("state", "id") }
  }

  /// Lets every column be NULL, as only damage does.
  private func loosen(_ path: String) throws {
    try open(path).execute(
      """
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table';
      PRAGMA writable_schema = OFF;
      """)
  }

  /// Calls `body` with a copy of a file for each column and value that SQLite lets it have.
  private func eachDamage(of path: String, _ body: (String, Comment) throws -> Void) throws {
    try loosen(path)
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    let columns = try numberColumns(of: path)
    let original = folder.path("whole")
    try whole.write(to: URL(fileURLWithPath: original))
    for (table, column) in columns {
      for value in Self.values {
        for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + end) }
        try whole.write(to: URL(fileURLWithPath: path))
        let words = try damage(path, table, column, value)
        guard let words else { continue }
        let note: Comment = "\(table).\(column) = \(value)"
        // The newest row of a log's last group would have this number.
        if value != "NULL" || !isOptional(table, column),
          (table, column, value) != ("log", "id", Self.values[1])
        {
          #expect(
            words.contains { $0.hasPrefix("table \(table), row") && $0.contains(": \(column) is no") }, note)
        }
        try body(path, note)
      }
    }
  }

  /// What check says of it then; nil where SQLite lets no row have the value: a key is no text, a part of one not NULL.
  private func damage(
    _ path: String, _ table: String, _ column: String, _ value: String
  ) throws -> [String]? {
    let connection = try open(path)
    do throws(SQLError) {
      try connection.execute("UPDATE OR REPLACE \(table) SET \(column) = \(value)")
    } catch { return nil }
    guard connection.changedRowCount > 0 else { return nil }
    return try connection.damagedValues(in: tables(path).filter { $0.name == table })
  }

  private func tables(_ path: String) -> [StoredTable] {
    path.hasSuffix("messages.sqlite") ? Schema.tables : AccountSchema.tables
  }

  private func isOptional(_ table: String, _ column: String) -> Bool {
    (Schema.tables + AccountSchema.tables).contains { known in
      known.name == table
        && known.columns.contains { name, form in
          if case .optionalNumber = form { name == column } else { false }
        }
    }
  }

  @Test("Every column of numbers has its range")
  func listed() throws {
    for (path, known) in [
      (folder.path("messages.sqlite"), Schema.tables), (folder.path("accounts.sqlite"), AccountSchema.tables),
    ] {
      if known.first?.name == "account" {
        _ = try SQLiteAccountStore(path: path)
      } else {
        _ = try SQLiteBackendStore(path: path)
      }
      for (table, column) in try numberColumns(of: path) {
        let form = known.first { $0.name == table }?.columns.first { $0.key == column }?.value
        switch form {
        case .number, .optionalNumber: break
        default: Issue.record("\(table).\(column)")
        }
      }
      #expect(try open(path).damagedValues(in: known) == [])
    }
  }

  // MARK: Messages

  /// Asks for one thing of each kind; what is refused is refused with a reason, and what is answered can be written.
  private func ask(_ rig: Rig<SQLiteBackendStore>, _ life: StoredLife) -> [BackendFailure] {
    let (anna, ben, carl) = (life.anna, life.ben, life.carl)
    func message(_ epoch: Epoch) -> OutgoingMessage {
      OutgoingMessage(
        epoch: epoch, id: rig.newMessageID(), blob: Wire.application(life.groupMLSID, epoch, [1]),
        wakes: true,
        isEphemeral: false)
    }
    var requests: [(BackendRequest, Caller)] = []
    for caller in [ben] {
      requests += [
        .devices, .commsPrefs, .setCommsPrefs(sharePresence: true, shareReceipts: true), .keyPackageCount,
        .claimKeyPackages(of: ben.user), .groups(after: nil, limit: 9), .group(life.group),
        .commits(life.group, from: 0, limit: 9), .send(life.group, message(1)), .notifyScope(life.group),
        .fetchQueue(after: .start, limit: 2, connection: nil),
        .fetchQueue(after: .start, limit: 99, connection: nil), .unread(life.group), .unread(life.direct),
        .markRead(life.group, 5), .blob(life.blob), .createBlob(life.group, byteCount: 3),
        .commit(life.group, rig.bundle(life.groupMLSID, 1)),
        .subscribe(ConnectionID(UInt64(requests.count)), .conversation(life.groupMLSID)),
        .acknowledge(.upTo(QueueID(.max)), connection: nil),
      ].map { ($0, caller) }
    }
    requests += [
      (.group(life.group), anna), (.fetchQueue(after: .start, limit: 9, connection: nil), anna),
      (.setRole(life.group, ben.user, .admin), anna), (.completeBlob(life.blob), anna),
      (.fetchQueue(after: .start, limit: 9, connection: nil), carl), (.leave(life.direct), carl),
      (
        .reset(
          life.group, generation: 1,
          GroupFounding(mlsID: rig.newMLSID(), kind: .group, commit: nil, groupInfo: [])), anna
      ),
      (.revokeDevice(ben.device ?? life.anna.device!), ben),
    ]
    var refusals: [BackendFailure] = []
    for (request, caller) in requests {
      do throws(BackendFailure) {
        var json = JSONWriter()
        json.beginObject()
        try rig.ask(request, caller).write(into: &json)
      } catch { refusals.append(error) }
    }
    do throws(BackendFailure) {
      try rig.ask(.createBlob(life.group, byteCount: 3), anna, key: StoredLife.key)
    } catch { refusals.append(error) }
    return refusals
  }

  @Test(
    "Messages: no column's damage ends the process, a refusal says that the store is damaged; check names it")
  func messages() throws {
    let path = folder.path("messages.sqlite")
    let life = try StoredLife(in: path)
    var (starts, refusals, tried) = (0, 0, 0)
    try eachDamage(of: path) { path, note in
      tried += 1
      do {
        let store = try SQLiteBackendStore(path: path)
        try store.connection.execute("PRAGMA synchronous = OFF")
        starts += 1
        let rig = try Rig(store, at: life.end)
        for case .unavailable(let fault) in ask(rig, life) {
          refusals += 1
          #expect(fault == .corrupted || fault == .failed, note)
        }
        rig.advance(by: .seconds(5))
        // When all has expired, and is swept.
        try Rig(store, at: life.end.later(by: .days(45))).advance(by: .seconds(5))
      } catch let error as SQLError {
        #expect(error == .damagedValue, note)
      } catch { #expect(error as? BackendFailure == .unavailable(.corrupted), note) }
    }
    #expect(tried > 250 && starts > tried - 10 && refusals > 500, "\(tried) \(starts) \(refusals)")
  }

  @Test(
    "A device whose row is damaged keeps no push of another one back, and gets its own when it is whole again"
  )
  func wakes() throws {
    let store = try SQLiteBackendStore(path: folder.path("messages.sqlite"))
    let rig = try Rig(store)
    let (anna, ben, carl) = (try rig.enrol(), try rig.enrol(), try rig.enrol())
    for caller in [ben, carl] {
      try rig.ask(.setPushToken(PushToken(platform: .ios, bytes: [1])), caller)
    }
    let group = try rig.found(by: anna, with: [ben.user, carl.user])
    rig.advance(by: .seconds(3))
    _ = rig.events()
    try rig.send(group, anna)
    let created = try #require(
      try store.connection.statement("SELECT created FROM device WHERE key = 2").first { $0.integer(0) })
    try store.connection.execute("UPDATE device SET created = -1 WHERE key = 2")
    rig.advance(by: .seconds(30))
    let events = rig.events()
    #expect(events.filter { $0 == .storeFault(.corrupted) }.count == 1)
    #expect(
      events.compactMap { if case .wakePush(let push) = $0 { push.device } else { nil } } == [carl.device])
    #expect(rig.refusal(.devices, ben) == .unavailable(.corrupted))
    #expect(rig.refusal(.devices, carl) == nil)
    try store.connection.execute("UPDATE device SET created = \(created) WHERE key = 2")
    rig.advance(by: .seconds(60))
    #expect(rig.pushes().map(\.device) == [ben.device])
  }

  // MARK: Accounts

  @Test(
    "Accounts: no column's damage ends the process, a refusal says that the store is damaged; check names it")
  func accounts() throws {
    let path = folder.path("accounts.sqlite")
    let (keys, end, current, session): (SigningKeys, ServerTime, SignedIn, VerifiedSession) = try {
      let rig = try AccountRig(SQLiteAccountStore(path: path))
      _ = try rig.signUp("anna@example.org")
      let first = try rig.signIn("anna@example.org")
      let second = try rig.signIn("anna@example.org")
      let session = try rig.session(second.accessToken)
      try rig.accounts.endSession(first.session, of: first.user, at: rig.now)
      let device = DeviceID(at: rig.now.wall, using: &random)
      try rig.accounts.setDevice(device, of: second.session)
      let current = try rig.refresh(second.refreshToken)
      _ = try rig.signIn(ExternalIdentity(issuer: "i", subject: "s"))
      rig.advance(by: .seconds(4_000))
      let third = try rig.signIn("anna@example.org")
      try rig.accounts.endSession(third.session, of: third.user, at: rig.now)
      return (rig.accounts.keys, rig.now, current, session)
    }()
    var (refusals, tried) = (0, 0)
    try eachDamage(of: path) { path, note in
      tried += 1
      do {
        let store = try SQLiteAccountStore(path: path)
        try store.connection.execute("PRAGMA synchronous = OFF")
        for start in [end, end.later(by: .days(70))] {
          let rig = try AccountRig(store, keys: keys, at: start)
          let failures = [
            accountRefusal { try rig.signIn("anna@example.org") },
            accountRefusal { try rig.refresh(current.refreshToken) },
            accountRefusal { try rig.accounts.sessions(of: session, at: rig.now) },
            accountRefusal { try rig.signIn(ExternalIdentity(issuer: "i", subject: "s")) },
            accountRefusal {
              try rig.changePassword(of: session, from: "correct horse", to: "correct horse 2")
            },
            accountRefusal { try rig.accounts.endSession(current.session, of: current.user, at: rig.now) },
            accountRefusal { try rig.accounts.endSessions(of: current.user, at: rig.now) },
          ]
          for case .unavailable(let fault) in failures {
            refusals += 1
            #expect(fault == .corrupted || fault == .failed, note)
          }
          rig.advance(by: .seconds(5))
        }
      } catch let error as SQLError {
        #expect(error == .damagedValue, note)
      } catch { #expect(error as? AccountFailure == .unavailable(.corrupted), note) }
    }
    #expect(tried > 50 && refusals > 50, "\(tried) \(refusals)")
  }

  private var random = RandomSource(seed: 5)

  // MARK: The server

  @Test("A version below zero, a newest queue id below zero: the start names the file, and so does check")
  func starts() throws {
    let data = folder.path("data")
    try BackendServer(BackendServer.Configuration(data: data)).stop()
    for (file, damage, mend) in [
      ("accounts.sqlite", "UPDATE state SET last_dropped = -1", "UPDATE state SET last_dropped = NULL"),
      ("messages.sqlite", "PRAGMA user_version = -1", "PRAGMA user_version = \(Schema.steps.count)"),
      ("accounts.sqlite", "PRAGMA user_version = -1", "PRAGMA user_version = \(AccountSchema.steps.count)"),
      ("messages.sqlite", "UPDATE state SET last_queue_id = -1", "UPDATE state SET last_queue_id = 0"),
    ] {
      try open(data + "/" + file).execute(damage)
      let error = #expect(throws: (any Error).self) {
        try BackendServer(BackendServer.Configuration(data: data))
      }
      let words = "\(error.map { "\($0)" } ?? "")"
      #expect(words.contains(file) && (words.contains("damaged") || words.contains("corrupted")), "\(words)")
      let findings = try BackendServer.check(data, repairs: false).map(\.description)
      #expect(findings.contains { $0.contains(file) }, "\(findings)")
      try open(data + "/" + file).execute(mend)
    }
    try BackendServer(BackendServer.Configuration(data: data)).stop()
  }
}

extension ServerTime {
  fileprivate func later(by delta: TimeDelta) -> ServerTime {
    ServerTime(wall: wall + delta, instant: instant + delta)
  }
}
