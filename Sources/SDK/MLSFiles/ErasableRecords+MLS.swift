package import PalbeMLS
package import PalbeSQLStore
import PalbeWire

/// What `MLSStorage` asks for, over records whose erased bytes are really gone.
extension ErasableRecords {
  /// The record's value.
  package func read(_ key: MLSRecordKey, _ naming: some RecordNaming) throws(SQLError) -> MLSRecord? {
    let scope = naming.scope(of: key.group)
    guard let value = try read(scope: scope, name: naming.inFile(key.name, in: scope)) else { return nil }
    return MLSRecord(value)
  }

  /// The keys under a prefix, ascending.
  package func keys(
    under prefix: MLSRecordKey, _ naming: some RecordNaming
  ) throws(SQLError) -> [MLSRecordKey] {
    let scope = naming.scope(of: prefix.group)
    let stored = try names(scope: scope, prefix: naming.inFile(prefix.name, in: scope))
    return naming.names(stored, in: scope).map { MLSRecordKey(group: prefix.group, name: $0) }.sorted()
  }

  /// The groups that have records, ascending.
  package func groups(_ naming: some RecordNaming) throws(SQLError) -> [[UInt8]] {
    var groups: [[UInt8]] = []
    for scope in try scopes(prefix: naming.groupScopes) {
      guard let group = naming.group(of: scope) else { throw .damagedValue }
      groups.append(group)
    }
    return groups.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// Carries out a transaction as a part of the one that is open; `aborted` where it expects what is not so.
  package func apply(_ transaction: MLSTransaction, _ naming: some RecordNaming) throws(SQLError) {
    for (key, expected) in transaction.expected {
      switch (expected, try read(key, naming)) {
      case (nil, nil): break
      case (let expected?, let found?) where MLSRecord.isEqual(expected, found): break
      default: throw .aborted
      }
    }
    for prefix in transaction.erasedPrefixes {
      let scope = naming.scope(of: prefix.group)
      try eraseAll(scope: scope, prefix: naming.inFile(prefix.name, in: scope))
    }
    for (key, change) in transaction.changes.sorted(by: { $0.key < $1.key }) {
      let scope = naming.scope(of: key.group)
      let name = naming.inFile(key.name, in: scope)
      switch change {
      case .erase: try erase(scope: scope, name: name)
      case .write(let record):
        try record.withSpan { span throws(SQLError) in try write(scope: scope, name: name, span) }
      }
    }
  }
}

extension MLSStorageError {
  /// What an error of the database is for the engine.
  package init(_ error: SQLError) {
    switch error {
    case .failed(let code): self = .failed(code: code)
    case .damagedValue: self = .corrupted(.invalid(field: "sealed record", value: 0))
    case .corrupted: self = .inconsistent
    case .newerVersion(let found, let known): self = .newerSchema(found: found, known: known)
    case .busy: self = .busy
    case .aborted: self = .conflict
    case .unusable: self = .unusable
    }
  }
}
