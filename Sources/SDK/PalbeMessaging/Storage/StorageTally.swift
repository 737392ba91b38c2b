import PalbeMLS

/// What a storage did since it was opened: what a bench compares, and a test promises.
package struct StorageTally: Equatable, Sendable {
  /// Records that were asked for by their name.
  package var reads = 0
  package var writes = 0
  package var writtenByteCount = 0
  package var erasures = 0
  /// Transactions and batches: each waits for the medium once, where the storage is durable.
  package var waits = 0

  package init() {}

  mutating func add(_ transaction: MLSTransaction) {
    for change in transaction.changes.values {
      switch change {
      case .write(let record):
        writes += 1
        writtenByteCount += record.byteCount
      case .erase: erasures += 1
      }
    }
  }

  /// What was done between two looks.
  package static func - (later: StorageTally, earlier: StorageTally) -> StorageTally {
    var difference = later
    difference.reads -= earlier.reads
    difference.writes -= earlier.writes
    difference.writtenByteCount -= earlier.writtenByteCount
    difference.erasures -= earlier.erasures
    difference.waits -= earlier.waits
    return difference
  }
}
