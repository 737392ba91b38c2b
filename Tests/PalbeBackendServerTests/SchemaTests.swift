import Foundation
import PalbeBackendCore
import PalbeBackendKit
import PalbeSQLStore
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

/// A database as the SQL that makes it.
func dump(_ connection: SQLConnection, version: Int) throws -> Data {
  let schema = try connection.statement(
    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
  ).all { row in row.text(0) }
  let inserts = try contents(connection).compactMap { row -> String? in
    guard let colon = row.firstIndex(of: ":"), !row.hasPrefix("sqlite_") else { return nil }
    return "INSERT INTO \(row[..<colon]) VALUES (\(row[row.index(colon, offsetBy: 2)...]));"
  }
  let text = schema.map { $0 + ";" } + inserts + ["PRAGMA user_version = \(version);", ""]
  return Data(text.joined(separator: "\n").utf8)
}

/// Files of every released schema, as SQL. `PALBE_WRITE_FIXTURES=1` writes that of the newest; older ones never change.
@Suite("The server's SQLite file: schemas")
struct SchemaTests {
  private let folder: TemporaryFolder
  private static let start = ServerTime(
    wall: WallTime(microseconds: 1_800_000_000_000_000), instant: Instant(nanoseconds: 1_000_000_000))

  init() throws { folder = try TemporaryFolder() }

  private func write(_ path: String) throws {
    let store = try SQLiteBackendStore(path: folder.path("new"))
    let rig = try Rig(store, seed: 11, at: Self.start)
    let (anna, ben, carl) = (
      try rig.enrol(packages: 2), try rig.enrol(packages: 2), try rig.enrol(packages: 2)
    )
    let tablet = try rig.enrol(ben.user, packages: 1)
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.send(group, anna)
    try rig.send(group, ben)
    let rows = try rig.queue(ben)
    try rig.ask(.acknowledge(.upTo(rows[1].id), connection: nil), ben)
    try rig.ask(.markRead(group, 2), ben)
    try rig.ask(.setNotifyScope(group, .none), anna)
    try rig.ask(.setCommsPrefs(sharePresence: false, shareReceipts: nil), carl)
    try rig.ask(.setPushToken(PushToken(platform: .ios, bytes: [1, 2])), carl)
    try rig.ask(.revokeDevice(tablet.device!), ben)
    let bundle = try rig.bundle(group, by: anna, adding: [carl.user])
    try rig.ask(.commit(group, bundle), anna, key: IdempotencyKey(key: [1], digest: [2]))
    _ = try rig.found(by: anna, with: [carl.user], kind: .direct(carl.user))
    try rig.ask(.createBlob(group, byteCount: 77), carl)
    try dump(store.connection, version: Schema.steps.count).write(to: URL(fileURLWithPath: path))
  }

  @Test("A file of schema 1 opens, holds what it held, and goes on")
  func schema1() throws {
    let golden = "Tests/PalbeBackendServerTests/Golden/schema1.sql"
    if ProcessInfo.processInfo.environment["PALBE_WRITE_FIXTURES"] != nil {
      try write(Vectors.projectRoot.appendingPathComponent(golden).path)
    }
    do {
      let connection = try SQLConnection(path: folder.path("old"))
      try connection.execute(String(decoding: try Vectors.golden(golden), as: UTF8.self))
    }
    let store = try SQLiteBackendStore(path: folder.path("old"))
    #expect(try store.connection.userVersion == Schema.steps.count)
    let people: [(DeviceID, UserID)] = try store.connection.statement(
      "SELECT device.id, user.id FROM device JOIN user ON user.key = device.user ORDER BY device.key"
    ).all { (row) throws(SQLError) in (try row.id(0), try row.id(1)) }
    let callers = people.map { Caller(user: $0.1, device: $0.0) }
    try #require(callers.count == 4)
    let (anna, ben, carl, tablet) = (callers[0], callers[1], callers[2], callers[3])
    var late = Self.start
    late.wall = late.wall + .seconds(60)
    let rig = try Rig(store, at: late)

    #expect(rig.refusal(.devices, tablet) == .deviceRevoked)
    guard case .groups(let groups, false) = try rig.ask(.groups(after: nil, limit: 9), anna) else {
      Issue.record("no groups")
      return
    }
    #expect(groups.map(\.kind) == [.group, .direct] && groups.map(\.epoch) == [2, 1])
    #expect(groups.map(\.headSequence) == [4, 1] && groups.map(\.role) == [.owner, .owner])
    let group = groups[0].id
    let view = try rig.view(group, ben)
    #expect(view.members.count == 3 && view.leaves.count == 3 && view.missingDevices.isEmpty)
    #expect(
      try rig.ask(.unread(group), ben)
        == .unread(
          UnreadView(groupMaxSequence: 4, lastReadSequence: 2, deliveredSequence: 2, unreadCount: 1)))
    #expect(try rig.ask(.notifyScope(group), anna) == .notifyScope(.none))
    #expect(
      try rig.ask(.commsPrefs, carl)
        == .commsPrefs(CommsPrefs(sharePresence: false, shareReceipts: true)))
    #expect(try rig.queue(carl).count == 2)
    #expect(try rig.queue(ben).count == 2)
    let repeated = try rig.ask(
      .commit(group, try rig.bundle(group, by: anna)), anna, key: IdempotencyKey(key: [1], digest: [2]))
    #expect(repeated == .committed(sequence: 4, epoch: 2))
    rig.advance(by: .seconds(3))
    #expect(rig.pushes().map(\.device) == [carl.device, carl.device])
    #expect(try rig.send(group, carl) == 5)
    #expect(
      try rig.ask(.keyPackageCount, carl) == .keyPackageCount(KeyPackageCount(count: 0, hasLastResort: true)))
  }

  @Test("Each operation of a message's way reads by an index, never a whole table")
  func plans() throws {
    let store = try SQLiteBackendStore(path: folder.path("db"))
    let rig = try Rig(store)
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.send(group, anna)
    try rig.ask(.markRead(group, 2), ben)
    try rig.ask(.unread(group), ben)
    try rig.drain(ben)
    try rig.ask(.commits(group, from: 0, limit: 9), ben)
    try rig.ask(.groups(after: nil, limit: 9), ben)
    try rig.ask(.leave(group), ben)
    rig.advance(by: .seconds(4_000))
    // Once at the start, or in a sweep: these look at each device or group, and seek from there.
    let sweeps = ["SCAN device", "SCAN grp"]
    for sql in store.connection.preparedStatements
    where !sql.hasPrefix("PRAGMA") && sql != SQLiteBackendStore.countQueueRows {
      guard let plan = try? store.connection.statement("EXPLAIN QUERY PLAN " + sql) else { continue }
      for line in try plan.all({ row in row.text(3) }) {
        let isScan = line.hasPrefix("SCAN") && line != "SCAN CONSTANT ROW" && !line.hasPrefix("SCAN state")
        #expect(!isScan || sweeps.contains { line.hasPrefix($0) }, "\(line): \(sql)")
      }
    }
  }
}
