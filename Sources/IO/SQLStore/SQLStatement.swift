import CPalbeSQLite
import PalbeWire

/// A prepared statement of one connection, used again and again.
///
///     let insert = try connection.statement("INSERT INTO note (id, text) VALUES (?, ?)")
///     insert.bind(1, 7)
///     insert.bind(2, text: "milk")
///     try insert.run()
///
/// Places of parameters count from 1, columns from 0, as in SQLite.
public final class SQLStatement {
  private let handle: OpaquePointer
  private unowned let connection: SQLConnection

  init(_ sql: String, _ connection: SQLConnection, _ database: OpaquePointer) throws(SQLError) {
    var handle: OpaquePointer?
    let code = sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
    guard code == SQLITE_OK, let handle else { throw SQLError(sqlite3_extended_errcode(database)) }
    self.handle = handle
    self.connection = connection
  }

  deinit { sqlite3_finalize(handle) }

  // MARK: Parameters

  /// An integer.
  public func bind(_ place: Int32, _ value: Int64) { sqlite3_bind_int64(handle, place, value) }

  /// A text.
  public func bind(_ place: Int32, text: String) { _ = palbe_sqlite_bind_text_copying(handle, place, text) }

  /// Bytes, of which SQLite makes a copy: not for secrets.
  public func bind(_ place: Int32, copying bytes: [UInt8]) {
    if bytes.isEmpty {
      sqlite3_bind_zeroblob(handle, place, 0)
    } else {
      _ = palbe_sqlite_bind_blob_copying(handle, place, bytes, Int32(bytes.count))
    }
  }

  /// NULL.
  public func bindNull(_ place: Int32) { sqlite3_bind_null(handle, place) }

  /// Binds bytes without a copy while `body` runs the statement.
  public func withBound<Result>(
    _ place: Int32, _ bytes: Span<UInt8>, _ body: () throws(SQLError) -> Result
  ) throws(SQLError) -> Result {
    try bytes.withUnsafeBufferPointer { buffer throws(SQLError) in
      if buffer.isEmpty {
        sqlite3_bind_zeroblob(handle, place, 0)
      } else {
        sqlite3_bind_blob(handle, place, buffer.baseAddress, Int32(buffer.count), nil)
      }
      // SQLite must not look at it afterwards.
      defer {
        sqlite3_reset(handle)
        sqlite3_bind_null(handle, place)
      }
      return try body()
    }
  }

  // MARK: Running

  /// Moves to the next row; false after the last one, and then the statement is ready to run again.
  public func step() throws(SQLError) -> Bool {
    try connection.checkUsable()
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE:
      sqlite3_reset(handle)
      return false
    default:
      let code = connection.errorCode
      sqlite3_reset(handle)
      throw SQLError(code)
    }
  }

  /// Runs a statement without rows, or past those that it has.
  public func run() throws(SQLError) { while try step() {} }

  /// The first row's value, nil without a row; the statement is then ready to run again.
  public func first<Value: ~Copyable>(
    _ read: (SQLStatement) throws(SQLError) -> Value
  ) throws(SQLError) -> Value? {
    guard try step() else { return nil }
    defer { reset() }
    return try read(self)
  }

  /// The value of every row; the statement is then ready to run again, also when `read` throws.
  public func all<Value>(_ read: (SQLStatement) throws(SQLError) -> Value) throws(SQLError) -> [Value] {
    var values: [Value] = []
    defer { reset() }
    while try step() { values.append(try read(self)) }
    return values
  }

  /// Ready to run again; needed only where the rows were not read to their end.
  public func reset() { sqlite3_reset(handle) }

  // MARK: Columns

  /// A column of the current row as it is there; 0 for NULL. Of a file that may be damaged this can be any number, and not to
  /// be reckoned with: `number` is.
  public func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  /// A column of the current row that was written as a number of a range.
  ///
  /// Throws `damagedValue` for anything else, also for NULL and for a text of digits: types of SQLite's columns bind nobody.
  public func number(_ column: Int32, in range: ClosedRange<Int64>) throws(SQLError) -> Int64 {
    guard sqlite3_column_type(handle, column) == SQLITE_INTEGER else { throw .damagedValue }
    let value = integer(column)
    guard range.contains(value) else { throw .damagedValue }
    return value
  }

  /// A column of the current row; empty for NULL.
  public func text(_ column: Int32) -> String {
    sqlite3_column_text(handle, column).map { String(cString: $0) } ?? ""
  }

  /// A column of the current row, copied; empty for NULL.
  public func bytes(_ column: Int32) -> [UInt8] { withBytes(column) { span in [UInt8](span) } }

  /// True where the column of the current row is NULL.
  public func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

  /// Lends a column of the current row.
  public func withBytes<Result: ~Copyable, E: Error>(
    _ column: Int32, _ body: (Span<UInt8>) throws(E) -> Result
  ) throws(E) -> Result {
    let start = sqlite3_column_blob(handle, column)
    let count = start == nil ? 0 : Int(sqlite3_column_bytes(handle, column))
    let buffer = UnsafeRawBufferPointer(start: start, count: count).bindMemory(to: UInt8.self)
    return try body(Span(_unsafeElements: buffer))
  }
}
