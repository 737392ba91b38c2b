public import PalbeUnits

/// Who asks. The shell has verified it: a session's user, and the device whose token came with it.
public struct Caller: Hashable, Sendable {
  /// The session's user.
  public let user: UserID
  /// The device; nil before it is enrolled.
  public let device: DeviceID?
  /// A caller.
  public init(user: UserID, device: DeviceID?) {
    self.user = user
    self.device = device
  }
}

/// Under which name a request is repeated, and what it was.
public struct IdempotencyKey: Hashable, Sendable {
  /// The client's key, at most 64 bytes.
  public let key: [UInt8]
  /// A digest of the whole request, by which the shell tells another one from a repetition.
  public let digest: [UInt8]
  /// A key.
  public init(key: [UInt8], digest: [UInt8]) {
    self.key = key
    self.digest = digest
  }
}

/// One request of a batch.
public struct BackendCall: Sendable {
  public var request: BackendRequest
  public var caller: Caller
  public var idempotencyKey: IdempotencyKey?
  /// A call.
  public init(_ request: BackendRequest, from caller: Caller, idempotencyKey: IdempotencyKey? = nil) {
    self.request = request
    self.caller = caller
    self.idempotencyKey = idempotencyKey
  }
}

/// What can be asked. Bytes in it are opaque but for the clear header of an MLS message and for key packages.
public enum BackendRequest: Sendable {
  // Users and devices.
  case registerUser
  case enrolDevice(DeviceEnrolment)
  case devices
  case revokeDevice(DeviceID)
  case setPushToken(PushToken)
  case commsPrefs
  case setCommsPrefs(sharePresence: Bool?, shareReceipts: Bool?)
  // Key packages.
  case publishKeyPackages([[UInt8]], lastResort: [UInt8]?)
  case keyPackageCount
  case claimKeyPackages(of: UserID)
  // Groups.
  case createGroup(GroupFounding)
  case groups(after: GroupID?, limit: Int)
  case group(GroupID)
  case commit(GroupID, CommitBundle)
  case commits(GroupID, from: Epoch, limit: Int)
  case send(GroupID, OutgoingMessage)
  case setRole(GroupID, UserID, ChatRole)
  case leave(GroupID)
  /// Founds the group anew; `generation` is the one that ends.
  case reset(GroupID, generation: Int64, GroupFounding)
  // The device's queue.
  case fetchQueue(after: QueueID, limit: Int, connection: ConnectionID?)
  case acknowledge(Acknowledgement, connection: ConnectionID?)
  // Reading.
  case notifyScope(GroupID)
  case setNotifyScope(GroupID, NotifyScope)
  case unread(GroupID)
  case markRead(GroupID, LogSequence)
  // Blobs.
  case createBlob(GroupID, byteCount: Int64)
  case completeBlob(BlobID)
  case blob(BlobID)
  // Live.
  case subscribe(ConnectionID, TopicName)
  case unsubscribe(ConnectionID, TopicName)
  case heartbeat(ConnectionID)
  case setTyping(ConnectionID, GroupID, Bool)
}

/// A device that is new.
public struct DeviceEnrolment: Sendable, Hashable {
  /// The id that the device chose, so that its key packages can name it; nil: the server makes one.
  public var device: DeviceID?
  /// Its MLS signature key.
  public var signatureKey: [UInt8]
  public var platform: DevicePlatform
  /// For one use each.
  public var keyPackages: [[UInt8]]
  /// For when there is no other.
  public var lastResort: [UInt8]?
  /// A device.
  public init(
    device: DeviceID? = nil, signatureKey: [UInt8], platform: DevicePlatform, keyPackages: [[UInt8]],
    lastResort: [UInt8]?
  ) {
    self.device = device
    self.signatureKey = signatureKey
    self.platform = platform
    self.keyPackages = keyPackages
    self.lastResort = lastResort
  }
}

/// A leaf that a commit adds.
public struct NewLeaf: Hashable, Sendable {
  public var device: DeviceID
  public var index: UInt32
  /// A device at a position of the tree.
  public init(device: DeviceID, index: UInt32) {
    self.device = device
    self.index = index
  }
}

/// What a commit does to a group, as its sender declares it; the members verify it against the commit.
public struct MemberDelta: Hashable, Sendable {
  public var addedUsers: [UserID] = []
  public var removedUsers: [UserID] = []
  public var addedLeaves: [NewLeaf] = []
  public var removedLeaves: [DeviceID] = []
  /// No change.
  public init() {}
}

/// A commit with all that goes with it.
public struct CommitBundle: Hashable, Sendable {
  /// The epoch that it ends.
  public var epoch: Epoch
  /// An MLSMessage.
  public var commit: [UInt8]
  /// An MLSMessage for the added devices.
  public var welcome: [UInt8]?
  /// An MLSMessage of the new epoch, for those who join from outside.
  public var groupInfo: [UInt8]
  /// The new epoch's public tree, where it is not in `groupInfo`.
  public var ratchetTree: [UInt8]?
  /// The name sealed for the new epoch; nil leaves the old one.
  public var sealedName: [UInt8]?
  public var delta: MemberDelta
  /// The sender knows the proposals of its epoch up to this position of the log, and has taken in those it wants; at most the
  /// group's head. Nil says that it knows of none, and is refused while there are some, except of who joins from outside.
  public var proposalsUpTo: LogSequence?
  /// A bundle.
  public init(
    epoch: Epoch, commit: [UInt8], welcome: [UInt8]? = nil, groupInfo: [UInt8], ratchetTree: [UInt8]? = nil,
    sealedName: [UInt8]? = nil, delta: MemberDelta = MemberDelta(), proposalsUpTo: LogSequence? = nil
  ) {
    self.epoch = epoch
    self.commit = commit
    self.welcome = welcome
    self.groupInfo = groupInfo
    self.ratchetTree = ratchetTree
    self.sealedName = sealedName
    self.delta = delta
    self.proposalsUpTo = proposalsUpTo
  }
}

/// A group's beginning: epoch 0 with the founder's leaf alone, and the commit that adds the others.
public struct GroupFounding: Hashable, Sendable {
  public var mlsID: MLSGroupID
  public var kind: Kind
  /// Whom a new group is for.
  public enum Kind: Hashable, Sendable {
    /// A chat with one other user, or with oneself.
    case direct(UserID)
    case group
  }
  /// Ends epoch 0; nil for a founder alone.
  public var commit: CommitBundle?
  /// Of epoch 0; read only where there is no commit.
  public var groupInfo: [UInt8]
  /// A beginning.
  public init(mlsID: MLSGroupID, kind: Kind, commit: CommitBundle?, groupInfo: [UInt8] = []) {
    self.mlsID = mlsID
    self.kind = kind
    self.commit = commit
    self.groupInfo = groupInfo
  }
}

/// An application message or a proposal.
public struct OutgoingMessage: Hashable, Sendable {
  public var epoch: Epoch
  public var id: ClientMessageID
  /// A PrivateMessage.
  public var blob: [UInt8]
  /// Whether it may wake devices, and counts as unread.
  public var wakes: Bool
  /// Whether it goes to who is connected, and is kept nowhere.
  public var isEphemeral: Bool
  /// A message.
  public init(
    epoch: Epoch, id: ClientMessageID, blob: [UInt8], wakes: Bool = true, isEphemeral: Bool = false
  ) {
    self.epoch = epoch
    self.id = id
    self.blob = blob
    self.wakes = wakes
    self.isEphemeral = isEphemeral
  }
}

/// Which rows of a queue are done with.
public enum Acknowledgement: Hashable, Sendable {
  /// All up to this one.
  case upTo(QueueID)
  /// These.
  case listed([QueueID])
}

/// What a connection can listen to, as a client names it.
public enum TopicName: Hashable, Sendable {
  /// `messaging:device:<mdv>`: its own device's queue, which the connection then consumes alone.
  case device(DeviceID)
  /// `messaging:conv:<rfcGroupId>`.
  case conversation(MLSGroupID)
}
