public import PalbeUnits

/// What a request is answered with.
public enum BackendResponse: Hashable, Sendable {
  case done
  case enrolled(DeviceID)
  case devices([DeviceView])
  case commsPrefs(CommsPrefs)
  case keyPackageCount(KeyPackageCount)
  /// `missing` are devices without a usable one.
  case keyPackages([ClaimedKeyPackage], missing: [DeviceID])
  case founded(FoundedGroup)
  case groups([GroupSummary], hasMore: Bool)
  case group(GroupView)
  case committed(sequence: LogSequence, epoch: Epoch)
  case commits([LogView])
  /// Position 0 for an ephemeral message.
  case accepted(sequence: LogSequence, epoch: Epoch, isRepeated: Bool)
  case queue([QueueRow], hasMore: Bool)
  case acknowledged(count: Int)
  case notifyScope(NotifyScope)
  case unread(UnreadView)
  case blob(BlobView)
  /// The group of a conversation's topic, and who is online and typing in it.
  case subscribed(GroupID?, online: [UserID], typing: [DeviceID])
}

/// A device as its user sees it.
public struct DeviceView: Hashable, Sendable {
  public var id: DeviceID
  public var platform: DevicePlatform
  public var signatureKey: [UInt8]
  public var createdAt: WallTime
  public var revokedAt: WallTime?
}

/// What a device has left for others to claim.
public struct KeyPackageCount: Hashable, Sendable {
  public var count: Int
  public var hasLastResort: Bool
  /// A count.
  public init(count: Int, hasLastResort: Bool) {
    self.count = count
    self.hasLastResort = hasLastResort
  }
}

/// A key package of one device.
public struct ClaimedKeyPackage: Hashable, Sendable {
  public var device: DeviceID
  public var blob: [UInt8]
  /// It was not consumed: the device should replace it once it is used.
  public var isLastResort: Bool
  /// A key package.
  public init(device: DeviceID, blob: [UInt8], isLastResort: Bool) {
    self.device = device
    self.blob = blob
    self.isLastResort = isLastResort
  }
}

/// A group that was founded now or before.
public struct FoundedGroup: Hashable, Sendable {
  public var id: GroupID
  public var mlsID: MLSGroupID
  public var epoch: Epoch
  public var headSequence: LogSequence
  /// It was there before: nothing of the request was taken.
  public var isExisting: Bool
}

/// A group in a list.
public struct GroupSummary: Hashable, Sendable {
  public var id: GroupID
  public var mlsID: MLSGroupID
  public var kind: ChatKind
  public var epoch: Epoch
  public var generation: Int64
  public var headSequence: LogSequence
  public var role: ChatRole
}

/// A group for its members.
public struct GroupView: Hashable, Sendable {
  public var summary: GroupSummary
  public var members: [MemberView]
  public var leaves: [LeafView]
  /// Devices of members that have no leaf yet.
  public var missingDevices: [DeviceID]
  public var groupInfo: [UInt8]
  public var ratchetTree: [UInt8]?
  public var sealedName: [UInt8]?
  public var nameEpoch: Epoch?
}

/// A user of a group.
public struct MemberView: Hashable, Sendable {
  public var user: UserID
  public var role: ChatRole
  public var joinedSequence: LogSequence
}

/// A device of a group.
public struct LeafView: Hashable, Sendable {
  public var device: DeviceID
  public var user: UserID
  public var index: UInt32
  /// False: its user left or revoked it, and the next commit must remove it.
  public var isLive: Bool
}

/// A row of a group's log.
public struct LogView: Hashable, Sendable {
  public var sequence: LogSequence
  public var epoch: Epoch
  public var generation: Int64
  public var kind: LogKind
  public var sender: DeviceID
  public var clientID: ClientMessageID?
  public var blob: [UInt8]
  public var at: WallTime

  /// All fields.
  public init(
    sequence: LogSequence, epoch: Epoch, generation: Int64, kind: LogKind, sender: DeviceID,
    clientID: ClientMessageID?, blob: [UInt8], at: WallTime
  ) {
    self.sequence = sequence
    self.epoch = epoch
    self.generation = generation
    self.kind = kind
    self.sender = sender
    self.clientID = clientID
    self.blob = blob
    self.at = at
  }
}

/// A row of a device's queue.
public struct QueueRow: Hashable, Sendable {
  public var id: QueueID
  public var content: QueueContent
  /// A row.
  public init(id: QueueID, content: QueueContent) {
    self.id = id
    self.content = content
  }
}

/// What a row of a queue brings.
public enum QueueContent: Hashable, Sendable {
  case message(GroupID, LogView)
  case welcome(GroupID, [UInt8])
  case control(Control)

  /// About how many bytes an answer takes for it.
  public var byteCount: Int {
    switch self {
    case .message(_, let row): row.blob.count + 100
    case .welcome(_, let blob): blob.count + 100
    case .control: 100
    }
  }
}

/// What a user has read of a group (S0-90). The server cannot know what an encrypted message means to a reader, so
/// `unreadCount` is an upper bound: the messages sent to wake.
public struct UnreadView: Hashable, Sendable {
  public var groupMaxSequence: LogSequence
  public var lastReadSequence: LogSequence
  /// The furthest of the user's own devices.
  public var deliveredSequence: LogSequence
  public var unreadCount: Int64
  /// A view.
  public init(
    groupMaxSequence: LogSequence, lastReadSequence: LogSequence, deliveredSequence: LogSequence,
    unreadCount: Int64
  ) {
    self.groupMaxSequence = groupMaxSequence
    self.lastReadSequence = lastReadSequence
    self.deliveredSequence = deliveredSequence
    self.unreadCount = unreadCount
  }
}

/// An attachment's record.
public struct BlobView: Hashable, Sendable {
  public var id: BlobID
  public var group: GroupID
  public var byteCount: Int64
  public var state: BlobState
  public var expiresAt: WallTime
}
