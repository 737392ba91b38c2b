package import Palbase
import PalbeCrypto
package import PalbeMLS
import PalbeMLSFiles
import PalbeSQLStore
package import PalbeUnits
import Synchronization

/// The records of one user's device in one SQLite file, each sealed on its own under a key of the vault.
///
///     let storage = try SealedStorage(
///       folder: folder, user: user, vault: vault, opening: .creating, random: random)
///     try storage.begin()
///     try storage.apply(first)
///     try storage.apply(second)
///     try storage.commit()        // both are on the medium, or neither
///
/// A value is sealed with AES-256-GCM under a key of its own, made of the vault's key and of random bytes that lie in the
/// file and are overwritten when the value is replaced or erased (`ErasableRecords`); its scope, its name and the schema
/// are authenticated with it. So the file without the vault reads nothing, both together nothing that was erased, and a
/// value that was damaged, exchanged or renamed is `corrupted` while the others can be read.
///
/// What the file reveals to who has it alone: that it is such a file and of which schema; how many groups there are, and
/// how long their identifiers are; how many records each has, how long each name and value is, in what order they came
/// into use, and which names of one group begin alike (`SealedNames`), by which the kinds of records can be told apart.
/// No identifier of a group, user or message, no position and no time. A copy of the file's older state is not noticed.
///
/// The file belongs to this process as long as it is open; others get `busy`. `close` lets go of it, which an app must
/// before it is suspended (requirements, section 3, 14).
package final class SealedStorage: MLSStorage {
  /// Whether a file may be made (S2-28).
  package enum Opening: Sendable {
    /// What opens must be there: nothing is made or brought to a newer schema, and no key drawn.
    case existing
    /// A file and its key are made where there is neither.
    case creating
  }

  package static let fileName = "messaging.db"
  static let steps = [
    ErasableRecords.tables + ErasableRecords.freeKeyIndex
      + "CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), proof BLOB NOT NULL);"
  ]
  /// Authenticated with each value.
  private static let schema = Array("palbe messaging record 1".utf8)

  private struct Open {
    let connection: SQLConnection
    let records: ErasableRecords
    let names: SealedNames
    var isInBatch = false
    var tally = StorageTally()
  }

  /// Nil once it is closed.
  private let open: Mutex<Open?>

  /// Opens the file in `folder`, which is this user's own.
  /// - Parameters:
  ///   - vault: holds the key, under a name of the user's own.
  ///   - random: draws keys.
  ///   - isDurable: false in tests of speed alone.
  package init(
    folder: String, user: UserID, vault: any KeyVault, opening: Opening, random: RandomSource,
    isDurable: Bool = true
  ) throws(SealedStorageError) {
    let path = "\(folder)/\(Self.fileName)"
    try Self.prepare(path, in: folder, opening)
    var random = random
    let connection = try Self.database { () throws(SQLError) in
      var settings = SQLConnection.Settings()
      settings.isDurable = isDurable
      settings.makesFile = false
      return try SQLConnection(path: path, settings: settings)
    }
    let version = try Self.database { () throws(SQLError) in try connection.userVersion }
    guard version <= Self.steps.count else {
      throw .storage(.newerSchema(found: version, known: Self.steps.count))
    }
    if opening == .existing, version < Self.steps.count { throw .missing }
    let seal = SealKeys(try Self.key(in: vault, of: user, mayDraw: version == 0, using: &random), user)
    guard try Self.isProved(seal, connection, version) else { throw .wrongKey }
    let context = Self.schema + user.bytes
    let records = ErasableRecords(
      connection, random: random, sealingKey: seal.values.span, context: context)
    open = Mutex(Open(connection: connection, records: records, names: SealedNames(seal)))
    OpenStorages.add(self, in: folder)
  }

  /// Lets go of the file; a batch that is open is undone. Everything then throws `unusable`. Harmless twice.
  package func close() { open.withLock { $0 = nil } }

  // MARK: MLSStorage

  /// The record's value.
  package func read(_ key: MLSRecordKey) throws(MLSStorageError) -> MLSRecord? {
    try with { open throws(SQLError) in
      open.tally.reads += 1
      return try open.records.read(key, open.names)
    }
  }

  /// The keys under a prefix, ascending.
  package func keys(under prefix: MLSRecordKey) throws(MLSStorageError) -> [MLSRecordKey] {
    try with { open throws(SQLError) in try open.records.keys(under: prefix, open.names) }
  }

  /// The groups that have records, ascending.
  package func groups() throws(MLSStorageError) -> [[UInt8]] {
    try with { open throws(SQLError) in try open.records.groups(open.names) }
  }

  /// Carries out a transaction. In a batch it is a part of that: all of it is there or nothing, and it lasts when the
  /// batch's end has returned.
  package func apply(_ transaction: MLSTransaction) throws(MLSStorageError) {
    try with { open throws(SQLError) in
      let (records, names) = (open.records, open.names)
      open.tally.add(transaction)
      if open.isInBatch {
        try records.part { () throws(SQLError) in try records.apply(transaction, names) }
      } else {
        open.tally.waits += 1
        try records.transaction { () throws(SQLError) in try records.apply(transaction, names) }
      }
    }
  }

  // MARK: Batches

  /// Begins a batch: what `apply` does until `commit` comes to the medium at once, in one wait. One at a time.
  package func begin() throws(MLSStorageError) {
    try with { open throws(SQLError) in
      precondition(!open.isInBatch, "a batch is open")
      try open.connection.begin()
      open.isInBatch = true
    }
  }

  /// Ends the batch. When it throws, nothing of the batch is there, or it is open whether it is; as its callers went on
  /// from what they applied, everything then throws `unusable`.
  package func commit() throws(MLSStorageError) {
    try with { open throws(SQLError) in
      precondition(open.isInBatch, "no batch is open")
      open.isInBatch = false
      open.tally.waits += 1
      do throws(SQLError) { try open.connection.commit() } catch {
        open.connection.refuseEverything()
        throw error
      }
    }
  }

  /// What was done since it was opened; nothing once it is closed.
  package var tally: StorageTally { open.withLock { $0?.tally } ?? StorageTally() }

  private func with<Result: Sendable>(
    _ body: (inout Open) throws(SQLError) -> Result
  ) throws(MLSStorageError) -> Result {
    do throws(SQLError) {
      return try open.withLock { open throws(SQLError) in
        guard open != nil else { throw .unusable }
        return try body(&open!)
      }
    } catch { throw MLSStorageError(error) }
  }

  /// For tests that set limits or look into tables.
  func withConnection<Result: Sendable>(
    _ body: (SQLConnection) throws(SQLError) -> Result
  ) throws(MLSStorageError) -> Result {
    try with { open throws(SQLError) in try body(open.connection) }
  }
}
