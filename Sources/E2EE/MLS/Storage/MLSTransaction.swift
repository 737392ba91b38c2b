/// Changes to stored records that happen together or not at all.
///
/// The engine fills it for a group; an application adds its own records in `StoredGroup.update(_:also:)`, so that for
/// instance a decrypted message is stored in the same moment as its key is erased.
public struct MLSTransaction: Sendable {
  /// What becomes of one record.
  public enum Change: Sendable {
    /// It has this value from now on.
    case write(MLSRecord)
    /// It is gone, its bytes overwritten.
    case erase
  }

  /// What a record must be before anything is changed; nil: not there.
  public private(set) var expected: [MLSRecordKey: MLSRecord?] = [:]
  /// All records under these are erased, before `changes`.
  public private(set) var erasedPrefixes: [MLSRecordKey] = []
  /// One change a record.
  public private(set) var changes: [MLSRecordKey: Change] = [:]

  /// A transaction that changes nothing.
  public init() {}

  /// True when it changes nothing.
  public var isEmpty: Bool { erasedPrefixes.isEmpty && changes.isEmpty }

  /// Gives a record a value.
  public mutating func write(_ record: MLSRecord, _ key: MLSRecordKey) { changes[key] = .write(record) }

  /// Erases a record; one that is not there stays so.
  public mutating func erase(_ key: MLSRecordKey) { changes[key] = .erase }

  /// Erases all records whose name begins with the key's, also those written in this transaction up to now.
  public mutating func eraseAll(under prefix: MLSRecordKey) {
    for key in changes.keys where key.isUnder(prefix) { changes[key] = nil }
    erasedPrefixes.append(prefix)
  }

  /// Has `apply` throw `conflict` unless the record has this value, nil: unless it is not there.
  public mutating func expect(_ record: MLSRecord?, _ key: MLSRecordKey) {
    expected.updateValue(record, forKey: key)
  }
}
