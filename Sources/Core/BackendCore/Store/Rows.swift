public import PalbeUnits

/// A user's row.
public struct UserRow: Hashable, Sendable {
  public var id: UserID
  public var prefs: CommsPrefs
  /// All fields.
  public init(id: UserID, prefs: CommsPrefs) {
    self.id = id
    self.prefs = prefs
  }
}

/// A device's row; it outlives its revocation.
public struct DeviceRow: Hashable, Sendable {
  public var id: DeviceID
  public var user: UserID
  public var signatureKey: [UInt8]
  public var platform: DevicePlatform
  public var createdAt: WallTime
  public var revokedAt: WallTime?
  /// Rows of its queue up to here need no wake push any more.
  public var wokenThrough: QueueID

  /// All fields.
  public init(
    id: DeviceID, user: UserID, signatureKey: [UInt8], platform: DevicePlatform, createdAt: WallTime,
    revokedAt: WallTime? = nil, wokenThrough: QueueID = .start
  ) {
    self.id = id
    self.user = user
    self.signatureKey = signatureKey
    self.platform = platform
    self.createdAt = createdAt
    self.revokedAt = revokedAt
    self.wokenThrough = wokenThrough
  }
}

/// A key package's row; after its use it stays without bytes until it would have expired, so that it is not taken again.
public struct KeyPackageRow: Hashable, Sendable {
  public var device: DeviceID
  /// Its init key, which no other key package has.
  public var reference: [UInt8]
  public var blob: [UInt8]
  public var expiresAt: WallTime
  public var isLastResort: Bool
  /// All fields.
  public init(device: DeviceID, reference: [UInt8], blob: [UInt8], expiresAt: WallTime, isLastResort: Bool) {
    self.device = device
    self.reference = reference
    self.blob = blob
    self.expiresAt = expiresAt
    self.isLastResort = isLastResort
  }
}

/// A group's row.
public struct GroupRow: Hashable, Sendable {
  public var id: GroupID
  public var mlsID: MLSGroupID
  public var kind: ChatKind
  /// The pair of a direct chat that is open to both.
  public var directKey: [UInt8]?
  public var epoch: Epoch
  /// How often it was founded anew.
  public var generation: Int64
  public var headSequence: LogSequence
  /// Application messages that count as unread, since the beginning.
  public var countedMessages: Int64
  /// The newest proposal of this epoch; 0 without one.
  public var lastProposal: LogSequence
  public var createdBy: UserID
  public var createdAt: WallTime

  /// All fields.
  public init(
    id: GroupID, mlsID: MLSGroupID, kind: ChatKind, directKey: [UInt8]?, epoch: Epoch, generation: Int64,
    headSequence: LogSequence, countedMessages: Int64, lastProposal: LogSequence, createdBy: UserID,
    createdAt: WallTime
  ) {
    self.id = id
    self.mlsID = mlsID
    self.kind = kind
    self.directKey = directKey
    self.epoch = epoch
    self.generation = generation
    self.headSequence = headSequence
    self.countedMessages = countedMessages
    self.lastProposal = lastProposal
    self.createdBy = createdBy
    self.createdAt = createdAt
  }
}

/// The opaque state of a group's newest epoch.
public struct GroupStateRow: Hashable, Sendable {
  public var groupInfo: [UInt8]
  public var ratchetTree: [UInt8]?
  public var sealedName: [UInt8]?
  public var nameEpoch: Epoch?
  /// All fields.
  public init(
    groupInfo: [UInt8], ratchetTree: [UInt8]? = nil, sealedName: [UInt8]? = nil, nameEpoch: Epoch? = nil
  ) {
    self.groupInfo = groupInfo
    self.ratchetTree = ratchetTree
    self.sealedName = sealedName
    self.nameEpoch = nameEpoch
  }
}

/// A user in a group, with what the user has read; it outlives the membership.
public struct MemberRow: Hashable, Sendable {
  public var user: UserID
  public var role: ChatRole
  /// The head when the user came.
  public var joinedSequence: LogSequence
  /// The head when the user left; nil: is a member.
  public var leftSequence: LogSequence?
  public var scope: NotifyScope
  public var readSequence: LogSequence
  /// Counted messages up to `readSequence`, or up to where the user joined.
  public var readCounted: Int64

  /// All fields.
  public init(
    user: UserID, role: ChatRole, joinedSequence: LogSequence, leftSequence: LogSequence? = nil,
    scope: NotifyScope = .all, readSequence: LogSequence = 0, readCounted: Int64 = 0
  ) {
    self.user = user
    self.role = role
    self.joinedSequence = joinedSequence
    self.leftSequence = leftSequence
    self.scope = scope
    self.readSequence = readSequence
    self.readCounted = readCounted
  }

  /// Whether the user is in the group now.
  public var isCurrent: Bool { leftSequence == nil }
}

/// A device's leaf in a group's tree.
public struct LeafRow: Hashable, Sendable {
  public var device: DeviceID
  public var user: UserID
  public var index: UInt32
  /// The first epoch that it can read.
  public var addedEpoch: Epoch
  /// Whether it is served; one that is not waits for the commit that removes it.
  public var isLive: Bool
  /// All fields.
  public init(device: DeviceID, user: UserID, index: UInt32, addedEpoch: Epoch, isLive: Bool = true) {
    self.device = device
    self.user = user
    self.index = index
    self.addedEpoch = addedEpoch
    self.isLive = isLive
  }
}

/// Where a message was accepted.
public struct LogReceipt: Hashable, Sendable {
  public var group: GroupID
  public var sequence: LogSequence
  public var epoch: Epoch
  /// All fields.
  public init(group: GroupID, sequence: LogSequence, epoch: Epoch) {
    self.group = group
    self.sequence = sequence
    self.epoch = epoch
  }
}

/// What is put into queues.
public enum QueueItem: Hashable, Sendable {
  /// A row of the group's log.
  case message(GroupID, LogSequence)
  case welcome(GroupID, WelcomeID)
  case control(Control)
}

/// A welcome in the store.
public struct WelcomeID: Hashable, Sendable, BitwiseCopyable {
  /// The store's number.
  public let rawValue: Int64
  /// A number.
  public init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// Which rows of a queue a wake push is about.
public struct WakeSpan: Hashable, Sendable {
  public var device: DeviceID
  public var group: GroupID
  public var first: QueueID
  public var last: QueueID
  public var kind: WakeKind
  /// All fields.
  public init(device: DeviceID, group: GroupID, first: QueueID, last: QueueID, kind: WakeKind) {
    self.device = device
    self.group = group
    self.first = first
    self.last = last
    self.kind = kind
  }
}

/// What an acknowledgement removed.
public struct RemovedRows: Hashable, Sendable {
  public var count = 0
  /// The newest message of each group among them.
  public var delivered: [GroupID: LogSequence] = [:]
  /// Nothing.
  public init() {}
}

/// A blob's row; its bytes are elsewhere.
public struct BlobRow: Hashable, Sendable {
  public var id: BlobID
  public var group: GroupID
  public var uploader: DeviceID
  public var byteCount: Int64
  public var state: BlobState
  public var expiresAt: WallTime
  /// All fields.
  public init(
    id: BlobID, group: GroupID, uploader: DeviceID, byteCount: Int64, state: BlobState, expiresAt: WallTime
  ) {
    self.id = id
    self.group = group
    self.uploader = uploader
    self.byteCount = byteCount
    self.state = state
    self.expiresAt = expiresAt
  }
}

/// A first answer that repetitions get.
public struct IdempotencyRow: Hashable, Sendable {
  public var digest: [UInt8]
  public var response: [UInt8]
  public var expiresAt: WallTime
  /// All fields.
  public init(digest: [UInt8], response: [UInt8], expiresAt: WallTime) {
    self.digest = digest
    self.response = response
    self.expiresAt = expiresAt
  }
}
