/// A group and its storage, which never differ: every operation is one transaction.
///
///     var group = try StoredGroup.insert(try MLSGroup.create(…), in: storage)
///     // The closure must say what it throws.
///     let message = try group.update { group throws(MLSError) in try group.encrypt(data, using: &random) }
///     try group.update { group throws(MLSError) in
///       try group.process(bytes, at: now)
///     } also: { received, transaction throws(MLSStorageError) in
///       transaction.write(MLSRecord(copying: row.span), .application(name, in: id))
///     }
///     // After a restart:
///     guard var group = try StoredGroup.load(groupID, client: client, from: storage) else { … }
///
/// A message comes out of `update` only when the key it was made with is gone from storage, so that no key is used
/// twice whenever the process ends.
///
/// A group has one user at a time. A second one, of the same storage, is noticed: its next transaction throws
/// `conflict`, before anything it made gets out.
public struct StoredGroup: ~Copyable, Sendable {
  /// The group, to read.
  public private(set) var group: MLSGroup
  private let storage: any MLSStorage
  private let names: RecordNames
  private var revision: MLSRecord
  private var revisionNumber: UInt64

  private init(
    _ group: consuming MLSGroup, _ storage: any MLSStorage, _ names: RecordNames, revision: MLSRecord
  ) throws(MLSStorageError) {
    self.group = group
    self.storage = storage
    self.names = names
    // As it lies there, maybe in an older schema.
    self.revision = revision
    revisionNumber = try RevisionRecord(revision).revision
  }

  /// Stores a group that was created or joined.
  ///
  /// The private keys of the key package it was joined with are erased in the same transaction, unless it is one of
  /// last resort. `also` adds records of the application. Throws `groupExists` when a group with this identifier is
  /// stored, unless `replacing`: a client that was removed and joins again replaces what is left of the old one.
  public static func insert(
    _ group: consuming MLSGroup, in storage: any MLSStorage, replacing: Bool = false,
    also: (inout MLSTransaction) throws(MLSStorageError) -> Void = { (_) throws(MLSStorageError) in }
  ) throws(MLSStorageError) -> StoredGroup {
    let names = RecordNames(group: group.groupID)
    let old = try storage.read(names.revision)
    guard old == nil || replacing else { throw .groupExists }
    // Goes on counting, so that somebody who still holds the old group cannot write over the new one.
    let number = try old.map { record throws(MLSStorageError) in try RevisionRecord(record).revision + 1 }
    let revision = RevisionRecord(number ?? 1).record
    var transaction = MLSTransaction()
    transaction.expect(old, names.revision)
    if old != nil { for prefix in names.all { transaction.eraseAll(under: prefix) } }
    group.state.writeAll(group.founder, names, into: &transaction)
    transaction.write(revision, names.revision)
    if let reference = group.keyPackageReference,
      let record = try storage.read(.keyPackage(reference)),
      try !KeyPackageBundle(stored: record).isLastResort
    {
      transaction.erase(.keyPackage(reference))
    }
    try also(&transaction)
    try storage.apply(transaction)
    group.state.markStored()
    return try StoredGroup(group, storage, names, revision: revision)
  }

  /// The stored group; nil when there is none.
  ///
  /// Throws `newerSchema`, `corrupted`, `inconsistent`, `wrongClient`.
  public static func load(
    _ groupID: [UInt8], client: MLSClient, from storage: any MLSStorage
  ) throws(MLSStorageError) -> StoredGroup? {
    let names = RecordNames(group: groupID)
    guard let state = try GroupState(names, client: client, from: storage) else { return nil }
    guard let revision = try storage.read(names.revision) else { throw .inconsistent }
    return try StoredGroup(
      MLSGroup(client: client, state: state), storage, names, revision: revision)
  }

  /// How many transactions the group has seen. It never falls; one that did is an old copy, whose keys were used.
  public var transactionCount: UInt64 { revisionNumber }

  /// Runs an operation and stores what it changed; when anything throws, the group is as before in memory and on disk.
  ///
  /// `also` gets the result and adds the application's own records to the same transaction.
  @discardableResult
  public mutating func update<Result>(
    _ body: (inout MLSGroup) throws(MLSError) -> Result,
    also: (Result, inout MLSTransaction) throws(MLSStorageError) -> Void = {
      (_, _) throws(MLSStorageError) in
    }
  ) throws(StoredGroupError) -> Result {
    let before = group.state
    let result: Result
    do throws(MLSError) { result = try body(&group) } catch {
      group.state = before
      throw .mls(error)
    }
    do throws(MLSStorageError) {
      var transaction = MLSTransaction()
      group.state.writeChanges(since: before, group.founder, names, into: &transaction)
      try also(result, &transaction)
      if !transaction.isEmpty { try apply(&transaction) }
    } catch {
      group.state = before
      throw .storage(error)
    }
    group.state.markStored()
    return result
  }

  private mutating func apply(_ transaction: inout MLSTransaction) throws(MLSStorageError) {
    let next = RevisionRecord(revisionNumber + 1)
    let record = next.record
    transaction.expect(revision, names.revision)
    transaction.write(record, names.revision)
    try storage.apply(transaction)
    revision = record
    revisionNumber = next.revision
  }

  /// Erases all of the engine's records of the group; `also` may erase those of the application, all of them with
  /// `$0.eraseAll(under: .application([], in: id))`.
  public consuming func delete(
    also: (inout MLSTransaction) throws(MLSStorageError) -> Void = { (_) throws(MLSStorageError) in }
  ) throws(MLSStorageError) {
    var transaction = MLSTransaction()
    transaction.expect(revision, names.revision)
    for prefix in names.all { transaction.eraseAll(under: prefix) }
    try also(&transaction)
    try storage.apply(transaction)
  }
}
