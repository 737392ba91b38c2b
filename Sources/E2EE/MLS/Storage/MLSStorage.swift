public import PalbeWire

/// Where one client keeps its records: its signing key, key packages, pre-shared keys and groups.
///
/// What an implementation promises:
/// 1. `apply` is atomic and durable: when it returns, all of the transaction survives a crash; when it throws, or the
///    process ends in it, nothing of it is there. After an error that leaves this open it throws `unusable` for ever.
/// 2. What was erased or replaced is overwritten: nothing that is kept (files, journals, backups of its own) gives the
///    bytes again. Forward secrecy rests on it.
/// 3. It is never rolled back to an older copy. A copy of a group's records in two places uses keys twice; where a
///    backup must be made, leave the groups out and join again.
///
/// `InMemoryMLSStorage` is one without durability.
public protocol MLSStorage: Sendable {
  /// The record's value; nil where there is none.
  func read(_ key: MLSRecordKey) throws(MLSStorageError) -> MLSRecord?
  /// The keys whose name begins with that of `prefix`, in the same group, ascending.
  func keys(under prefix: MLSRecordKey) throws(MLSStorageError) -> [MLSRecordKey]
  /// The groups that have records, ascending; one that was deleted is among them while records of the application are left.
  func groups() throws(MLSStorageError) -> [[UInt8]]
  /// Carries out a transaction: all of it, or nothing and an error.
  func apply(_ transaction: MLSTransaction) throws(MLSStorageError)
}

extension MLSStorage {
  /// All keys of a group, ascending.
  public func keys(in group: [UInt8]) throws(MLSStorageError) -> [MLSRecordKey] {
    try keys(under: MLSRecordKey(group: group, name: []))
  }
}

/// Why storage refused.
public enum MLSStorageError: Error, Equatable, Sendable {
  /// The medium failed, for instance for want of space. Nothing of the transaction is there. `code` is the medium's.
  case failed(code: Int32)
  /// Another process has the storage open.
  case busy
  /// An error left open whether a transaction is there: open the storage again and load.
  case unusable
  /// The records changed since they were loaded, by another user of the same storage: load the group again.
  case conflict
  /// A group with this identifier is stored already; a client that was removed and joins again passes `replacing: true`.
  case groupExists
  /// The record was written by a newer version of the engine.
  case newerSchema(found: Int, known: Int)
  /// The record is not what the engine wrote.
  indirect case corrupted(WireError)
  /// The records do not fit together, for instance the tree does not have the hash in the group's context.
  case inconsistent
  /// The records are of another client or cipher suite.
  case wrongClient
}

/// Why an operation on a stored group failed. The group is as before, in memory and on disk.
public enum StoredGroupError: Error, Equatable, Sendable {
  /// The engine refused.
  case mls(MLSError)
  /// The storage did.
  case storage(MLSStorageError)
}
