import PalbeUnits

/// Groups: their beginning, what members see of them, roles, leaving.
extension Backend {
  /// The pair of a direct chat, the same from both sides: made here, so that nobody takes the place of others.
  private func directKey(_ one: UserID, _ other: UserID) -> [UInt8] {
    min(one, other).bytes + max(one, other).bytes
  }

  mutating func createGroup(
    _ founding: GroupFounding, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    guard (16...64).contains(founding.mlsID.bytes.count) else { throw .invalidRequest(.range) }
    var key: [UInt8]?
    let added = founding.commit?.delta.addedUsers ?? []
    if case .direct(let peer) = founding.kind {
      guard try store.user(peer) != nil else { throw .userNotFound }
      let pair = directKey(device.user, peer)
      // Both may have begun at once: the first one's group is the chat of both (2.9c).
      if let winner = try store.group(directKey: pair) { return .founded(founded(winner, isExisting: true)) }
      guard added == (peer == device.user ? [] : [peer]) else {
        throw .invalidRequest(.because(.addedNotPeer))
      }
      key = pair
    }
    guard !added.contains(device.user) else { throw .invalidRequest(.because(.addedFounder)) }
    if let known = try store.group(mlsID: founding.mlsID) {
      // A repetition whose answer was lost.
      guard known.createdBy == device.user, try store.member(device.user, of: known.id)?.isCurrent == true
      else {
        throw .invalidRequest(.because(.groupTaken))
      }
      return .founded(founded(known, isExisting: true))
    }
    var group = GroupRow(
      id: GroupID(at: now.wall, using: &random), mlsID: founding.mlsID, kind: key == nil ? .group : .direct,
      directKey: key, epoch: 0, generation: 0, headSequence: 0, countedMessages: 0, lastProposal: 0,
      createdBy: device.user, createdAt: now.wall)
    try store.insert(group, GroupStateRow(groupInfo: []))
    try join(device.user, .owner, group)
    try found(&group, founding, by: device, for: .founding, at: now)
    return .founded(founded(group, isExisting: false))
  }

  /// Epoch 0 with one leaf, and the first commit.
  private mutating func found(
    _ group: inout GroupRow, _ founding: GroupFounding, by device: DeviceRow, for purpose: CommitPurpose,
    at now: ServerTime
  ) throws(BackendFailure) {
    try store.put(LeafRow(device: device.id, user: device.user, index: 0, addedEpoch: 0), of: group.id)
    if let bundle = founding.commit {
      _ = try apply(bundle, to: &group, by: device, role: .owner, for: purpose, at: now)
    } else {
      guard founding.groupInfo.count <= limits.handshakeByteCount else {
        throw .messageTooLarge(limit: limits.handshakeByteCount)
      }
      try MessageHeader.checkGroupInfo(founding.groupInfo, of: group.mlsID, epoch: 0)
      // There is nobody else to add, or a commit would be missing.
      let alone = CommitBundle(epoch: 0, commit: [], groupInfo: [])
      _ = try check(alone, group, device, .owner, purpose, now)
      try store.setState(GroupStateRow(groupInfo: founding.groupInfo), of: group.id)
      try store.update(group)
    }
  }

  private func founded(_ group: GroupRow, isExisting: Bool) -> FoundedGroup {
    FoundedGroup(
      id: group.id, mlsID: group.mlsID, epoch: group.epoch, headSequence: group.headSequence,
      isExisting: isExisting)
  }

  mutating func reset(
    _ id: GroupID, generation: Int64, _ founding: GroupFounding, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    var (group, member) = try membership(of: device, in: id)
    guard member.role >= .admin || group.kind == .direct else { throw .forbidden }
    guard generation == group.generation else { throw .staleEpoch(head: group.epoch) }
    guard (16...64).contains(founding.mlsID.bytes.count) else { throw .invalidRequest(.range) }
    guard founding.commit?.delta.addedUsers.isEmpty ?? true else {
      throw .invalidRequest(.because(.addedInReset))
    }
    guard try store.group(mlsID: founding.mlsID) == nil else {
      throw .invalidRequest(.because(.groupTaken))
    }
    let queueID = try store.nextQueueID(at: now.wall)
    let readers = try store.enqueue(
      .control(.groupReset(id, generation: generation + 1)), id: queueID, wakes: false, toLeavesOf: id,
      except: device.id)
    effects.append(.queued(readers, queueID, nil))
    try store.removeAllLeaves(of: id)
    group.mlsID = founding.mlsID
    group.generation += 1
    group.epoch = 0
    group.lastProposal = 0
    try store.update(group)
    // The name was sealed for an epoch that nobody new can reach.
    try store.setState(GroupStateRow(groupInfo: []), of: id)
    try found(&group, founding, by: device, for: .reset, at: now)
    effects.append(.conversationReset(id))
    return .founded(founded(group, isExisting: false))
  }

  // MARK: What members see

  mutating func groups(
    of device: DeviceRow, after: GroupID?, limit: Int
  ) throws(BackendFailure) -> BackendResponse {
    let count = try pageCount(limit)
    let rows = try store.groups(of: device.user, after: after, limit: count + 1)
    return .groups(rows.prefix(count).map { summary($0.0, $0.1) }, hasMore: rows.count > count)
  }

  private func summary(_ group: GroupRow, _ member: MemberRow) -> GroupSummary {
    GroupSummary(
      id: group.id, mlsID: group.mlsID, kind: group.kind, epoch: group.epoch, generation: group.generation,
      headSequence: group.headSequence, role: member.role)
  }

  mutating func view(of id: GroupID, by device: DeviceRow) throws(BackendFailure) -> BackendResponse {
    let (group, member) = try membership(of: device, in: id)
    let members = try store.members(of: id)
    let leaves = try store.leaves(of: id)
    let present = Set(leaves.map(\.device))
    var missing: [DeviceID] = []
    for member in members {
      missing += try store.devices(of: member.user)
        .filter { $0.revokedAt == nil && !present.contains($0.id) }.map(\.id)
    }
    let state = try store.state(of: id)
    return .group(
      GroupView(
        summary: summary(group, member),
        members: members.map { MemberView(user: $0.user, role: $0.role, joinedSequence: $0.joinedSequence) },
        leaves: leaves.map { LeafView(device: $0.device, user: $0.user, index: $0.index, isLive: $0.isLive) },
        missingDevices: missing, groupInfo: state.groupInfo, ratchetTree: state.ratchetTree,
        sealedName: state.sealedName, nameEpoch: state.nameEpoch))
  }

  mutating func commits(
    of id: GroupID, from epoch: Epoch, limit: Int, by device: DeviceRow
  ) throws(BackendFailure) -> BackendResponse {
    let (group, member) = try membership(of: device, in: id)
    let rows = try store.commits(
      of: id, generation: group.generation, from: epoch, limit: try pageCount(limit))
    // What was before the user came is not theirs.
    return .commits(rows.filter { $0.sequence >= member.joinedSequence })
  }

  // MARK: Roles and leaving

  mutating func setRole(
    _ role: ChatRole, of user: UserID, in id: GroupID, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    let (group, caller) = try membership(of: device, in: id)
    guard group.kind == .group else { throw .chatIsDirect }
    guard caller.role == .owner else { throw .forbidden }
    guard let member = try store.member(user, of: id), member.isCurrent else { throw .userNotFound }
    guard member.role != role else { return .done }
    if member.role == .owner {
      // Somebody must stay who can give roles.
      guard try store.members(of: id).filter({ $0.role == .owner }).count > 1 else { throw .forbidden }
    }
    try give(role, to: member, in: id, at: now)
    return .done
  }

  private mutating func give(
    _ role: ChatRole, to member: MemberRow, in group: GroupID, at now: ServerTime
  ) throws(BackendFailure) {
    var member = member
    member.role = role
    try store.put(member, of: group)
    try tell(.roleChanged(group, member.user, role), to: group, at: now)
  }

  private mutating func tell(
    _ control: Control, to group: GroupID, at now: ServerTime
  ) throws(BackendFailure) {
    let id = try store.nextQueueID(at: now.wall)
    let readers = try store.enqueue(
      .control(control), id: id, wakes: false, toLeavesOf: group, except: nil)
    effects.append(.queued(readers, id, nil))
  }

  mutating func leave(
    _ id: GroupID, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    var (group, member) = try membership(of: device, in: id)
    member.leftSequence = group.headSequence
    try store.put(member, of: id)
    // Before the leaves are dead: the user's other devices hear of it too.
    try tell(.memberLeft(id, device.user), to: id, at: now)
    for var leaf in try store.leaves(of: id) where leaf.user == device.user {
      leaf.isLive = false
      try store.put(leaf, of: id)
    }
    if group.directKey != nil {
      // The pair can begin again.
      group.directKey = nil
      try store.update(group)
    }
    let rest = try store.members(of: id)
    if member.role == .owner, !rest.contains(where: { $0.role == .owner }) {
      // The oldest admin, else the oldest member (2.9e).
      let heir = rest.min {
        ($1.role.rawValue, $0.joinedSequence, $0.user) < ($0.role.rawValue, $1.joinedSequence, $1.user)
      }
      if let heir { try give(.owner, to: heir, in: id, at: now) }
    }
    effects.append(.userLeft(id, device.user))
    return .done
  }
}
