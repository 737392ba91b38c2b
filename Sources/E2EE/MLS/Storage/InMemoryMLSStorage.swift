import PalbeWire
import Synchronization

/// Records in memory, for tests and for clients that keep nothing. Safe to use from several threads.
public final class InMemoryMLSStorage: MLSStorage {
  private let records = Mutex<[MLSRecordKey: MLSRecord]>([:])

  /// An empty storage.
  public init() {}

  /// A storage with the same records, as a copy of a disk would have.
  public init(copying other: InMemoryMLSStorage) {
    let copy = other.records.withLock { $0 }
    records.withLock { $0 = copy }
  }

  /// The record's value.
  public func read(_ key: MLSRecordKey) -> MLSRecord? { records.withLock { $0[key] } }

  /// The keys under a prefix, ascending.
  public func keys(under prefix: MLSRecordKey) -> [MLSRecordKey] {
    records.withLock { records in records.keys.filter { $0.isUnder(prefix) }.sorted() }
  }

  /// The groups that have records, ascending.
  public func groups() -> [[UInt8]] {
    records.withLock { records in
      Set(records.keys.compactMap(\.group)).sorted { $0.lexicographicallyPrecedes($1) }
    }
  }

  /// Carries out a transaction.
  public func apply(_ transaction: MLSTransaction) throws(MLSStorageError) {
    try apply(transaction) { () throws(MLSStorageError) in }
  }

  /// Carries out a transaction; `beforeEachWrite` may throw, and then nothing of it is there. For tests of failure.
  public func apply(
    _ transaction: MLSTransaction, beforeEachWrite: () throws(MLSStorageError) -> Void
  ) throws(MLSStorageError) {
    try records.withLock { records throws(MLSStorageError) in
      var next = records
      for (key, record) in transaction.expected {
        switch (record, next[key]) {
        case (nil, nil): break
        case (let expected?, let found?) where MLSRecord.isEqual(expected, found): break
        default: throw .conflict
        }
      }
      for prefix in transaction.erasedPrefixes {
        try beforeEachWrite()
        for key in next.keys where key.isUnder(prefix) { next[key] = nil }
      }
      for (key, change) in transaction.changes.sorted(by: { $0.key < $1.key }) {
        try beforeEachWrite()
        switch change {
        case .write(let record): next[key] = record
        case .erase: next[key] = nil
        }
      }
      try beforeEachWrite()
      records = next
    }
  }

  /// All bytes that are kept, for a test that looks for keys that should be gone.
  public func dump() -> [[UInt8]] {
    records.withLock { records in records.values.map { record in record.withSpan { [UInt8]($0) } } }
  }
}
