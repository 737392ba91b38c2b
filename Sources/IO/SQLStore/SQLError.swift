import CPalbeSQLite

/// Why the database refused.
public enum SQLError: Error, Equatable, Sendable {
  /// SQLite's extended result code, such as 13 for a full disk. Nothing of the transaction is there.
  case failed(code: Int32)
  /// Another process uses the file.
  case busy
  /// The file is no database, or is damaged.
  case corrupted(code: Int32)
  /// A newer version of the program has changed the tables.
  case newerVersion(found: Int, known: Int)
  /// The caller ended its own transaction. Nothing of it is there.
  case aborted
  /// An error left open whether a transaction is there. Open the file again: it shows.
  case unusable

  /// One value is not what was written there; the rest of the file may be.
  public static let damagedValue = SQLError.corrupted(code: -1)

  init(_ code: Int32) {
    switch code & 0xff {
    case SQLITE_BUSY, SQLITE_LOCKED: self = .busy
    case SQLITE_CORRUPT, SQLITE_NOTADB: self = .corrupted(code: code)
    default: self = .failed(code: code)
    }
  }
}
