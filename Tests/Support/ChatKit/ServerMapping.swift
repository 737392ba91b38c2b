import PalbeBackendCore
import PalbeChatCore
import PalbeUnits

/// The engine's questions as the server's core takes them, and its answers back.
enum ServerMapping {
  static func request(_ request: ServerRequest, _ connection: ConnectionID?) -> BackendRequest? {
    switch request {
    case .enrol(let enrolment):
      return .enrolDevice(
        DeviceEnrolment(
          device: enrolment.device, signatureKey: enrolment.signatureKey, platform: .linux,
          keyPackages: enrolment.keyPackages, lastResort: enrolment.lastResort))
    case .keyPackageCount: return .keyPackageCount
    case .publishKeyPackages(let packages, let last): return .publishKeyPackages(packages, lastResort: last)
    case .claimKeyPackages(let user): return .claimKeyPackages(of: user)
    case .createGroup(let founding): return .createGroup(self.founding(founding))
    case .groups(let after): return .groups(after: after, limit: 100)
    case .group(let group): return .group(group)
    case .commit(let group, let commit): return .commit(group, bundle(commit))
    case .commits(let group, let epoch): return .commits(group, from: epoch, limit: 100)
    case .send(let group, let message):
      return .send(
        group,
        OutgoingMessage(epoch: message.epoch, id: message.id, blob: message.blob, wakes: message.wakes))
    case .setRole(let group, let user, let role):
      return .setRole(group, user, PalbeBackendCore.ChatRole(rawValue: role.rawValue) ?? .member)
    case .leave(let group): return .leave(group)
    case .reset(let group, let generation, let founding):
      return .reset(group, generation: generation, self.founding(founding))
    case .fetchQueue(let after, let limit):
      return .fetchQueue(after: QueueID(after), limit: limit, connection: nil)
    case .acknowledge(let id): return .acknowledge(.upTo(QueueID(id)), connection: nil)
    case .setNotifyScope(let group, let scope):
      return .setNotifyScope(group, PalbeBackendCore.NotifyScope(rawValue: scope.rawValue) ?? .all)
    case .notifyScope(let group): return .notifyScope(group)
    case .unread(let group): return .unread(group)
    case .markRead(let group, let seq): return .markRead(group, seq)
    case .subscribeDevice(let device): return connection.map { .subscribe($0, .device(device)) }
    case .subscribe(let group): return connection.map { .subscribe($0, .conversation(MLSGroupID(group))) }
    case .unsubscribe(let group): return connection.map { .unsubscribe($0, .conversation(MLSGroupID(group))) }
    case .setTyping(let group, let isOn): return connection.map { .setTyping($0, group, isOn) }
    }
  }

  private static func founding(_ founding: ServerFounding) -> GroupFounding {
    GroupFounding(
      mlsID: MLSGroupID(founding.groupID), kind: founding.peer.map { .direct($0) } ?? .group,
      commit: founding.commit.map(bundle), groupInfo: founding.groupInfo)
  }

  private static func bundle(_ commit: ServerCommit) -> CommitBundle {
    var delta = MemberDelta()
    delta.addedUsers = commit.delta.addedUsers
    delta.removedUsers = commit.delta.removedUsers
    delta.addedLeaves = commit.delta.addedLeaves.map { NewLeaf(device: $0.device, index: $0.index) }
    delta.removedLeaves = commit.delta.removedLeaves
    return CommitBundle(
      epoch: commit.epoch, commit: commit.commit, welcome: commit.welcome, groupInfo: commit.groupInfo,
      sealedName: commit.sealedName, delta: delta, proposalsUpTo: commit.proposalsUpTo)
  }

  // MARK: Answers

  static func answer(_ response: BackendResponse) -> ServerAnswer {
    switch response {
    case .done, .devices, .commsPrefs, .blob: return .done
    case .acknowledged: return .done
    case .enrolled(let device): return .enrolled(device)
    case .keyPackageCount(let count): return .keyPackageCount(count.count, hasLastResort: count.hasLastResort)
    case .keyPackages(let packages, let missing):
      return .keyPackages(
        packages.map { ServerKeyPackage(device: $0.device, blob: $0.blob) }, missing: missing)
    case .founded(let group):
      return .founded(
        ServerFounded(
          id: group.id, groupID: group.mlsID.bytes, epoch: group.epoch, headSeq: group.headSequence))
    case .groups(let groups, let hasMore): return .groups(groups.map(summary), hasMore: hasMore)
    case .group(let view):
      return .group(
        ServerGroupView(
          group: summary(view.summary), members: view.members.map(\.user),
          leaves: view.leaves.map { ServerLeafView(device: $0.device, user: $0.user, isLive: $0.isLive) },
          missingDevices: view.missingDevices, groupInfo: view.groupInfo, sealedName: view.sealedName,
          nameEpoch: view.nameEpoch))
    case .committed(let seq, let epoch): return .committed(seq: seq, epoch: epoch)
    case .commits(let rows): return .commits(rows.map(row))
    case .accepted(let seq, let epoch, _): return .accepted(seq: seq, epoch: epoch)
    case .queue(let rows, let hasMore): return .queue(rows.map(row), hasMore: hasMore)
    case .notifyScope(let scope):
      return .notifyScope(PalbeChatCore.NotifyScope(rawValue: scope.rawValue) ?? .all)
    case .unread(let unread):
      return .unread(
        ServerUnread(
          groupMaxSeq: unread.groupMaxSequence, lastReadSeq: unread.lastReadSequence,
          deliveredSeq: unread.deliveredSequence, unreadCount: unread.unreadCount))
    case .subscribed(let group, let online, let typing):
      return .subscribed(group, online: online, typing: typing)
    }
  }

  private static func summary(_ group: GroupSummary) -> ServerGroup {
    ServerGroup(
      id: group.id, groupID: group.mlsID.bytes, isDirect: group.kind == .direct, epoch: group.epoch,
      generation: group.generation, headSeq: group.headSequence)
  }

  private static func row(_ row: LogView) -> ServerLogRow {
    let kind: ServerLogRow.Kind =
      switch row.kind {
      case .application: .application
      case .proposal: .proposal
      case .commit: .commit
      }
    return ServerLogRow(
      seq: row.sequence, epoch: row.epoch, generation: row.generation, kind: kind, sender: row.sender,
      blob: row.blob, at: row.at)
  }

  private static func row(_ row: PalbeBackendCore.QueueRow) -> PalbeChatCore.QueueRow {
    let content: PalbeChatCore.QueueRow.Content =
      switch row.content {
      case .message(let group, let log): .message(group, self.row(log))
      case .welcome(let group, let blob): .welcome(group, blob)
      case .control(.devicesChanged(let user)): .devicesChanged(user)
      case .control(.memberLeft(let group, let user)): .memberLeft(group, user)
      case .control(.roleChanged(let group, let user, let role)):
        .roleChanged(group, user, PalbeChatCore.ChatRole(rawValue: role.rawValue) ?? .member)
      case .control(.groupReset(let group, let generation)): .groupReset(group, generation: generation)
      case .control(.historyGap(let group)): .historyGap(group)
      }
    return PalbeChatCore.QueueRow(id: row.id.rawValue, content: content)
  }

  static func refusal(_ failure: BackendFailure) -> ServerRefusal {
    switch failure {
    case .notSignedIn, .sessionExpired: .notSignedIn
    case .deviceNotEnrolled: .deviceNotEnrolled
    case .deviceRevoked: .deviceRevoked
    case .staleEpoch(let head): .staleEpoch(head: head)
    case .commitIncomplete(let devices): .commitIncomplete(devices)
    case .noKeyPackage(let user): .noKeyPackage(user)
    case .notAMember: .notAMember
    case .forbidden: .forbidden
    case .userNotFound: .userNotFound
    case .chatNotFound: .chatNotFound
    case .rateLimited(let wait): .rateLimited(retryAfter: wait)
    case .unavailable: .unavailable
    case .superseded: .superseded
    case .idempotencyMismatch: .idempotencyMismatch
    default: .other(failure.code)
    }
  }
}
