import Foundation
import PalbeBackendCore
import PalbeCrypto
import PalbeSQLStore
import PalbeTestKit
import PalbeWire
import Testing

@testable import PalbeBackendServer

/// Every version of the tables that was ever released: its step never changes, its file is opened by today's server.
///
/// Who changes the tables adds a step, runs the tests of schemas with `PALBE_WRITE_FIXTURES=1` for a file of it, and adds its
/// digest here.
@Suite("Released schemas (4.1, migrations)")
struct ReleasedSchemaTests {
  private static let folder = "Tests/PalbeBackendServerTests/Golden/"
  /// A file of the store, its steps, the name of its fixtures, the digest of each step.
  private static let stores: [(file: String, steps: [String], fixture: String, digests: [String])] = [
    (
      "messages.sqlite", Schema.steps, "schema",
      ["35668d017ee3fade1321904d837b72b910ed7ff62dc28fb2984a713f2c1cc00f"]
    ),
    (
      "accounts.sqlite", AccountSchema.steps, "accounts",
      ["774ec9a077ffc2344059cd041972e44f38185a23b375e13990fe90a815a64928"]
    ),
  ]

  @Test("A released step is what it was, and each has a fixture", arguments: 0..<2)
  func steps(_ index: Int) throws {
    let store = Self.stores[index]
    #expect(store.steps.map { Hex.encode(SHA256.hash(Array($0.utf8))) } == store.digests)
    for version in 1...store.steps.count {
      let text = String(
        decoding: try Vectors.golden("\(Self.folder)\(store.fixture)\(version).sql"), as: UTF8.self)
      #expect(text.contains("PRAGMA user_version = \(version);"))
    }
  }

  @Test(
    "Files of each version, opened by a server: nothing is lost, and the check finds nothing",
    arguments: 1...max(Schema.steps.count, AccountSchema.steps.count))
  func opened(_ version: Int) throws {
    let temporary = try TemporaryFolder()
    let data = temporary.path("data")
    // Keys of a server's, and its databases in place of the new ones.
    try BackendServer(BackendServer.Configuration(data: data)).stop()
    for store in Self.stores { try FileManager.default.removeItem(atPath: data + "/" + store.file) }
    var before: [[String: Int64]] = []
    for store in Self.stores {
      // The newest there is of a store that has not so many.
      let text = try Vectors.golden("\(Self.folder)\(store.fixture)\(min(version, store.steps.count)).sql")
      let connection = try SQLConnection(path: data + "/" + store.file)
      try connection.execute(String(decoding: text, as: UTF8.self))
      before.append(try counts(connection))
    }
    // A server's start is left out of account: it drops what has expired since the file was made.
    for (store, old) in zip(Self.stores, before) {
      let connection = try SQLConnection(path: data + "/" + store.file, settings: .server())
      try connection.migrate(store.steps)
      #expect(try connection.userVersion == store.steps.count)
      let new = try counts(connection)
      for (table, count) in old { #expect(new[table] == count, "\(table)") }
    }
    #expect(try BackendServer.check(data, repairs: false) == [])
    let server = try BackendServer(BackendServer.Configuration(data: data))
    #expect(server.accounts != nil && server.port > 0)
    server.stop()
    #expect(try BackendServer.check(data, repairs: false) == [])
  }

  /// Rows by table. A step that renames a table changes what is compared here too.
  private func counts(_ connection: SQLConnection) throws -> [String: Int64] {
    let tables = try connection.statement(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).all { $0.text(0) }
    var counts: [String: Int64] = [:]
    for table in tables {
      counts[table] = try connection.statement("SELECT count(*) FROM \"\(table)\"").first { $0.integer(0) }
    }
    return counts
  }
}
