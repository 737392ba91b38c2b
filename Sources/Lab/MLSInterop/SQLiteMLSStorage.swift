import PalbeCrypto
import PalbeMLS
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

extension MLSStorageError {
  init(_ error: SQLError) {
    switch error {
    case .failed(let code): self = .failed(code: code)
    case .corrupted: self = .inconsistent
    case .newerVersion(let found, let known): self = .newerSchema(found: found, known: known)
    case .busy: self = .busy
    case .aborted: self = .conflict
    case .unusable: self = .unusable
    }
  }
}

/// One client's records in a SQLite file.
public struct SQLiteMLSStorage: MLSStorage {
  let database: SQLiteMLSDatabase
  let client: [UInt8]

  /// The client's name, then what its group's scope is: nothing for its own records, 1 and the identifier for a group's.
  private func scope(_ group: [UInt8]?) -> [UInt8] {
    let length = UInt16(truncatingIfNeeded: client.count)
    let own = [UInt8(length >> 8), UInt8(length & 0xff)] + client
    return own + (group.map { [1] + $0 } ?? [0])
  }

  static func client(of scope: [UInt8]) -> String? {
    guard scope.count > 2 else { return nil }
    let length = Int(scope[0]) << 8 | Int(scope[1])
    guard scope.count >= 2 + length else { return nil }
    return String(validating: scope[2..<2 + length], as: UTF8.self)
  }

  /// The record's value.
  public func read(_ key: MLSRecordKey) throws(MLSStorageError) -> MLSRecord? {
    try database.with { records throws(SQLError) in try read(key, records) }
  }

  private func read(_ key: MLSRecordKey, _ records: ErasableRecords) throws(SQLError) -> MLSRecord? {
    guard let value = try records.read(scope: scope(key.group), name: key.name) else { return nil }
    return MLSRecord(value)
  }

  /// The keys under a prefix, ascending.
  public func keys(under prefix: MLSRecordKey) throws(MLSStorageError) -> [MLSRecordKey] {
    try database.with { records throws(SQLError) in
      try records.names(scope: scope(prefix.group), prefix: prefix.name).map {
        MLSRecordKey(group: prefix.group, name: $0)
      }
    }
  }

  /// The groups that have records, ascending.
  public func groups() throws(MLSStorageError) -> [[UInt8]] {
    let prefix = scope([])
    return try database.with { records throws(SQLError) in
      try records.scopes(prefix: prefix).map { Array($0.dropFirst(prefix.count)) }
    }
  }

  /// Carries out a transaction.
  public func apply(_ transaction: MLSTransaction) throws(MLSStorageError) {
    try database.with { records throws(SQLError) in
      try records.transaction { () throws(SQLError) in
        for (key, expected) in transaction.expected {
          switch (expected, try read(key, records)) {
          case (nil, nil): break
          case (let expected?, let found?) where MLSRecord.isEqual(expected, found): break
          default: throw .aborted
          }
        }
        for prefix in transaction.erasedPrefixes {
          try records.eraseAll(scope: scope(prefix.group), prefix: prefix.name)
        }
        for (key, change) in transaction.changes.sorted(by: { $0.key < $1.key }) {
          switch change {
          case .erase: try records.erase(scope: scope(key.group), name: key.name)
          case .write(let record):
            try record.withSpan { span throws(SQLError) in
              try records.write(scope: scope(key.group), name: key.name, span)
            }
          }
        }
      }
    }
  }
}
