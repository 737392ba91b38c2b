import PalbeMLS
import Synchronization

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

/// The storages that this process has open, by their folders: a bench looks at what they do.
package enum OpenStorages {
  private struct Place {
    weak var storage: SealedStorage?
  }
  private static let places = Mutex<[String: Place]>([:])

  static func add(_ storage: SealedStorage, in folder: String) {
    places.withLock { $0[folder] = Place(storage: storage) }
  }

  /// What the one in this folder did since it was opened; nothing where none is open.
  package static func tally(in folder: String) -> StorageTally {
    places.withLock { $0[folder]?.storage }?.tally ?? StorageTally()
  }
}
