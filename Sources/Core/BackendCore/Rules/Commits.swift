import PalbeMLSMessages
import PalbeUnits

/// A commit: who may send it, whether its declared change is complete, and what it does.
///
/// The server cannot read a commit. It orders them (one per epoch, the first wins), checks the declared change against
/// its own tables, and the members check the declared change against the commit (requirements, section 3, 8 and 9).
extension Backend {
  /// What a commit is part of.
  enum CommitPurpose {
    case ordinary
    /// A new group: the founder's devices are added like everybody's.
    case founding
    /// A group founded anew: all members' devices are added.
    case reset
  }

  mutating func commit(
    _ bundle: CommitBundle, to id: GroupID, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    var (group, member) = try membership(of: device, in: id)
    let sequence = try apply(bundle, to: &group, by: device, role: member.role, for: .ordinary, at: now)
    return .committed(sequence: sequence, epoch: group.epoch)
  }

  /// Carries a commit out; the group's row is written.
  mutating func apply(
    _ bundle: CommitBundle, to group: inout GroupRow, by device: DeviceRow, role: ChatRole,
    for purpose: CommitPurpose, at now: ServerTime
  ) throws(BackendFailure) -> LogSequence {
    try checkSizes(bundle)
    guard bundle.epoch == group.epoch else { throw .staleEpoch(head: group.epoch) }
    try MessageHeader.checkCommit(bundle.commit, of: group.mlsID, epoch: group.epoch)
    try MessageHeader.checkGroupInfo(bundle.groupInfo, of: group.mlsID, epoch: group.epoch + 1)
    let change = try check(bundle, group, device, role, purpose, now)

    group.headSequence += 1
    let sequence = group.headSequence
    let row = LogView(
      sequence: sequence, epoch: group.epoch, generation: group.generation, kind: .commit, sender: device.id,
      clientID: nil, blob: bundle.commit, at: now.wall)
    guard try store.append(row, countedMessages: group.countedMessages, to: group.id) else {
      throw .staleEpoch(head: group.epoch)
    }
    // Who is removed gets the commit too: it is how they learn.
    let queueID = try store.nextQueueID(at: now.wall)
    let readers = try store.enqueue(
      .message(group.id, sequence), id: queueID, wakes: false, toLeavesOf: group.id, except: device.id)
    effects.append(.queued(readers, queueID, nil))

    group.epoch += 1
    group.lastProposal = 0
    try apply(change, bundle, group, sequence)
    try store.update(group)
    try welcome(change.joining, bundle.welcome, to: group, at: now)
    return sequence
  }

  private func checkSizes(_ bundle: CommitBundle) throws(BackendFailure) {
    let parts = [bundle.commit, bundle.welcome ?? [], bundle.groupInfo, bundle.ratchetTree ?? []]
    guard parts.allSatisfy({ $0.count <= limits.handshakeByteCount }) else {
      throw .messageTooLarge(limit: limits.handshakeByteCount)
    }
    guard bundle.sealedName?.count ?? 0 <= limits.sealedNameByteCount else {
      throw .messageTooLarge(limit: limits.sealedNameByteCount)
    }
  }

  private mutating func welcome(
    _ devices: [DeviceID], _ blob: [UInt8]?, to group: GroupRow, at now: ServerTime
  ) throws(BackendFailure) {
    guard let blob, !devices.isEmpty else { return }
    let welcome = try store.insertWelcome(blob, of: group.id, readers: devices.count)
    let id = try store.nextQueueID(at: now.wall)
    try store.enqueue(.welcome(group.id, welcome), id: id, wakes: true, to: devices)
    effects.append(.queued(devices, id, WakeReason(group: group.id, kind: .welcome)))
  }

  /// Writes members and leaves of a change that was checked.
  private mutating func apply(
    _ change: CheckedChange, _ bundle: CommitBundle, _ group: GroupRow, _ sequence: LogSequence
  ) throws(BackendFailure) {
    for device in bundle.delta.removedLeaves { try store.removeLeaf(device, of: group.id) }
    for leaf in change.added {
      var leaf = leaf
      leaf.addedEpoch = group.epoch
      try store.put(leaf, of: group.id)
    }
    for var member in change.removedMembers {
      member.leftSequence = sequence
      try store.put(member, of: group.id)
      effects.append(.userLeft(group.id, member.user))
    }
    for user in bundle.delta.addedUsers {
      try join(user, .member, group)
    }
    var state = try store.state(of: group.id)
    state.groupInfo = bundle.groupInfo
    state.ratchetTree = bundle.ratchetTree
    if let name = bundle.sealedName {
      state.sealedName = name
      state.nameEpoch = group.epoch
    }
    try store.setState(state, of: group.id)
  }

  /// Makes a user a member; one who was there before keeps the scope.
  mutating func join(_ user: UserID, _ role: ChatRole, _ group: GroupRow) throws(BackendFailure) {
    let before = try store.member(user, of: group.id)
    try store.put(
      MemberRow(
        user: user, role: role, joinedSequence: group.headSequence, scope: before?.scope ?? .all,
        readSequence: group.headSequence, readCounted: group.countedMessages),
      of: group.id)
  }
}

/// A declared change that agrees with the tables.
struct CheckedChange {
  var added: [LeafRow] = []
  var removedMembers: [MemberRow] = []
  /// Who gets the welcome.
  var joining: [DeviceID] = []
}
