import PalbeBackendCore
import PalbeSQLStore
import PalbeUnits

/// The server's tables in one SQLite file.
///
///     let store = try SQLiteBackendStore(path: "server.db")
///     var backend = try Backend(store: store, random: random, at: now)
///
/// Write-ahead log, `synchronous=FULL`: when `commit` returns, its transaction is on the medium. One process at a time, on
/// one thread. No type of SQLite's leaves this module.
package final class SQLiteBackendStore: BackendStore {
  /// For tests that look at its tables.
  package private(set) var connection: SQLConnection
  private let path: String
  private let place: FilePlace?
  private let isExclusive: Bool
  /// Keys of ids that were seen; they never change, but a rollback can take new ones away.
  var deviceKeys: [DeviceID: Int64] = [:]
  var groupKeys: [GroupID: Int64] = [:]
  var userKeys: [UserID: Int64] = [:]
  /// The live leaves of groups, by key of the group.
  var recipients: [Int64: [DeviceID]] = [:]
  /// The group that was read or written last.
  var lastGroup: GroupRow?
  /// The newest queue id given out, at the beginning of the transaction and at its savepoint.
  var lastQueueID: Int64
  private var queueIDAtBegin: Int64
  private var queueIDAtSavepoint: Int64
  /// Rows in all queues: counted once, then kept with what is added and removed.
  private(set) var queueRowCount: Int64
  private var queueRowsAtBegin: Int64 = 0
  private var queueRowsAtSavepoint: Int64 = 0
  static let countQueueRows = "SELECT count(*) FROM queue"
  /// Called around the write of each transaction, for tests that end it there.
  package var willCommit: () throws(BackendFailure) -> Void = {}
  var didCommit: () throws(BackendFailure) -> Void = {}

  static let cacheLimit = 100_000

  /// Opens or makes a file, and brings its tables to the newest version. Throws `busy` while another process has it.
  /// - Parameter mayBeNew: otherwise a file without tables is refused with `noTables`, and stays as it is.
  package convenience init(path: String, mayBeNew: Bool = true) throws(SQLError) {
    try self.init(path: path, isExclusive: true, mayBeNew: mayBeNew)
  }

  init(path: String, isExclusive: Bool, mayBeNew: Bool = true) throws(SQLError) {
    self.path = path
    self.isExclusive = isExclusive
    (connection, lastQueueID) = try Self.open(path, isExclusive: isExclusive, mayBeNew: mayBeNew)
    place = FilePlace(path)
    queueRowCount = try Self.queueRowCount(connection)
    queueIDAtBegin = lastQueueID
    queueIDAtSavepoint = lastQueueID
  }

  /// False once the file was moved, replaced or deleted: everything is refused until it is back.
  var isInPlace: Bool { place?.isKept ?? true }

  private static func queueRowCount(_ connection: SQLConnection) throws(SQLError) -> Int64 {
    try connection.statement(countQueueRows).first { row in row.integer(0) } ?? 0
  }

  /// Rows were added to queues, or removed.
  func queueChanged(by count: Int) { queueRowCount += Int64(count) }

  private static func open(
    _ path: String, isExclusive: Bool, mayBeNew: Bool
  ) throws(SQLError) -> (SQLConnection, lastQueueID: Int64) {
    let connection = try SQLConnection(path: path, settings: .server(isExclusive: isExclusive))
    try connection.execute("PRAGMA cache_size = -32768")
    try connection.migrate(Schema.steps, mayBeNew: mayBeNew)
    let last = try connection.statement("SELECT last_queue_id FROM state").first { (row) throws(SQLError) in
      try row.queueID(0)
    }
    guard let last else { throw .damagedValue }
    return (connection, last.rawValue)
  }

  /// False once an error left open whether a transaction is there: everything is refused until `reopen`.
  package var isUsable: Bool { connection.isUsable }

  /// Opens the file again, and no other one in its place. When that fails, everything is still refused.
  package func reopen() throws(SQLError) {
    guard isInPlace else { throw .displaced }
    forget()
    connection = try .refusing()
    (connection, lastQueueID) = try Self.open(path, isExclusive: isExclusive, mayBeNew: false)
    queueRowCount = try Self.queueRowCount(connection)
    queueIDAtBegin = lastQueueID
    queueIDAtSavepoint = lastQueueID
  }

  /// The ids of all blobs.
  package func blobIDs() throws(BackendFailure) -> Set<BlobID> {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement("SELECT id FROM blob ORDER BY id")
      return Set(try select.all { (row) throws(SQLError) in try row.id(0) })
    }
  }

  /// Whether anybody was ever registered.
  func hasUsers() throws(BackendFailure) -> Bool {
    try sql { (connection) throws(SQLError) in
      try connection.statement("SELECT key FROM user LIMIT 1").first { _ in true } ?? false
    }
  }

  // MARK: Copies

  /// Begins a copy, which `goOn` carries on between transactions.
  func copy(to path: String) throws(BackendFailure) -> SQLBackup {
    try sql { (connection) throws(SQLError) in try SQLBackup(of: connection, to: path) }
  }

  /// True when the copy is done.
  func goOn(_ copy: SQLBackup, pageCount: Int) throws(BackendFailure) -> Bool {
    try sql { (_) throws(SQLError) in try copy.step(pageCount: pageCount) }
  }

  // MARK: Transactions

  package func begin() throws(BackendFailure) {
    queueIDAtBegin = lastQueueID
    queueRowsAtBegin = queueRowCount
    guard isInPlace else { throw .unavailable(.displaced) }
    try sql { (connection) throws(SQLError) in try connection.begin() }
  }

  package func commit() throws(BackendFailure) {
    if lastQueueID != queueIDAtBegin {
      try sql { (connection) throws(SQLError) in
        let update = try connection.statement("UPDATE state SET last_queue_id = ?")
        update.bind(1, lastQueueID)
        try update.run()
      }
    }
    guard isInPlace else { throw .unavailable(.displaced) }
    try willCommit()
    try sql { (connection) throws(SQLError) in try connection.commit() }
    try didCommit()
  }

  package func rollBack() {
    forget()
    lastQueueID = queueIDAtBegin
    queueRowCount = queueRowsAtBegin
    // What cannot be rolled back is refused by the connection from now on.
    try? connection.rollBack()
  }

  package func setSavepoint() throws(BackendFailure) {
    queueIDAtSavepoint = lastQueueID
    queueRowsAtSavepoint = queueRowCount
    try sql { (connection) throws(SQLError) in try connection.setSavepoint() }
  }

  package func releaseSavepoint() throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in try connection.releaseSavepoint() }
  }

  package func rollBackToSavepoint() throws(BackendFailure) {
    forget()
    lastQueueID = queueIDAtSavepoint
    queueRowCount = queueRowsAtSavepoint
    try sql { (connection) throws(SQLError) in try connection.rollBackToSavepoint() }
  }

  private func forget() {
    deviceKeys.removeAll(keepingCapacity: true)
    groupKeys.removeAll(keepingCapacity: true)
    userKeys.removeAll(keepingCapacity: true)
    recipients.removeAll(keepingCapacity: true)
    lastGroup = nil
  }

  // MARK: Errors and keys

  func sql<Result>(
    _ body: (SQLConnection) throws(SQLError) -> Result
  ) throws(BackendFailure) -> Result {
    do throws(SQLError) { return try body(connection) } catch {
      throw .unavailable(StoreFault(error))
    }
  }

  /// A small key of an id; throws `corrupted` where there is none.
  private func key<ID: Hashable>(
    _ id: ID, _ bytes: [UInt8], _ table: StaticString,
    _ known: ReferenceWritableKeyPath<SQLiteBackendStore, [ID: Int64]>
  ) throws(SQLError) -> Int64 {
    if let key = self[keyPath: known][id] { return key }
    let select = try connection.statement("SELECT key FROM \(table) WHERE id = ?")
    select.bind(1, copying: bytes)
    let found = try select.first { (row) throws(SQLError) in try row.key(0) }
    guard let key = found else { throw .damagedValue }
    if self[keyPath: known].count >= Self.cacheLimit { self[keyPath: known].removeAll() }
    self[keyPath: known][id] = key
    return key
  }

  func key(_ id: DeviceID) throws(SQLError) -> Int64 { try key(id, id.bytes, "device", \.deviceKeys) }
  func key(_ id: GroupID) throws(SQLError) -> Int64 { try key(id, id.bytes, "grp", \.groupKeys) }
  func key(_ id: UserID) throws(SQLError) -> Int64 { try key(id, id.bytes, "user", \.userKeys) }
}

extension SQLError {
  /// The file has no tables, where there were some.
  static let noTables = SQLError.corrupted(code: -2)

  /// The file is not where it was opened.
  static let displaced = SQLError.failed(code: -2)

  /// For an operator.
  var words: String {
    switch self {
    case .noTables: "it is missing or empty, and the other database is not; restore both from a backup"
    case .damagedValue: "its version or a value in it is damaged; restore a backup"
    case .busy: "another process uses it; end that first"
    case .corrupted(let code): "it is no database or is damaged (SQLite error \(code)); restore a backup"
    case .newerVersion(let found, let known):
      "a newer palbe-server has written it (version \(found), this one knows up to \(known)); run that one, or restore a backup of before"
    case .failed(let code) where code & 0xff == 13: "no room on the disk; make some"
    case .failed(let code) where code & 0xff == 14 || code & 0xff == 23 || code & 0xff == 3:
      "it cannot be opened (SQLite error \(code)); look whether this user may read and write it and its folder"
    case .failed(let code) where code & 0xff == 8:
      "it cannot be written (SQLite error \(code)); look whether this user may, and whether the disk is read-only"
    case .failed(let code): "SQLite error \(code) (see sqlite.org/rescode.html); look at the disk and its log"
    case .aborted, .unusable: "its last transaction was left open; try again"
    }
  }
}

extension SQLConnection {
  /// As `migrate`; throws `noTables` for a file that is new though it must not be.
  func migrate(_ steps: [String], mayBeNew: Bool) throws(SQLError) {
    if !mayBeNew, try userVersion == 0 { throw .noTables }
    try migrate(steps)
  }
}

extension SQLConnection.Settings {
  /// As the server opens its files.
  static func server(isExclusive: Bool = true) -> Self {
    var settings = Self()
    settings.journal = .writeAhead
    settings.isExclusive = isExclusive
    return settings
  }
}

extension StoreFault {
  /// What an error of SQLite's means for who asked.
  init(_ error: SQLError) {
    switch error {
    case .failed(let code) where code & 0xff == 13: self = .full
    case .busy: self = .busy
    case .displaced: self = .displaced
    case .corrupted: self = .corrupted
    case .failed, .newerVersion, .aborted, .unusable: self = .failed
    }
  }
}
