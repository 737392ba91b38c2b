import CPalbeSQLite

/// One SQLite file, with one writer: this connection. Not to be used from two threads at once.
///
///     let connection = try SQLConnection(path: "chat.db")
///     try connection.migrate(["CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"])
///     try connection.transaction { () throws(SQLError) in
///       let insert = try connection.statement("INSERT INTO note (text) VALUES (?)")
///       insert.bind(1, text: "milk")
///       try insert.run()
///     }
///
/// When `transaction` returns, its changes survive a loss of power; when it throws, or the process ends in it, there
/// are none of them. Source: sqlite.org/pragma.html, sqlite.org/atomiccommit.html; docs/decisions has the measurements.
public final class SQLConnection {
  /// What a file is opened for.
  public struct Settings: Sendable, Hashable {
    /// Whether a transaction waits until it is on the medium. Without, a crash of the machine (not of the process)
    /// can lose transactions or the file.
    public var isDurable = true
    /// Whether other processes are kept out as long as the file is open.
    public var isExclusive = true
    /// What makes a transaction whole.
    public var journal = Journal.truncated
    /// Whether a file is made where there is none.
    public var makesFile = true

    /// What makes a transaction whole.
    public enum Journal: Sendable, Hashable {
      /// The pages as they were, emptied before a commit returns.
      case truncated
      /// The pages as they will be: one wait in place of several, but erased bytes stay in a file for a while.
      case writeAhead
    }

    /// Durable and exclusive.
    public init() {}
  }

  let database: OpaquePointer
  private var statements: [String: SQLStatement] = [:]
  private var isBroken = false
  private var isInTransaction = false

  /// Opens a file, which is made where there is none, unless the settings say otherwise; ":memory:" is in memory only.
  ///
  /// Throws `busy` while another process has it open, `corrupted` for another kind of file, `failed`.
  public init(path: String, settings: Settings = Settings()) throws(SQLError) {
    database = try Self.open(path, makesFile: settings.makesFile)
    for pragma in [
      "locking_mode = \(settings.isExclusive ? "EXCLUSIVE" : "NORMAL")",
      // The journal holds what was erased: it is emptied, not left, and that reaches the medium before COMMIT returns
      // (with DELETE it would not).
      "journal_mode = \(settings.journal == .truncated ? "TRUNCATE" : "WAL")",
      "synchronous = \(settings.isDurable ? "FULL" : "OFF")",
      // Freed bytes are zeroed, but copies can be left where rows moved: see `ErasableRecords`.
      "secure_delete = ON", "auto_vacuum = NONE", "temp_store = MEMORY", "foreign_keys = ON",
      "trusted_schema = OFF", "cell_size_check = ON",
    ] { try execute("PRAGMA " + pragma) }
    // Takes the lock, and reads the file's header.
    try execute(settings.isExclusive ? "BEGIN EXCLUSIVE" : "BEGIN IMMEDIATE")
    try execute("COMMIT")
  }

  /// Opens a file for one thread at a time.
  static func open(_ path: String, makesFile: Bool = true) throws(SQLError) -> OpaquePointer {
    var handle: OpaquePointer?
    let flags =
      SQLITE_OPEN_READWRITE | (makesFile ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX
      | SQLITE_OPEN_EXRESCODE
    let code = sqlite3_open_v2(path, &handle, flags, nil)
    guard code == SQLITE_OK, let handle else {
      sqlite3_close_v2(handle)
      throw SQLError(code)
    }
    return handle
  }

  deinit {
    statements = [:]
    sqlite3_close_v2(database)
  }

  var errorCode: Int32 { sqlite3_extended_errcode(database) }

  /// False once an error left open whether a transaction is there; everything then throws `unusable`.
  public var isUsable: Bool { !isBroken }

  /// One of no file, of which everything throws `unusable`: in place of one whose file is opened again, and which must let
  /// go of it first.
  package static func refusing() throws(SQLError) -> SQLConnection {
    let connection = try SQLConnection(path: ":memory:")
    connection.refuseEverything()
    return connection
  }

  /// From now on everything throws `unusable`.
  package func refuseEverything() { isBroken = true }

  func checkUsable() throws(SQLError) { if isBroken { throw .unusable } }

  /// Runs statements that are text of the program's own, one after another.
  public func execute(_ sql: String) throws(SQLError) {
    try checkUsable()
    let code = sqlite3_exec(database, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw SQLError(code) }
  }

  /// A prepared statement, kept for the next time; its parameters are what they were.
  public func statement(_ sql: String) throws(SQLError) -> SQLStatement {
    try checkUsable()
    if let known = statements[sql] { return known }
    let new = try SQLStatement(sql, self, database)
    statements[sql] = new
    return new
  }

  /// The texts of the statements that are kept prepared, for tests that look at how they are carried out.
  package var preparedStatements: [String] { statements.keys.sorted() }

  /// How many rows the last statement changed.
  public var changedRowCount: Int { Int(sqlite3_changes64(database)) }

  // MARK: Transactions

  /// Carries out `body` as a whole or not at all; it may throw `aborted` to end it. One inside another is part of it.
  public func transaction<Result>(_ body: () throws(SQLError) -> Result) throws(SQLError) -> Result {
    if isInTransaction { return try body() }
    try begin()
    let result: Result
    do throws(SQLError) { result = try body() } catch {
      try rollBack()
      throw error
    }
    try commit()
    return result
  }

  /// Begins a transaction, for who cannot have it in one function: `commit` or `rollBack` must follow.
  public func begin() throws(SQLError) {
    try statement("BEGIN IMMEDIATE").run()
    isInTransaction = true
  }

  /// Ends a transaction; when it throws there is nothing of it, or `unusable`.
  public func commit() throws(SQLError) {
    do throws(SQLError) { try statement("COMMIT").run() } catch {
      try rollBack()
      // A failed write of the last step can be noticed after the transaction became valid.
      if case .failed(let code) = error, code & 0xff == SQLITE_IOERR {
        isBroken = true
        throw .unusable
      }
      throw error
    }
    isInTransaction = false
  }

  /// Ends a transaction, of which nothing stays; does nothing where there is none.
  public func rollBack() throws(SQLError) {
    isInTransaction = false
    // SQLite may have done it by itself.
    guard hasTransaction else { return }
    guard sqlite3_exec(database, "ROLLBACK", nil, nil, nil) == SQLITE_OK else {
      isBroken = true
      throw .unusable
    }
  }

  /// A point of the open transaction, to which `rollBackToSavepoint` returns; one at a time.
  public func setSavepoint() throws(SQLError) { try statement("SAVEPOINT point").run() }

  /// Forgets the point, and keeps what was done since.
  public func releaseSavepoint() throws(SQLError) { try statement("RELEASE point").run() }

  /// True while a transaction is open; SQLite ends one by itself after some failures.
  public var hasTransaction: Bool { sqlite3_get_autocommit(database) == 0 }

  /// Undoes what was done since, and forgets the point.
  public func rollBackToSavepoint() throws(SQLError) {
    try statement("ROLLBACK TO point").run()
    try releaseSavepoint()
  }

  // MARK: Versions

  /// The number that the file carries for the program; 0 in a new one. Throws `damagedValue` for a negative one.
  public var userVersion: Int {
    get throws(SQLError) {
      let version = try statement("PRAGMA user_version").first { (row) throws(SQLError) in
        try row.number(0, in: 0...Int64(Int32.max))
      }
      return Int(version ?? 0)
    }
  }

  /// Brings the tables to the newest version: step i (from 0) leads from version i to i + 1, each a transaction.
  ///
  /// Steps are never changed once released, only added. Throws `newerVersion` for a file of a newer program.
  public func migrate(_ steps: [String]) throws(SQLError) {
    let version = try userVersion
    guard version <= steps.count else { throw .newerVersion(found: version, known: steps.count) }
    for (index, step) in steps.enumerated().dropFirst(version) {
      try transaction { () throws(SQLError) in
        try execute(step)
        try execute("PRAGMA user_version = \(index + 1)")
      }
    }
  }
}
