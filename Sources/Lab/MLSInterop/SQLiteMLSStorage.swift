import PalbeCrypto
import PalbeMLS
import PalbeMLSFiles
import PalbeSQLStore
import PalbeUnits
import Synchronization

/// A file that holds the records of several clients.
///
///     let database = try SQLiteMLSDatabase(path: "state.db", random: random)
///     let storage = database.storage(of: "alice")
public final class SQLiteMLSDatabase: Sendable {
  private struct Open {
    let connection: SQLConnection
    let records: ErasableRecords
  }

  private let open: Mutex<Open>

  /// Opens or makes a file. `isDurable` is false in tests of speed alone.
  public init(path: String, isDurable: Bool = true, random: RandomSource) throws(MLSStorageError) {
    do throws(SQLError) {
      var settings = SQLConnection.Settings()
      settings.isDurable = isDurable
      let connection = try SQLConnection(path: path, settings: settings)
      try connection.migrate([ErasableRecords.tables])
      open = Mutex(Open(connection: connection, records: ErasableRecords(connection, random: random)))
    } catch { throw MLSStorageError(error) }
  }

  /// The records of one client, by its name here.
  public func storage(of client: String) -> SQLiteMLSStorage {
    SQLiteMLSStorage(database: self, client: Array(client.utf8))
  }

  /// The clients that have records, ascending.
  public func clients() throws(MLSStorageError) -> [String] {
    try with { records throws(SQLError) in
      Set(try records.scopes().compactMap { SQLiteMLSStorage.client(of: $0) }).sorted()
    }
  }

  /// For tests that set limits or look into tables.
  func withConnection<Result: Sendable>(
    _ body: (SQLConnection) throws(SQLError) -> Result
  ) throws(MLSStorageError) -> Result {
    do throws(SQLError) {
      return try open.withLock { open throws(SQLError) in try body(open.connection) }
    } catch { throw MLSStorageError(error) }
  }

  func with<Result: Sendable>(
    _ body: (ErasableRecords) throws(SQLError) -> Result
  ) throws(MLSStorageError) -> Result {
    do throws(SQLError) {
      return try open.withLock { open throws(SQLError) in try body(open.records) }
    } catch { throw MLSStorageError(error) }
  }
}

/// One client's records in a SQLite file.
public struct SQLiteMLSStorage: MLSStorage {
  let database: SQLiteMLSDatabase
  private let names: ClientNames

  init(database: SQLiteMLSDatabase, client: [UInt8]) {
    self.database = database
    names = ClientNames(client: client)
  }

  static func client(of scope: [UInt8]) -> String? {
    guard scope.count > 2 else { return nil }
    let length = Int(scope[0]) << 8 | Int(scope[1])
    guard scope.count >= 2 + length else { return nil }
    return String(validating: scope[2..<2 + length], as: UTF8.self)
  }

  /// The record's value.
  public func read(_ key: MLSRecordKey) throws(MLSStorageError) -> MLSRecord? {
    try database.with { records throws(SQLError) in try records.read(key, names) }
  }

  /// The keys under a prefix, ascending.
  public func keys(under prefix: MLSRecordKey) throws(MLSStorageError) -> [MLSRecordKey] {
    try database.with { records throws(SQLError) in try records.keys(under: prefix, names) }
  }

  /// The groups that have records, ascending.
  public func groups() throws(MLSStorageError) -> [[UInt8]] {
    try database.with { records throws(SQLError) in try records.groups(names) }
  }

  /// Carries out a transaction.
  public func apply(_ transaction: MLSTransaction) throws(MLSStorageError) {
    try database.with { records throws(SQLError) in
      try records.transaction { () throws(SQLError) in try records.apply(transaction, names) }
    }
  }
}

/// A scope is the client's name, then nothing for its own records, 1 and the identifier for a group's.
private struct ClientNames: RecordNaming, Sendable {
  let client: [UInt8]

  private var own: [UInt8] {
    let length = UInt16(truncatingIfNeeded: client.count)
    return [UInt8(length >> 8), UInt8(length & 0xff)] + client
  }

  func scope(of group: [UInt8]?) -> [UInt8] { own + (group.map { [1] + $0 } ?? [0]) }

  var groupScopes: [UInt8] { own + [1] }

  func group(of scope: [UInt8]) -> [UInt8]? { Array(scope.dropFirst(own.count + 1)) }
}
