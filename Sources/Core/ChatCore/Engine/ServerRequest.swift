import PalbeUnits

/// One question to the delivery server, as the engine asks it: the shell carries it over HTTP or the socket.
///
/// Whether it may be repeated is the engine's business; the shell tries once and tells what came of it.
package enum ServerRequest: Hashable, Sendable {
  // The device.
  case enrol(ServerEnrolment)
  case keyPackageCount
  case publishKeyPackages([[UInt8]], lastResort: [UInt8]?)
  case claimKeyPackages(of: UserID)
  // Groups.
  case createGroup(ServerFounding)
  case groups(after: GroupID?)
  case group(GroupID)
  case commit(GroupID, ServerCommit)
  case commits(GroupID, from: UInt64)
  case send(GroupID, ServerMessage)
  case setRole(GroupID, UserID, ChatRole)
  case leave(GroupID)
  /// Founds the group anew; `generation` is the one that ends.
  case reset(GroupID, generation: Int64, ServerFounding)
  // The device's queue.
  case fetchQueue(after: Int64, limit: Int)
  case acknowledge(upTo: Int64)
  // Reading.
  case setNotifyScope(GroupID, NotifyScope)
  case notifyScope(GroupID)
  case unread(GroupID)
  case markRead(GroupID, Int64)
  // The socket.
  case subscribeDevice(DeviceID)
  case subscribe(groupID: [UInt8])
  case unsubscribe(groupID: [UInt8])
  case setTyping(GroupID, Bool)
}

/// A device that is new.
package struct ServerEnrolment: Hashable, Sendable {
  package var device: DeviceID
  package var signatureKey: [UInt8]
  package var keyPackages: [[UInt8]]
  package var lastResort: [UInt8]?

  package init(device: DeviceID, signatureKey: [UInt8], keyPackages: [[UInt8]], lastResort: [UInt8]?) {
    self.device = device
    self.signatureKey = signatureKey
    self.keyPackages = keyPackages
    self.lastResort = lastResort
  }
}

/// A leaf that a commit adds.
package struct ServerLeaf: Hashable, Sendable {
  package var device: DeviceID
  package var index: UInt32

  package init(device: DeviceID, index: UInt32) {
    self.device = device
    self.index = index
  }
}

/// What a commit does, as the server is told; the members check the commit itself.
package struct ServerDelta: Hashable, Sendable {
  package var addedUsers: [UserID] = []
  package var removedUsers: [UserID] = []
  package var addedLeaves: [ServerLeaf] = []
  package var removedLeaves: [DeviceID] = []
}

/// A commit with all that goes with it.
package struct ServerCommit: Hashable, Sendable {
  /// The epoch that it ends.
  package var epoch: UInt64
  package var commit: [UInt8]
  package var welcome: [UInt8]?
  package var groupInfo: [UInt8]
  package var sealedName: [UInt8]?
  package var delta = ServerDelta()
  /// The log's position up to which proposals of others were seen: they are left out. Without it the server refuses a commit
  /// while there are some.
  package var proposalsUpTo: Int64?
}

/// A group's beginning.
package struct ServerFounding: Hashable, Sendable {
  package var groupID: [UInt8]
  /// The other user of a direct chat; nil for a group.
  package var peer: UserID?
  /// Nil for a founder alone.
  package var commit: ServerCommit?
  /// Of epoch 0; read only where there is no commit.
  package var groupInfo: [UInt8]

  package init(groupID: [UInt8], peer: UserID?, commit: ServerCommit?, groupInfo: [UInt8]) {
    self.groupID = groupID
    self.peer = peer
    self.commit = commit
    self.groupInfo = groupInfo
  }
}

/// An application message.
package struct ServerMessage: Hashable, Sendable {
  package var epoch: UInt64
  package var id: ClientMessageID
  package var blob: [UInt8]
  /// Whether it may wake devices, and counts as unread at the server.
  package var wakes: Bool

  package init(epoch: UInt64, id: ClientMessageID, blob: [UInt8], wakes: Bool) {
    self.epoch = epoch
    self.id = id
    self.blob = blob
    self.wakes = wakes
  }
}

/// What a request is answered with.
package enum ServerAnswer: Hashable, Sendable {
  case done
  case enrolled(DeviceID)
  case keyPackageCount(Int, hasLastResort: Bool)
  case keyPackages([ServerKeyPackage], missing: [DeviceID])
  case founded(ServerFounded)
  case groups([ServerGroup], hasMore: Bool)
  case group(ServerGroupView)
  case committed(seq: Int64, epoch: UInt64)
  case commits([ServerLogRow])
  case accepted(seq: Int64, epoch: UInt64)
  case queue([QueueRow], hasMore: Bool)
  case notifyScope(NotifyScope)
  case unread(ServerUnread)
  case subscribed(GroupID?, online: [UserID], typing: [DeviceID])
}

/// A key package of one device.
package struct ServerKeyPackage: Hashable, Sendable {
  package var device: DeviceID
  package var blob: [UInt8]

  package init(device: DeviceID, blob: [UInt8]) {
    self.device = device
    self.blob = blob
  }
}

/// A group that was founded now or before.
package struct ServerFounded: Hashable, Sendable {
  package var id: GroupID
  package var groupID: [UInt8]
  package var epoch: UInt64
  package var headSeq: Int64

  package init(id: GroupID, groupID: [UInt8], epoch: UInt64, headSeq: Int64) {
    self.id = id
    self.groupID = groupID
    self.epoch = epoch
    self.headSeq = headSeq
  }
}

/// A group in the list of the user's.
package struct ServerGroup: Hashable, Sendable {
  package var id: GroupID
  package var groupID: [UInt8]
  package var isDirect: Bool
  package var epoch: UInt64
  package var generation: Int64
  /// The newest position of its log; 0: not told.
  package var headSeq: Int64

  package init(
    id: GroupID, groupID: [UInt8], isDirect: Bool, epoch: UInt64, generation: Int64, headSeq: Int64 = 0
  ) {
    self.id = id
    self.groupID = groupID
    self.isDirect = isDirect
    self.epoch = epoch
    self.generation = generation
    self.headSeq = headSeq
  }
}

/// A group for its members. The server says so; what counts is the authenticated tree.
package struct ServerGroupView: Hashable, Sendable {
  package var group: ServerGroup
  package var members: [UserID]
  package var leaves: [ServerLeafView]
  /// Devices of members that have no leaf yet.
  package var missingDevices: [DeviceID]
  package var groupInfo: [UInt8]
  package var sealedName: [UInt8]?
  package var nameEpoch: UInt64?

  package init(
    group: ServerGroup, members: [UserID], leaves: [ServerLeafView], missingDevices: [DeviceID],
    groupInfo: [UInt8], sealedName: [UInt8]?, nameEpoch: UInt64?
  ) {
    self.group = group
    self.members = members
    self.leaves = leaves
    self.missingDevices = missingDevices
    self.groupInfo = groupInfo
    self.sealedName = sealedName
    self.nameEpoch = nameEpoch
  }
}

/// A device of a group.
package struct ServerLeafView: Hashable, Sendable {
  package var device: DeviceID
  package var user: UserID
  /// False: its user left or revoked it, and the next commit must remove it.
  package var isLive: Bool

  package init(device: DeviceID, user: UserID, isLive: Bool) {
    self.device = device
    self.user = user
    self.isLive = isLive
  }
}

/// A row of a group's log.
package struct ServerLogRow: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case application
    case proposal
    case commit
  }
  package var seq: Int64
  package var epoch: UInt64
  package var generation: Int64
  package var kind: Kind
  package var sender: DeviceID
  package var blob: [UInt8]
  package var at: WallTime

  package init(
    seq: Int64, epoch: UInt64, generation: Int64, kind: Kind, sender: DeviceID, blob: [UInt8], at: WallTime
  ) {
    self.seq = seq
    self.epoch = epoch
    self.generation = generation
    self.kind = kind
    self.sender = sender
    self.blob = blob
    self.at = at
  }
}

/// A row of this device's queue.
package struct QueueRow: Hashable, Sendable {
  package enum Content: Hashable, Sendable {
    case message(GroupID, ServerLogRow)
    case welcome(GroupID, [UInt8])
    case devicesChanged(UserID)
    case memberLeft(GroupID, UserID)
    case roleChanged(GroupID, UserID, ChatRole)
    case groupReset(GroupID, generation: Int64)
    case historyGap(GroupID)
    /// A row that the shell could not read: it is acknowledged, and nothing else.
    case malformed
  }
  package var id: Int64
  package var content: Content

  package init(id: Int64, content: Content) {
    self.id = id
    self.content = content
  }
}

/// Why a request came to nothing.
package enum ServerRefusal: Error, Hashable, Sendable {
  /// Nobody knows whether it arrived: no connection, a time-out, a lost answer.
  case unreachable
  case notSignedIn
  case deviceNotEnrolled
  case deviceRevoked
  case staleEpoch(head: UInt64)
  case commitIncomplete([DeviceID])
  case noKeyPackage(UserID)
  case notAMember
  case forbidden
  case userNotFound
  case chatNotFound
  case rateLimited(retryAfter: TimeDelta)
  case unavailable
  case superseded
  case idempotencyMismatch
  /// Any other, by its code in the server's table.
  case other(String)

  /// The code of requirements 2.2.
  package var code: String {
    switch self {
    case .unreachable, .unavailable: "unavailable"
    case .notSignedIn: "not_signed_in"
    case .deviceNotEnrolled: "device_not_enrolled"
    case .deviceRevoked: "device_revoked"
    case .staleEpoch: "stale_epoch"
    case .commitIncomplete: "commit_incomplete"
    case .noKeyPackage: "no_key_package"
    case .notAMember: "not_a_member"
    case .forbidden: "forbidden"
    case .userNotFound: "user_not_found"
    case .chatNotFound: "chat_not_found"
    case .rateLimited: "rate_limited"
    case .superseded: "superseded"
    case .idempotencyMismatch: "idempotency_mismatch"
    case .other(let code): code
    }
  }

  /// Whether the server knows this user in the group no more.
  var saysOut: Bool { self == .notAMember || self == .chatNotFound }

  /// Whether the same request may do better later.
  var isPassing: Bool {
    switch self {
    case .unreachable, .unavailable, .rateLimited, .notSignedIn: true
    default: false
    }
  }
}
