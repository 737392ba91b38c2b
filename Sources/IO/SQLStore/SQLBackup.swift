import CPalbeSQLite

/// A copy of a database that is made while its connection goes on working: page by page, between its transactions.
///
///     let backup = try SQLBackup(of: connection, to: "copy.db")
///     while try !backup.step(pageCount: 256) { /* other work on the connection */ }
///
/// What the same connection writes meanwhile goes into the copy too, so the copy is what the database is when `step`
/// returns true. It is not synced: that can take long, and needs no connection. Source: sqlite.org/backup.html. To be
/// used on the connection's thread.
public final class SQLBackup {
  private let source: SQLConnection
  private let copy: OpaquePointer
  private var backup: OpaquePointer?

  /// Begins; a file that is there is overwritten.
  public init(of source: SQLConnection, to path: String) throws(SQLError) {
    self.source = source
    let handle = try SQLConnection.open(path)
    copy = handle
    sqlite3_exec(handle, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF", nil, nil, nil)
    backup = sqlite3_backup_init(handle, "main", source.database, "main")
    guard backup != nil else {
      let code = sqlite3_extended_errcode(handle)
      sqlite3_close_v2(handle)
      throw SQLError(code)
    }
  }

  deinit {
    sqlite3_backup_finish(backup)
    sqlite3_close_v2(copy)
  }

  /// Copies so many pages; true when that was all.
  public func step(pageCount: Int) throws(SQLError) -> Bool {
    try source.checkUsable()
    guard let backup else { return true }
    let code = sqlite3_backup_step(backup, Int32(clamping: pageCount))
    switch code {
    case SQLITE_OK: return false
    case SQLITE_DONE:
      self.backup = nil
      let end = sqlite3_backup_finish(backup)
      guard end == SQLITE_OK else { throw SQLError(end) }
      return true
    default: throw SQLError(code)
    }
  }

  /// Pages that were left to copy at the last step, and all there were then.
  public var progress: (remaining: Int, total: Int) {
    backup.map { (Int(sqlite3_backup_remaining($0)), Int(sqlite3_backup_pagecount($0))) } ?? (0, 0)
  }
}

extension SQLConnection {
  /// Copies the whole database at once; the copy is not synced.
  public func backUp(to path: String) throws(SQLError) {
    let backup = try SQLBackup(of: self, to: path)
    while try !backup.step(pageCount: 1_024) {}
  }
}
