import PalbeMLSMessages
import PalbeUnits

/// Whether the change that a commit declares fits the group and its sender.
extension Backend {
  mutating func check(
    _ bundle: CommitBundle, _ group: GroupRow, _ device: DeviceRow, _ role: ChatRole,
    _ purpose: CommitPurpose, _ now: ServerTime
  ) throws(BackendFailure) -> CheckedChange {
    let delta = bundle.delta
    try checkProposals(bundle, group, isExternal: delta.addedLeaves.contains { $0.device == device.id })
    let counts = [
      delta.addedUsers.count, delta.removedUsers.count, delta.addedLeaves.count, delta.removedLeaves.count,
    ]
    guard counts.allSatisfy({ $0 <= limits.devicesPerGroup }) else {
      throw .groupFull(limit: limits.devicesPerGroup)
    }
    let leaves = Dictionary(uniqueKeysWithValues: try store.leaves(of: group.id).map { ($0.device, $0) })
    let removed = Set(delta.removedLeaves)
    let added = Set(delta.addedLeaves.map(\.device))
    guard removed.count == delta.removedLeaves.count, added.count == delta.addedLeaves.count,
      Set(delta.addedUsers).count == delta.addedUsers.count,
      Set(delta.removedUsers).count == delta.removedUsers.count,
      Set(delta.addedUsers).isDisjoint(with: delta.removedUsers)
    else { throw .invalidRequest(.because(.repeatedInDelta)) }
    guard removed.allSatisfy({ leaves[$0] != nil }) else {
      throw .invalidRequest(.because(.removedWithoutLeaf))
    }

    let isExternal = added.contains(device.id)
    if isExternal {
      try checkExternal(delta, device.id, leaves[device.id])
    } else {
      guard leaves[device.id]?.isLive == true else { throw .forbidden }
      guard !removed.contains(device.id) else { throw .invalidRequest(.because(.ownLeafRemoved)) }
      // Leaves of those who left or were revoked go with the next commit; one from outside cannot do it.
      let stale = leaves.values.filter { !$0.isLive && !removed.contains($0.device) }.map(\.device)
      guard stale.isEmpty else { throw .commitIncomplete(devices: stale.sorted()) }
    }

    var change = CheckedChange()
    if purpose == .ordinary, group.kind == .direct, !(delta.addedUsers + delta.removedUsers).isEmpty {
      throw .chatIsDirect
    }
    change.removedMembers = try checkRemovals(delta, group, device, role, leaves, removed)
    change.added = try checkAdditions(delta, group, leaves, removed)
    guard leaves.count - removed.count + added.count <= limits.devicesPerGroup else {
      throw .groupFull(limit: limits.devicesPerGroup)
    }
    try checkComplete(delta, group, device, purpose, leaves, added, now)
    change.joining = delta.addedLeaves.map(\.device).filter { $0 != device.id }
    guard change.joining.isEmpty == (bundle.welcome == nil) else {
      throw .invalidRequest(.because(bundle.welcome == nil ? .welcomeMissing : .welcomeUnwanted))
    }
    if let welcome = bundle.welcome { try MessageHeader.checkWelcome(welcome) }
    return change
  }

  /// A device that joins from outside adds itself, in the place of the leaf that it had, and does nothing else
  /// (RFC 9420 §12.4.3.2).
  private func checkExternal(
    _ delta: MemberDelta, _ device: DeviceID, _ old: LeafRow?
  ) throws(BackendFailure) {
    guard delta.addedUsers.isEmpty, delta.removedUsers.isEmpty, delta.addedLeaves.count == 1,
      delta.removedLeaves == (old == nil ? [] : [device])
    else { throw .invalidRequest(.because(.moreThanOneself)) }
  }

  /// A committer takes in the proposals of its epoch or leaves them out on purpose: it says up to where it knows them
  /// (requirements 2.2, `commit_incomplete`). Who comes from outside cannot take in any (RFC 9420 §12.4.3.2).
  private func checkProposals(
    _ bundle: CommitBundle, _ group: GroupRow, isExternal: Bool
  ) throws(BackendFailure) {
    guard bundle.proposalsUpTo ?? 0 <= group.headSequence else {
      throw .invalidRequest(.because(.proposalsBeyondHead))
    }
    guard isExternal || bundle.proposalsUpTo ?? 0 >= group.lastProposal else {
      throw .commitIncomplete(devices: [])
    }
  }

  private mutating func checkRemovals(
    _ delta: MemberDelta, _ group: GroupRow, _ device: DeviceRow, _ role: ChatRole,
    _ leaves: [DeviceID: LeafRow], _ removed: Set<DeviceID>
  ) throws(BackendFailure) -> [MemberRow] {
    var members: [MemberRow] = []
    for user in delta.removedUsers {
      guard user != device.user, let member = try store.member(user, of: group.id), member.isCurrent else {
        throw .invalidRequest(.because(.removedNotMember))
      }
      try checkMayRemove(role, member.role)
      let kept = leaves.values.filter { $0.user == user && !removed.contains($0.device) }.map(\.device)
      guard kept.isEmpty else { throw .commitIncomplete(devices: kept.sorted()) }
      members.append(member)
    }
    // One device of somebody who stays.
    for id in delta.removedLeaves {
      guard let leaf = leaves[id], leaf.isLive, leaf.user != device.user,
        !delta.removedUsers.contains(leaf.user)
      else { continue }
      guard let member = try store.member(leaf.user, of: group.id) else { continue }
      try checkMayRemove(role, member.role)
    }
    return members
  }

  private mutating func checkAdditions(
    _ delta: MemberDelta, _ group: GroupRow, _ leaves: [DeviceID: LeafRow], _ removed: Set<DeviceID>
  ) throws(BackendFailure) -> [LeafRow] {
    for user in delta.addedUsers {
      guard try store.user(user) != nil else { throw .userNotFound }
      if let member = try store.member(user, of: group.id), member.isCurrent {
        throw .invalidRequest(.because(.addedIsMember))
      }
    }
    var taken = Set(leaves.values.filter { !removed.contains($0.device) }.map(\.index))
    var added: [LeafRow] = []
    for leaf in delta.addedLeaves {
      guard leaves[leaf.device] == nil || removed.contains(leaf.device), taken.insert(leaf.index).inserted,
        let device = try store.device(leaf.device)
      else { throw .invalidRequest(.because(.addedLeaf)) }
      // Revoked since its key package was claimed.
      guard device.revokedAt == nil else { throw .commitIncomplete(devices: [device.id]) }
      if !delta.addedUsers.contains(device.user) {
        guard let member = try store.member(device.user, of: group.id), member.isCurrent,
          !delta.removedUsers.contains(device.user)
        else { throw .invalidRequest(.because(.leafOfStranger)) }
      }
      added.append(LeafRow(device: device.id, user: device.user, index: leaf.index, addedEpoch: 0))
    }
    return added
  }

  /// A user is added with all devices, in one epoch (S0-104).
  private mutating func checkComplete(
    _ delta: MemberDelta, _ group: GroupRow, _ device: DeviceRow, _ purpose: CommitPurpose,
    _ leaves: [DeviceID: LeafRow], _ added: Set<DeviceID>, _ now: ServerTime
  ) throws(BackendFailure) {
    var users = delta.addedUsers
    switch purpose {
    case .ordinary: break
    case .founding: users.append(device.user)
    case .reset: users += try store.members(of: group.id).map(\.user)
    }
    var missing: [DeviceID] = []
    for user in users {
      let addable = try addableDevices(of: user, at: now)
      missing += addable.filter { !added.contains($0) && $0 != device.id }
      if delta.addedUsers.contains(user) {
        let own = try store.devices(of: user).contains { added.contains($0.id) }
        guard own || !addable.isEmpty else { throw .noKeyPackage(user) }
      }
    }
    guard missing.isEmpty else { throw .commitIncomplete(devices: missing.sorted()) }
  }
}
