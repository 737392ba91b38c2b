import Foundation
import PalbeTestKit
import Testing

@testable import PalbeSQLStore

@Suite("SQLite: statements, transactions, migrations")
struct ConnectionTests {
  @Test("Values come back as they were bound")
  func values() throws {
    let connection = try SQLConnection(path: ":memory:")
    try connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c, d)")
    let insert = try connection.statement("INSERT INTO t (a, b, c, d) VALUES (?, ?, ?, ?)")
    insert.bind(1, Int64.min)
    insert.bind(2, text: "a\u{0}é'")
    insert.bind(3, copying: [])
    insert.bindNull(4)
    try insert.run()
    #expect(connection.changedRowCount == 1)
    let secret: [UInt8] = [0, 1, 255]
    try insert.withBound(3, secret.span) { () throws(SQLError) in try insert.run() }
    let select = try connection.statement("SELECT a, b, c, d FROM t ORDER BY id")
    var rows: [(Int64, String, [UInt8], Bool)] = []
    while try select.step() {
      rows.append((select.integer(0), select.text(1), select.bytes(2), select.isNull(3)))
    }
    #expect(rows.count == 2)
    #expect(rows[0].0 == .min && rows[0].1 == "a" && rows[0].2 == [] && rows[0].3)
    #expect(rows[1].2 == [0, 1, 255])
    #expect(try connection.statement("SELECT 1 WHERE 0").first { row in row.integer(0) } == nil)
    #expect(throws: SQLError.failed(code: 1)) { try connection.execute("nonsense") }
    #expect(throws: SQLError.failed(code: 1)) { _ = try connection.statement("SELECT x FROM y") }
  }

  @Test("A transaction that throws leaves nothing; one inside another is part of it")
  func transactions() throws {
    let connection = try SQLConnection(path: ":memory:")
    try connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    func count() throws -> Int64? {
      try connection.statement("SELECT count(*) FROM t").first { row in row.integer(0) }
    }
    let insert = try connection.statement("INSERT INTO t (id) VALUES (?)")
    #expect(throws: SQLError.aborted) {
      try connection.transaction { () throws(SQLError) in
        insert.bind(1, 1)
        try insert.run()
        try connection.transaction { () throws(SQLError) in
          insert.bind(1, 2)
          try insert.run()
        }
        throw .aborted
      }
    }
    #expect(try count() == 0)
    // A constraint.
    #expect(throws: SQLError.failed(code: 1_555)) {
      try connection.transaction { () throws(SQLError) in
        for _ in 0..<2 {
          insert.bind(1, 1)
          try insert.run()
        }
      }
    }
    #expect(try count() == 0)
    try connection.transaction { () throws(SQLError) in
      insert.bind(1, 1)
      try insert.run()
    }
    #expect(try count() == 1)
  }

  @Test("Steps run once, each whole or not at all; a newer file is refused")
  func migrations() throws {
    let folder = try TemporaryFolder()
    let steps = ["CREATE TABLE a (x)", "CREATE TABLE b (x); INSERT INTO b VALUES (7)"]
    do {
      let connection = try SQLConnection(path: folder.path("db"))
      #expect(try connection.userVersion == 0)
      try connection.migrate([steps[0]])
      #expect(try connection.userVersion == 1)
    }
    do {
      let connection = try SQLConnection(path: folder.path("db"))
      #expect(throws: SQLError.self) { try connection.migrate([steps[0], "CREATE TABLE c (x); nonsense"]) }
      #expect(try connection.userVersion == 1)
      try connection.migrate(steps)
      try connection.migrate(steps)
      #expect(try connection.statement("SELECT count(*) FROM b").first { row in row.integer(0) } == 1)
      #expect(throws: SQLError.newerVersion(found: 2, known: 1)) { try connection.migrate([steps[0]]) }
    }
  }

  @Test("A transaction in several calls, with a savepoint in it, over a write-ahead log")
  func savepoints() throws {
    let folder = try TemporaryFolder()
    var settings = SQLConnection.Settings()
    settings.journal = .writeAhead
    let path = folder.path("db")
    do {
      let connection = try SQLConnection(path: path, settings: settings)
      #expect(try connection.statement("PRAGMA journal_mode").first { row in row.text(0) } == "wal")
      try connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
      let insert = try connection.statement("INSERT INTO t (id) VALUES (?)")
      func put(_ id: Int64) throws {
        insert.bind(1, id)
        try insert.run()
      }
      try connection.begin()
      try connection.setSavepoint()
      try put(1)
      try connection.releaseSavepoint()
      try connection.setSavepoint()
      try put(2)
      try connection.rollBackToSavepoint()
      try put(3)
      // One inside is part of it.
      try connection.transaction { () throws(SQLError) in
        insert.bind(1, 4)
        try insert.run()
      }
      try connection.commit()
      try connection.begin()
      try put(5)
      try connection.rollBack()
      try connection.rollBack()
    }
    let connection = try SQLConnection(path: path, settings: settings)
    #expect(try connection.statement("SELECT id FROM t").all { row in row.integer(0) } == [1, 3, 4])
  }

  @Test(
    "Bug: a number of a damaged file trapped who reckoned with it; one out of its range, a text, NULL are refused"
  )
  func damagedNumbers() throws {
    let folder = try TemporaryFolder()
    let connection = try SQLConnection(path: folder.path("db"))
    try connection.migrate(["CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"])
    for (value, isSound) in [
      ("0", true), ("9", true), ("-1", false), ("10", false), ("9223372036854775807", false),
      ("'text'", false),
      ("'5x'", false), ("x'05'", false), ("1.5", false), ("NULL", false),
    ] {
      try connection.execute("DELETE FROM t; INSERT INTO t VALUES (1, 1), (2, \(value))")
      let select = try connection.statement("SELECT n FROM t ORDER BY id")
      func numbers() throws(SQLError) -> [Int64] {
        try select.all { (row) throws(SQLError) in try row.number(0, in: 0...9) }
      }
      if isSound {
        #expect(try numbers().count == 2)
      } else {
        #expect(throws: SQLError.damagedValue) { try numbers() }
        // Ready to run again, with no row left open.
        #expect(try select.first { $0.integer(0) } == 1)
      }
    }
    try connection.execute("PRAGMA user_version = -1")
    #expect(throws: SQLError.damagedValue) { try connection.userVersion }
    #expect(throws: SQLError.damagedValue) { try connection.migrate(["SELECT 1", "SELECT 2"]) }
  }

  @Test("A second user, a file of another kind, a folder that is not there")
  func opening() throws {
    let folder = try TemporaryFolder()
    let first = try SQLConnection(path: folder.path("db"))
    #expect(throws: SQLError.busy) { _ = try SQLConnection(path: folder.path("db")) }
    try first.execute("CREATE TABLE t (x)")
    try Data(repeating: 65, count: 5_000).write(to: folder.url.appendingPathComponent("text"))
    #expect(throws: SQLError.corrupted(code: 26)) { _ = try SQLConnection(path: folder.path("text")) }
    #expect(throws: SQLError.self) { _ = try SQLConnection(path: folder.path("none/db")) }
  }

  @Test("The settings that durability and erasure rest on are what SQLite says they are")
  func settings() throws {
    let folder = try TemporaryFolder()
    let connection = try SQLConnection(path: folder.path("db"))
    func pragma(_ name: String) throws -> String? {
      try connection.statement("PRAGMA \(name)").first { row in row.text(0) }
    }
    #expect(try pragma("journal_mode") == "truncate")
    #expect(try pragma("synchronous") == "2")
    #expect(try pragma("secure_delete") == "1")
    #expect(try pragma("auto_vacuum") == "0")
    #expect(try pragma("locking_mode") == "exclusive")
    #expect(try pragma("temp_store") == "2")
  }

  @Test("A full disk: the transaction is not there, and the next one works")
  func full() throws {
    let folder = try TemporaryFolder()
    let connection = try SQLConnection(path: folder.path("db"))
    try connection.execute("CREATE TABLE t (x)")
    try connection.execute("PRAGMA max_page_count = 4")
    let insert = try connection.statement("INSERT INTO t (x) VALUES (?)")
    #expect(throws: SQLError.failed(code: 13)) {
      try connection.transaction { () throws(SQLError) in
        for _ in 0..<10 {
          insert.bind(1, copying: [UInt8](repeating: 1, count: 4_000))
          try insert.run()
        }
      }
    }
    #expect(try connection.statement("SELECT count(*) FROM t").first { row in row.integer(0) } == 0)
    insert.bind(1, 5)
    try insert.run()
  }
}
