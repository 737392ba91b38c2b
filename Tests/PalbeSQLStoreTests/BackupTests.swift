import PalbeSQLStore
import PalbeTestKit
import Testing

@Suite("SQLite copies of a database in use")
struct BackupTests {
  @Test(
    "What the connection writes meanwhile is in the copy",
    arguments: [SQLConnection.Settings.Journal.truncated, .writeAhead])
  func online(_ journal: SQLConnection.Settings.Journal) throws {
    let folder = try TemporaryFolder()
    var settings = SQLConnection.Settings()
    settings.journal = journal
    let connection = try SQLConnection(path: folder.path("db"), settings: settings)
    try connection.migrate(["CREATE TABLE note (id INTEGER PRIMARY KEY, text BLOB NOT NULL)"])
    try connection.execute(
      """
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO note SELECT i, randomblob(1000) FROM n
      """)
    let backup = try SQLBackup(of: connection, to: folder.path("copy"))
    var steps = 0
    while try !backup.step(pageCount: 16) {
      steps += 1
      // Pages that were copied already, and new ones.
      try connection.transaction { () throws(SQLError) in
        try connection.execute("UPDATE note SET text = randomblob(999) WHERE id = \(steps)")
        try connection.execute("INSERT INTO note (text) VALUES (randomblob(1000))")
      }
      let (remaining, total) = backup.progress
      #expect(remaining < total)
    }
    #expect(steps > 10)
    let copy = try SQLConnection(path: folder.path("copy"), settings: settings)
    #expect(try copy.userVersion == 1)
    func content(_ connection: SQLConnection) throws -> [[UInt8]] {
      try connection.statement("SELECT text FROM note ORDER BY id").all { $0.bytes(0) }
    }
    #expect(try content(copy) == content(connection))
    #expect(try copy.statement("PRAGMA integrity_check").first { $0.text(0) } == "ok")
  }

  @Test("A place that cannot be written is an error, and the database goes on")
  func unwritable() throws {
    let folder = try TemporaryFolder()
    let connection = try SQLConnection(path: folder.path("db"))
    #expect(throws: SQLError.self) { try connection.backUp(to: folder.path("none/copy")) }
    try connection.execute("CREATE TABLE note (id INTEGER PRIMARY KEY)")
    try connection.backUp(to: folder.path("copy"))
  }
}
