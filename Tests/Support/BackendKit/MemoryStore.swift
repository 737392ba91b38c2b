public import PalbeBackendCore
import PalbeUnits

/// The reference store: dictionaries, searched without indexes, that a transaction and a savepoint copy.
public struct MemoryStore: BackendStore {
  struct Message {
    var row: LogView
    var counted: Int64
  }
  struct Entry {
    var item: QueueItem
    var wakes: Bool
  }
  struct Package {
    var row: KeyPackageRow
    var isUsed = false
  }
  struct Group {
    var row: GroupRow
    var state: GroupStateRow
    var members: [UserID: MemberRow] = [:]
    var leaves: [DeviceID: LeafRow] = [:]
    var log: [LogSequence: Message] = [:]
    /// Sequence of the commit of a generation's epoch.
    var commits: [[UInt64]: LogSequence] = [:]
    var delivered: [DeviceID: LogSequence] = [:]
  }
  struct Tables {
    var users: [UserID: UserRow] = [:]
    var devices: [DeviceID: DeviceRow] = [:]
    var tokens: [DeviceID: [PushPlatform: PushToken]] = [:]
    var packages: [Package] = []
    var groups: [GroupID: Group] = [:]
    var queues: [DeviceID: [QueueID: Entry]] = [:]
    var lastQueueID = QueueID.start
    var welcomes: [WelcomeID: (blob: [UInt8], readers: Int)] = [:]
    var lastWelcome: Int64 = 0
    var blobs: [BlobID: BlobRow] = [:]
    var idempotency: [[[UInt8]]: IdempotencyRow] = [:]
  }

  var tables = Tables()
  private var atBegin: Tables?
  private var atSavepoint: Tables?
  /// What goes wrong; shared with the test.
  public let faults = Faults()

  /// What goes wrong in a store.
  public final class Faults {
    /// The next message or commit into a log fails with this, once.
    public var append: StoreFault?
    /// Every transaction's end fails with this.
    public var commit: StoreFault?
  }

  /// An empty store.
  public init() {}

  // MARK: Transactions

  public mutating func begin() throws(BackendFailure) {
    precondition(atBegin == nil)
    atBegin = tables
  }
  public mutating func commit() throws(BackendFailure) {
    precondition(atBegin != nil && atSavepoint == nil)
    if let fault = faults.commit { throw .unavailable(fault) }
    atBegin = nil
  }
  public mutating func rollBack() {
    if let atBegin { tables = atBegin }
    atBegin = nil
    atSavepoint = nil
  }
  public mutating func setSavepoint() throws(BackendFailure) {
    precondition(atBegin != nil && atSavepoint == nil)
    atSavepoint = tables
  }
  public mutating func releaseSavepoint() throws(BackendFailure) { atSavepoint = nil }
  public mutating func rollBackToSavepoint() throws(BackendFailure) {
    if let atSavepoint { tables = atSavepoint }
    atSavepoint = nil
  }

  // MARK: Users and devices

  public mutating func user(_ id: UserID) -> UserRow? { tables.users[id] }
  public mutating func put(_ user: UserRow) { tables.users[user.id] = user }
  public mutating func device(_ id: DeviceID) -> DeviceRow? { tables.devices[id] }
  public mutating func devices(of user: UserID) -> [DeviceRow] {
    tables.devices.values.filter { $0.user == user }.sorted { $0.id < $1.id }
  }
  public mutating func insert(_ device: DeviceRow) { tables.devices[device.id] = device }
  public mutating func revoke(_ device: DeviceID, at time: WallTime) -> [GroupID] {
    tables.devices[device]?.revokedAt = time
    tables.tokens[device] = nil
    for index in tables.packages.indices where tables.packages[index].row.device == device {
      use(index)
    }
    for id in (tables.queues[device] ?? [:]).keys { remove(id, device) }
    var groups: [GroupID] = []
    for (id, group) in tables.groups where group.leaves[device] != nil {
      tables.groups[id]?.leaves[device]?.isLive = false
      groups.append(id)
    }
    return groups.sorted()
  }
  public mutating func setWoken(_ device: DeviceID, through id: QueueID) {
    let before = tables.devices[device]?.wokenThrough ?? .start
    tables.devices[device]?.wokenThrough = max(before, id)
  }
  public mutating func put(_ token: PushToken, for device: DeviceID) {
    tables.tokens[device, default: [:]][token.platform] = token
  }
  public mutating func pushTokens(of device: DeviceID) -> [PushToken] {
    (tables.tokens[device] ?? [:]).values.sorted { $0.platform.rawValue < $1.platform.rawValue }
  }

  // MARK: Key packages

  private mutating func use(_ index: Int) {
    tables.packages[index].isUsed = true
    tables.packages[index].row.blob = []
  }
  public mutating func insert(_ package: KeyPackageRow) -> Bool {
    guard !tables.packages.contains(where: { $0.row.reference == package.reference }) else { return false }
    if package.isLastResort {
      for index in tables.packages.indices
      where tables.packages[index].row.device == package.device && tables.packages[index].row.isLastResort {
        use(index)
      }
    }
    tables.packages.append(Package(row: package))
    return true
  }
  public mutating func keyPackageOwner(_ reference: [UInt8]) -> DeviceID? {
    tables.packages.first { $0.row.reference == reference }?.row.device
  }
  private func packages(_ device: DeviceID, _ time: WallTime, isLastResort: Bool) -> [Int] {
    tables.packages.indices.filter { index in
      let package = tables.packages[index]
      return !package.isUsed && package.row.device == device && package.row.expiresAt > time
        && package.row.isLastResort == isLastResort
    }
  }
  public mutating func keyPackageCount(of device: DeviceID, at time: WallTime) -> Int {
    packages(device, time, isLastResort: false).count
  }
  public mutating func hasLastResort(_ device: DeviceID, at time: WallTime) -> Bool {
    !packages(device, time, isLastResort: true).isEmpty
  }
  public mutating func takeKeyPackage(
    of device: DeviceID, at time: WallTime, isLastResort: Bool
  ) -> ClaimedKeyPackage? {
    if !isLastResort, let index = packages(device, time, isLastResort: false).first {
      let blob = tables.packages[index].row.blob
      use(index)
      return ClaimedKeyPackage(device: device, blob: blob, isLastResort: false)
    }
    guard let index = packages(device, time, isLastResort: true).first else { return nil }
    return ClaimedKeyPackage(device: device, blob: tables.packages[index].row.blob, isLastResort: true)
  }

  // MARK: Groups

  public mutating func group(_ id: GroupID) -> GroupRow? { tables.groups[id]?.row }
  public mutating func group(mlsID: MLSGroupID) -> GroupRow? {
    tables.groups.values.first { $0.row.mlsID == mlsID }?.row
  }
  public mutating func group(directKey: [UInt8]) -> GroupRow? {
    tables.groups.values.first { $0.row.directKey == directKey }?.row
  }
  public mutating func insert(_ group: GroupRow, _ state: GroupStateRow) {
    tables.groups[group.id] = Group(row: group, state: state)
  }
  public mutating func update(_ group: GroupRow) { tables.groups[group.id]?.row = group }
  public mutating func state(of group: GroupID) throws(BackendFailure) -> GroupStateRow {
    guard let state = tables.groups[group]?.state else { throw .unavailable(.corrupted) }
    return state
  }
  public mutating func setState(_ state: GroupStateRow, of group: GroupID) {
    tables.groups[group]?.state = state
  }
  public mutating func member(_ user: UserID, of group: GroupID) -> MemberRow? {
    tables.groups[group]?.members[user]
  }
  public mutating func members(of group: GroupID) -> [MemberRow] {
    (tables.groups[group]?.members ?? [:]).values.filter(\.isCurrent).sorted { $0.user < $1.user }
  }
  public mutating func put(_ member: MemberRow, of group: GroupID) {
    tables.groups[group]?.members[member.user] = member
  }
  public mutating func groups(of user: UserID, after: GroupID?, limit: Int) -> [(GroupRow, MemberRow)] {
    let all = tables.groups.values.compactMap { group -> (GroupRow, MemberRow)? in
      guard let member = group.members[user], member.isCurrent else { return nil }
      if let after, group.row.id <= after { return nil }
      return (group.row, member)
    }
    return Array(all.sorted { $0.0.id < $1.0.id }.prefix(limit))
  }
  public mutating func leaf(_ device: DeviceID, of group: GroupID) -> LeafRow? {
    tables.groups[group]?.leaves[device]
  }
  public mutating func leaves(of group: GroupID) -> [LeafRow] {
    (tables.groups[group]?.leaves ?? [:]).values.sorted { $0.device < $1.device }
  }
  public mutating func put(_ leaf: LeafRow, of group: GroupID) {
    tables.groups[group]?.leaves[leaf.device] = leaf
  }
  public mutating func removeLeaf(_ device: DeviceID, of group: GroupID) {
    tables.groups[group]?.leaves[device] = nil
  }
  public mutating func removeAllLeaves(of group: GroupID) { tables.groups[group]?.leaves = [:] }
  public mutating func contacts(of user: UserID) -> [DeviceID] {
    var devices: Set<DeviceID> = []
    for group in tables.groups.values where group.members[user]?.isCurrent == true {
      devices.formUnion(group.leaves.values.filter(\.isLive).map(\.device))
    }
    return devices.sorted()
  }

  // MARK: Log

  public mutating func append(
    _ row: LogView, countedMessages: Int64, to group: GroupID
  ) throws(BackendFailure) -> Bool {
    if let fault = faults.append {
      faults.append = nil
      throw .unavailable(fault)
    }
    if row.kind == .commit {
      let key = [UInt64(row.generation), row.epoch]
      guard tables.groups[group]?.commits[key] == nil else { return false }
      tables.groups[group]?.commits[key] = row.sequence
    }
    guard tables.groups[group]?.log[row.sequence] == nil else { throw .unavailable(.corrupted) }
    tables.groups[group]?.log[row.sequence] = Message(row: row, counted: countedMessages)
    return true
  }
  public mutating func receipt(of message: ClientMessageID, from device: DeviceID) -> LogReceipt? {
    for (id, group) in tables.groups {
      for entry in group.log.values where entry.row.clientID == message && entry.row.sender == device {
        return LogReceipt(group: id, sequence: entry.row.sequence, epoch: entry.row.epoch)
      }
    }
    return nil
  }
  public mutating func commits(
    of group: GroupID, generation: Int64, from epoch: Epoch, limit: Int
  ) -> [LogView] {
    let rows = (tables.groups[group]?.log ?? [:]).values.map(\.row)
      .filter { $0.kind == .commit && $0.generation == generation && $0.epoch >= epoch }
    return Array(rows.sorted { $0.epoch < $1.epoch }.prefix(limit))
  }
  public mutating func countedMessages(of group: GroupID, upTo sequence: LogSequence) -> Int64? {
    (tables.groups[group]?.log ?? [:]).values.filter { $0.row.sequence <= sequence }
      .max { $0.row.sequence < $1.row.sequence }?.counted
  }

  // MARK: Blobs, idempotency

  public mutating func blob(_ id: BlobID) -> BlobRow? { tables.blobs[id] }
  public mutating func put(_ blob: BlobRow) { tables.blobs[blob.id] = blob }
  public mutating func idempotency(owner: [UInt8], key: [UInt8]) -> IdempotencyRow? {
    tables.idempotency[[owner, key]]
  }
  public mutating func put(_ row: IdempotencyRow, owner: [UInt8], key: [UInt8]) {
    tables.idempotency[[owner, key]] = row
  }
}
