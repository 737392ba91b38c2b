/// A group and its storage, which never differ: every operation is one transaction.
///
///     var group = try StoredGroup.insert(try MLSGroup.create(…), in: storage)
///     let message = try group.update { group throws(MLSError) in try group.encrypt(data, using: &random) }
///     // After a restart:
///     var group = try StoredGroup.load(groupID, client: client, from: storage)
///
/// A message comes out of `update` only when the key it was made with is gone from storage, so that no key is used
/// twice whenever the process ends.
public struct StoredGroup: ~Copyable, Sendable {
  /// The group, to read.
  public private(set) var group: MLSGroup
  let storage: any MLSStorage

  private init(_ group: consuming MLSGroup, _ storage: any MLSStorage) {
    self.group = group
    self.storage = storage
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
    StoredGroup(group, storage)
  }

  /// The stored group; nil when there is none.
  ///
  /// Throws `newerSchema`, `corrupted`, `inconsistent`, `wrongClient`.
  public static func load(
    _ groupID: [UInt8], client: MLSClient, from storage: any MLSStorage
  ) throws(MLSStorageError) -> StoredGroup? { nil }

  /// Runs an operation and stores what it changed; when anything throws, the group is as before in memory and on disk.
  ///
  /// `also` gets the result and adds the application's own records to the same transaction.
  public mutating func update<Result>(
    _ body: (inout MLSGroup) throws(MLSError) -> Result,
    also: (Result, inout MLSTransaction) throws(MLSStorageError) -> Void = {
      (_, _) throws(MLSStorageError) in
    }
  ) throws(StoredGroupError) -> Result {
    let before = group.state
    do throws(MLSError) { return try body(&group) } catch {
      group.state = before
      throw .mls(error)
    }
  }

  /// Erases all records of the group; `also` adds records of the application.
  public consuming func delete(
    also: (inout MLSTransaction) throws(MLSStorageError) -> Void = { (_) throws(MLSStorageError) in }
  ) throws(MLSStorageError) {}
}
