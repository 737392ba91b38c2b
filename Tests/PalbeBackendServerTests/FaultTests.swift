import Foundation
import PalbeBackendCore
import PalbeBackendKit
import PalbeSQLStore
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

/// The rows of every table of a database file, and nothing else that may differ between two equal ones.
func contents(_ path: String) throws -> [String] {
  var settings = SQLConnection.Settings()
  settings.journal = .writeAhead
  settings.isDurable = false
  return try contents(SQLConnection(path: path, settings: settings))
}

func contents(_ connection: SQLConnection) throws -> [String] {
  let tables = try connection.statement("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    .all { row in row.text(0) }
  var rows: [String] = []
  for table in tables {
    let columns = try connection.statement("SELECT name FROM pragma_table_info('\(table)')").all {
      $0.text(0)
    }
    let values = columns.map { "quote(\"\($0)\")" }.joined(separator: " || ',' || ")
    rows += try connection.statement("SELECT \(values) FROM \"\(table)\" ORDER BY 1").all {
      "\(table): \($0.text(0))"
    }
  }
  return rows
}

extension TemporaryFolder {
  /// A copy of the database "db" as it lies on the disk now, as after a crash.
  func copyDatabase(to name: String, truncatingLogTo count: Int? = nil) throws -> String {
    let manager = FileManager.default
    for end in ["", "-wal"] {
      let (from, to) = (path("db" + end), path(name + end))
      if manager.fileExists(atPath: to) { try manager.removeItem(atPath: to) }
      guard manager.fileExists(atPath: from) else { continue }
      if end == "-wal", let count {
        try Data(contentsOf: URL(fileURLWithPath: from)).prefix(count).write(to: URL(fileURLWithPath: to))
      } else {
        try manager.copyItem(atPath: from, toPath: to)
      }
    }
    return path(name)
  }
}

@Suite("The server's SQLite file: crashes and failures")
struct FaultTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func copy(_ name: String, truncatingLogTo count: Int? = nil) throws -> String {
    try folder.copyDatabase(to: name, truncatingLogTo: count)
  }

  /// A little life of every kind of request.
  private func live(_ rig: Rig<SQLiteBackendStore>) throws {
    let (anna, ben, carl) = (try rig.enrol(), try rig.enrol(packages: 1), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    let key = IdempotencyKey(key: [1], digest: [2])
    try rig.ask(.claimKeyPackages(of: carl.user), anna, key: key)
    try rig.ask(.setPushToken(PushToken(platform: .ios, bytes: [1])), ben)
    for _ in 0..<3 { try rig.send(group, anna) }
    rig.advance(by: .seconds(3))
    try rig.drain(ben)
    try rig.ask(.markRead(group, 3), ben)
    try rig.ask(.commit(group, try rig.bundle(group, by: ben, adding: [carl.user])), ben)
    try rig.ask(.setRole(group, ben.user, .admin), anna)
    try rig.ask(.setNotifyScope(group, .none), carl)
    try rig.ask(.setCommsPrefs(sharePresence: false, shareReceipts: nil), carl)
    guard case .blob(let blob) = try rig.ask(.createBlob(group, byteCount: 3), anna) else { return }
    try rig.ask(.completeBlob(blob.id), anna)
    try rig.ask(.leave(group), carl)
    try rig.ask(.commit(group, try rig.bundle(group, by: ben)), ben)
    let tablet = try rig.enrol(ben.user)
    try rig.ask(.revokeDevice(tablet.device!), ben)
    var founding = try rig.founding(by: anna, with: [ben.user])
    founding.commit?.delta.addedUsers = []
    try rig.ask(.reset(group, generation: 0, founding), anna)
    rig.advance(by: .seconds(40 * 86_400))
  }

  @Test(
    "4.1, section 3, 1: killed before or after any transaction's end, the file is the one before or after it, whole"
  )
  func crashes() throws {
    let store = try SQLiteBackendStore(path: folder.path("db"))
    let watch = try CrashWatch(folder, store.connection)
    store.willCommit = { () throws(BackendFailure) in watch.willCommit() }
    store.didCommit = { () throws(BackendFailure) in watch.didCommit() }
    try live(Rig(store))
    #expect(watch.states.count > 30)
    store.willCommit = {}
    store.didCommit = {}
    try watch.checkCutLogs()
  }

  @Test("A crash between the end of a transaction and its answer: the repetition gets the first answer")
  func repetition() throws {
    let store = try SQLiteBackendStore(path: folder.path("db"))
    let rig = try Rig(store)
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    let message = try rig.message(group, anna)
    let bundle = try rig.bundle(group, by: ben)
    let key = IdempotencyKey(key: [1], digest: [2])
    try rig.ask(.send(group, message), anna)
    let committed = try rig.ask(.commit(group, bundle), ben, key: key)
    let after = try Rig(SQLiteBackendStore(path: try copy("crash")), at: rig.now)
    #expect(try after.ask(.send(group, message), anna) == .accepted(sequence: 2, epoch: 1, isRepeated: true))
    #expect(try after.ask(.commit(group, bundle), ben, key: key) == committed)
    #expect(after.refusal(.commit(group, bundle), ben) == .staleEpoch(head: 2))
    #expect(try after.queue(ben).count == 2 && after.queue(anna).count == 1)
    // Positions in queues go on above the old ones, even when the clock went back.
    after.jump(by: .seconds(-86_400))
    try after.send(group, anna)
    let rows = try after.queue(ben)
    #expect(rows.map(\.id) == rows.map(\.id).sorted() && rows.count == 3)
  }

  @Test("A transaction that a crash of the process ends is not there, and what it would have told neither")
  func aborted() throws {
    let store = try SQLiteBackendStore(path: folder.path("db"))
    let rig = try Rig(store)
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    let before = try contents(store.connection)
    let message = try rig.message(group, anna)
    store.willCommit = { () throws(BackendFailure) in throw .unavailable(.failed) }
    #expect(rig.refusal(.send(group, message), anna) == .unavailable(.failed))
    store.willCommit = {}
    #expect(try contents(store.connection) == before)
    #expect(try rig.ask(.send(group, message), anna) == .accepted(sequence: 2, epoch: 1, isRepeated: false))
  }

  @Test("Disk full: a typed error for who writes, answers for who reads, and all goes on when there is room")
  func full() throws {
    let store = try SQLiteBackendStore(path: folder.path("db"))
    let rig = try Rig(store)
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.send(group, anna)
    let pages = try store.connection.statement("PRAGMA page_count").first { row in row.integer(0) } ?? 0
    try store.connection.execute("PRAGMA max_page_count = \(pages + 4)")
    var message = try rig.message(group, anna)
    message.blob += [UInt8](repeating: 1, count: 200_000)
    let results = rig.backend.handle(
      [
        BackendCall(.unread(group), from: ben), BackendCall(.send(group, message), from: anna),
        BackendCall(.fetchQueue(after: .start, limit: 9, connection: nil), from: ben),
        BackendCall(.markRead(group, 2), from: ben),
      ], at: rig.now)
    #expect(results[1] == .failure(.unavailable(.full)))
    for index in [0, 2, 3] { #expect(throws: Never.self) { try results[index].get() } }
    try store.connection.execute("PRAGMA max_page_count = 100000")
    #expect(try rig.ask(.send(group, message), anna) == .accepted(sequence: 3, epoch: 1, isRepeated: false))
    #expect(try rig.queue(ben).count == 3)
  }

  @Test("A second server is kept out; one that has locked the file is waited for by asking again")
  func locked() throws {
    let first = try SQLiteBackendStore(path: folder.path("db"))
    #expect(throws: SQLError.busy) { try SQLiteBackendStore(path: folder.path("db")) }
    _ = first
    let shared = try SQLiteBackendStore(path: folder.path("shared"), isExclusive: false)
    let rig = try Rig(shared)
    let anna = try rig.enrol()
    var settings = SQLConnection.Settings()
    settings.journal = .writeAhead
    settings.isExclusive = false
    let other = try SQLConnection(path: folder.path("shared"), settings: settings)
    try other.begin()
    #expect(rig.refusal(.devices, anna) == .unavailable(.busy))
    try other.rollBack()
    #expect(rig.refusal(.devices, anna) == nil)
  }

  @Test("A file that is none, or a newer program's, is refused")
  func foreign() throws {
    try Data(repeating: 65, count: 5_000).write(to: folder.url.appendingPathComponent("text"))
    #expect(throws: SQLError.self) { try SQLiteBackendStore(path: folder.path("text")) }
    do {
      let connection = try SQLConnection(path: folder.path("new"))
      try connection.execute("PRAGMA user_version = 99")
    }
    #expect(throws: SQLError.newerVersion(found: 99, known: Schema.steps.count)) {
      try SQLiteBackendStore(path: folder.path("new"))
    }
  }

  @Test("Damaged pages are a typed error")
  func corrupted() throws {
    let anna: Caller
    let now: ServerTime
    do {
      let rig = try Rig(SQLiteBackendStore(path: folder.path("db")))
      anna = try rig.enrol()
      now = rig.now
    }
    let url = URL(fileURLWithPath: folder.path("db"))
    var bytes = try Data(contentsOf: url)
    for index in 4_096..<bytes.count { bytes[index] = 0xa5 }
    try bytes.write(to: url)
    do {
      let rig = try Rig(SQLiteBackendStore(path: folder.path("db")), at: now)
      #expect(rig.refusal(.devices, anna) == .unavailable(.corrupted))
    } catch let error as BackendFailure { #expect(error == .unavailable(.corrupted)) } catch let error
      as SQLError
    {
      guard case .corrupted = error else {
        Issue.record("\(error)")
        return
      }
    }
  }
}
