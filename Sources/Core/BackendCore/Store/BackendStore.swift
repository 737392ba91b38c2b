public import PalbeUnits

/// Where the server's tables are.
///
/// The core calls `begin`, then operations, then `commit` or `rollBack`; each request lies between `setSavepoint` and
/// `releaseSavepoint` or `rollBackToSavepoint`. When `commit` returns, its changes survive a loss of power; when it throws, or
/// the process ends before it, there are none of them. Operations throw nothing but `BackendFailure.unavailable`, and after
/// that the core rolls the whole transaction back.
public protocol BackendStore {
  // Transactions; no two at a time.
  mutating func begin() throws(BackendFailure)
  mutating func commit() throws(BackendFailure)
  /// Never fails: a store that cannot roll back refuses everything from then on.
  mutating func rollBack()
  mutating func setSavepoint() throws(BackendFailure)
  mutating func releaseSavepoint() throws(BackendFailure)
  mutating func rollBackToSavepoint() throws(BackendFailure)

  // Users and devices.
  mutating func user(_ id: UserID) throws(BackendFailure) -> UserRow?
  /// Inserts or replaces.
  mutating func put(_ user: UserRow) throws(BackendFailure)
  mutating func device(_ id: DeviceID) throws(BackendFailure) -> DeviceRow?
  /// All of a user, by id.
  mutating func devices(of user: UserID) throws(BackendFailure) -> [DeviceRow]
  mutating func insert(_ device: DeviceRow) throws(BackendFailure)
  /// Marks it; removes its queue, key packages and push tokens, and retires its leaves. Returns the groups of these.
  mutating func revoke(_ device: DeviceID, at time: WallTime) throws(BackendFailure) -> [GroupID]
  mutating func setWoken(_ device: DeviceID, through id: QueueID) throws(BackendFailure)
  /// Inserts or replaces the one of its platform.
  mutating func put(_ token: PushToken, for device: DeviceID) throws(BackendFailure)
  mutating func pushTokens(of device: DeviceID) throws(BackendFailure) -> [PushToken]

  // Key packages.
  /// False: one with this reference is or was there. One for last resort replaces the one before.
  mutating func insert(_ package: KeyPackageRow) throws(BackendFailure) -> Bool
  /// Whose key package has or had this init key; nil when it is new.
  mutating func keyPackageOwner(_ reference: [UInt8]) throws(BackendFailure) -> DeviceID?
  /// How many are not used, not for last resort and valid at a time.
  mutating func keyPackageCount(of device: DeviceID, at time: WallTime) throws(BackendFailure) -> Int
  mutating func hasLastResort(_ device: DeviceID, at time: WallTime) throws(BackendFailure) -> Bool
  /// Consumes the oldest valid one; without one, or if only that is wanted, the one for last resort, which stays where it is.
  mutating func takeKeyPackage(
    of device: DeviceID, at time: WallTime, isLastResort: Bool
  ) throws(BackendFailure) -> ClaimedKeyPackage?

  // Groups.
  mutating func group(_ id: GroupID) throws(BackendFailure) -> GroupRow?
  mutating func group(mlsID: MLSGroupID) throws(BackendFailure) -> GroupRow?
  mutating func group(directKey: [UInt8]) throws(BackendFailure) -> GroupRow?
  mutating func insert(_ group: GroupRow, _ state: GroupStateRow) throws(BackendFailure)
  mutating func update(_ group: GroupRow) throws(BackendFailure)
  mutating func state(of group: GroupID) throws(BackendFailure) -> GroupStateRow
  mutating func setState(_ state: GroupStateRow, of group: GroupID) throws(BackendFailure)
  mutating func member(_ user: UserID, of group: GroupID) throws(BackendFailure) -> MemberRow?
  /// Current ones, by id.
  mutating func members(of group: GroupID) throws(BackendFailure) -> [MemberRow]
  /// Inserts or replaces.
  mutating func put(_ member: MemberRow, of group: GroupID) throws(BackendFailure)
  /// Groups that a user is in now, by id, after one.
  mutating func groups(
    of user: UserID, after: GroupID?, limit: Int
  ) throws(BackendFailure) -> [(GroupRow, MemberRow)]
  mutating func leaf(_ device: DeviceID, of group: GroupID) throws(BackendFailure) -> LeafRow?
  /// All, by device.
  mutating func leaves(of group: GroupID) throws(BackendFailure) -> [LeafRow]
  /// Inserts or replaces.
  mutating func put(_ leaf: LeafRow, of group: GroupID) throws(BackendFailure)
  mutating func removeLeaf(_ device: DeviceID, of group: GroupID) throws(BackendFailure)
  mutating func removeAllLeaves(of group: GroupID) throws(BackendFailure)
  /// Devices with a live leaf in a group that a user is in now, themselves by id.
  mutating func contacts(of user: UserID) throws(BackendFailure) -> [DeviceID]

  // The log.
  /// Appends; for a commit, false when its epoch of the generation has one.
  mutating func append(
    _ row: LogView, countedMessages: Int64, to group: GroupID
  ) throws(BackendFailure) -> Bool
  mutating func receipt(
    of message: ClientMessageID, from device: DeviceID
  ) throws(BackendFailure) -> LogReceipt?
  /// Commits of a generation from an epoch on, ascending, that are still kept.
  mutating func commits(
    of group: GroupID, generation: Int64, from epoch: Epoch, limit: Int
  ) throws(BackendFailure) -> [LogView]
  /// Counted messages up to a position; nil when the log is not kept that far back.
  mutating func countedMessages(
    of group: GroupID, upTo sequence: LogSequence
  ) throws(BackendFailure) -> Int64?

  // Queues.
  /// Above all before, and not below `time`'s microseconds.
  mutating func nextQueueID(at time: WallTime) throws(BackendFailure) -> QueueID
  /// Keeps a welcome until `readers` rows that bring it are removed.
  mutating func insertWelcome(
    _ blob: [UInt8], of group: GroupID, readers: Int
  ) throws(BackendFailure) -> WelcomeID
  mutating func enqueue(
    _ item: QueueItem, id: QueueID, wakes: Bool, to devices: [DeviceID]
  ) throws(BackendFailure)
  /// To every live leaf of the group but one; returns these, by id.
  mutating func enqueue(
    _ item: QueueItem, id: QueueID, wakes: Bool, toLeavesOf group: GroupID, except device: DeviceID?
  ) throws(BackendFailure) -> [DeviceID]
  /// Rows after a position, ascending, at most `limit`, and no more once they have `byteLimit` bytes.
  mutating func queue(
    of device: DeviceID, after: QueueID, limit: Int, byteLimit: Int
  ) throws(BackendFailure) -> (rows: [QueueRow], hasMore: Bool)
  mutating func acknowledge(
    _ rows: Acknowledgement, of device: DeviceID
  ) throws(BackendFailure) -> RemovedRows
  /// Raises how far a device has fetched a group; false when it was there already.
  mutating func raiseDelivered(
    _ device: DeviceID, of group: GroupID, to sequence: LogSequence
  ) throws(BackendFailure) -> Bool
  /// The furthest of a user's devices; 0 without one.
  mutating func delivered(to user: UserID, of group: GroupID) throws(BackendFailure) -> LogSequence
  /// Whether a row of the span that wakes is still there.
  mutating func isUnacknowledged(_ span: WakeSpan) throws(BackendFailure) -> Bool
  /// For each device and group: rows that wake, after what the device was woken for.
  mutating func unwoken() throws(BackendFailure) -> [WakeSpan]

  // Blobs.
  mutating func blob(_ id: BlobID) throws(BackendFailure) -> BlobRow?
  /// Inserts or replaces.
  mutating func put(_ blob: BlobRow) throws(BackendFailure)

  // Idempotency: `owner` is a device, or a user without one.
  mutating func idempotency(owner: [UInt8], key: [UInt8]) throws(BackendFailure) -> IdempotencyRow?
  mutating func put(_ row: IdempotencyRow, owner: [UInt8], key: [UInt8]) throws(BackendFailure)

  // Sweeps: each tells whether there may be more.
  /// Rows of queues before a position go, of the first `limit` devices that have any; for each group of which a device
  /// lost a message or welcome, it gets one `historyGap`, by device and group.
  mutating func dropQueueRows(before id: QueueID, limit: Int, at time: WallTime) throws(BackendFailure)
    -> Bool
  /// Rows at the beginning of logs that were made before a time go, of `limit` groups.
  mutating func dropLogRows(before time: WallTime, limit: Int) throws(BackendFailure) -> Bool
  mutating func dropKeyPackages(expiredAt time: WallTime, limit: Int) throws(BackendFailure) -> Bool
  mutating func dropIdempotency(expiredAt time: WallTime, limit: Int) throws(BackendFailure) -> Bool
  mutating func dropBlobs(expiredAt time: WallTime, limit: Int) throws(BackendFailure) -> [BlobID]
}
