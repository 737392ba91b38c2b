import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// Commits: our own on their way to the log, and everybody's out of it.
extension ChatEngine {
  /// What a commit is to do, by the state it is made for.
  private struct Plan {
    var added: [(name: DeviceName, package: KeyPackage)] = []
    var removed: [(leaf: LeafIndex, name: DeviceName)] = []
    var shape: GroupShape
    var delta = ServerDelta()
  }

  /// Makes the commit of the first operation and stores it with its key; nothing to do ends the operation.
  mutating func buildCommit(_ operation: GroupOperation, in chat: Chat) throws(MLSStorageError) {
    guard let run = chat.run, let group = try group(of: chat), let before = GroupSnapshot(group.stored.group)
    else { return try finish(chat, .failed(code: "not_a_member")) }
    // It may have waited, and roles may have changed: what the others would not follow is not made.
    do throws(EngineError) { try permit(operation.intent, chat, before.shape) } catch {
      return try finish(chat, .failed(code: error.code))
    }
    let plan = plan(operation.intent, run, chat, before)
    guard !plan.added.isEmpty || !plan.removed.isEmpty || plan.shape != before.shape else {
      return try finish(chat, .done)
    }
    try load(chat)
    let profile = chat.transcript?.summary.profile ?? GroupProfile()
    var prepared = GroupOperation.Prepared(key: makeKey(), groupID: group.stored.group.groupID)
    prepared.sealedName = profile.nameVersion.seq
    prepared.sealedTimer = profile.timerVersion.seq
    var proposals = plan.removed.map { Proposal.remove($0.leaf) }
    if plan.shape != before.shape {
      let others = group.stored.group.context.extensions.filter { $0.type != GroupShape.extensionType }
      proposals.append(.groupContextExtensions(others + [plan.shape.asExtension]))
    }
    proposals += plan.added.map { Proposal.add($0.package) }
    var random = self.random
    defer { self.random = random }
    let at = seconds
    let head = run.view.flatMap { $0.group.headSeq > 0 ? $0.group.headSeq : nil }
    var operation = operation
    let result = try group.update { group throws(MLSError) in
      // Proposals of others are theirs to commit. They are left out on purpose, and the server is told so: else whoever sends
      // one would keep everybody from committing.
      group.clearPendingProposals()
      let bundle = try group.commit(proposals, replacingPending: true, at: at, using: &random)
      var commit = try serverCommit(bundle, of: group, profile, using: &random)
      commit.delta = plan.delta
      commit.proposalsUpTo = head
      commit.delta.addedLeaves = zip(plan.added, bundle.effect.added).map {
        ServerLeaf(device: $0.name.device, index: $1.value)
      }
      return commit
    } also: { commit, transaction throws(MLSStorageError) in
      prepared.commit = commit
      operation.prepared = prepared
      transaction.put(operation, operation.key)
    }
    guard case .success = result else { return try finish(chat, .failed(code: "no_key_package")) }
    chat.operations[0] = operation
    post(operation, of: chat)
  }

  private func plan(
    _ intent: GroupOperation.Intent, _ run: Chat.Run, _ chat: Chat, _ before: GroupSnapshot
  ) -> Plan {
    var plan = Plan(shape: before.shape)
    let present = Set(before.devices.values.map(\.device))
    var gone = chat.head.departed
    var goneDevices: Set<DeviceID> = []
    for leaf in run.view?.leaves ?? [] where !leaf.isLive { goneDevices.insert(leaf.device) }
    if let view = run.view {
      // Who the server does not know any more has left.
      gone.formUnion(before.usersInTree.subtracting(view.members))
    }
    gone.remove(me)
    if case .remove(let user) = intent {
      if !gone.contains(user) { plan.delta.removedUsers = [user] }
      gone.insert(user)
    }
    for (leaf, name) in before.devices.sorted(by: { $0.key < $1.key }) where name != device.name {
      guard gone.contains(name.user) || goneDevices.contains(name.device) else { continue }
      plan.removed.append((leaf, name))
    }
    plan.delta.removedLeaves = plan.removed.map(\.name.device)
    for user in gone { plan.shape.members[user] = nil }
    if case .setRole(let user, let role) = intent, plan.shape.members[user] != nil {
      if let heir = plan.shape.users.first(where: { plan.shape.role(of: $0) == .owner }) {
        // Who inherited is written down before somebody else is given a role.
        plan.shape.members[heir]?.role = .owner
      }
      plan.shape.members[user]?.role = role
    }
    // Who left, and whose leaves are still there, comes again as new.
    if case .add(let user) = intent, plan.shape.members[user] == nil {
      plan.shape.members[user] = .init(role: .member, joinedEpoch: before.epoch + 1)
      plan.delta.addedUsers = [user]
    }
    for (name, package) in keyPackages(run.claimed) where plan.shape.members[name.user] != nil {
      let isFree = !present.contains(name.device) || plan.removed.contains { $0.name == name }
      // A device that was revoked is not claimed; one of who comes again is.
      if isFree { plan.added.append((name, package)) }
    }
    if case .add(let user) = intent, !plan.added.contains(where: { $0.name.user == user }) {
      plan.shape.members[user] = before.shape.members[user]
      plan.delta.addedUsers = []
    }
    return plan
  }

  // MARK: The answer

  mutating func committed(
    _ order: UInt64, in id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let (chat, operation) = underway(order, in: id), let prepared = operation.prepared,
      prepared.commit != nil
    else { return }
    switch result {
    case .success(.committed(let seq, _)):
      if operation.intent == .rejoin { return try rejoined(chat, prepared, seq: seq) }
      try mergeOwn(chat, seq: seq)
    case .success: break
    case .failure(.staleEpoch):
      // Another was first, or ours was and the answer is lost: the log tells (section 3 #1).
      chat.run?.isPosted = false
      askLog(of: chat)
    case .failure(.commitIncomplete):
      try rebase(chat)
    case .failure(let refusal):
      switch refusal {
      case _ where refusal.saysOut: try wasRemoved(from: chat)
      case .other("invalid_request"), .forbidden, .idempotencyMismatch:
        // The server knows more than this device, such as that somebody is in already.
        if operation.attempts < 2 { try rebase(chat) } else { try giveUp(chat, code: refusal.code) }
      default: try giveUp(chat, code: refusal.code)
      }
    }
  }

  /// The commit is dropped and made anew, from what the group is by then; not for ever.
  /// - Parameter epoch: others ended it first, and the group must have left it before.
  private mutating func rebase(_ chat: Chat, after epoch: UInt64? = nil) throws(MLSStorageError) {
    guard let operation = chat.operations.first else { return }
    guard Int(operation.attempts) < configuration.rebaseLimit else {
      return try giveUp(chat, code: "rebase_exhausted")
    }
    try clearPending(chat)
    try dropPrepared(chat)
    if let epoch, chat.head.epoch <= epoch {
      chat.run = Chat.Run(order: operation.order, waitsFor: epoch + 1)
    }
    fetchQueue()
    try advanceOperations(of: chat)
  }

  private mutating func giveUp(_ chat: Chat, code: String) throws(MLSStorageError) {
    try clearPending(chat)
    try finish(chat, .failed(code: code))
  }

  private mutating func clearPending(_ chat: Chat) throws(MLSStorageError) {
    guard let group = try group(of: chat), group.stored.group.hasPendingCommit else { return }
    _ = try group.update { group throws(MLSError) in group.clearPendingCommit() }
  }

  /// The log came: what a refused commit waited for is decided.
  mutating func logArrived(in chat: Chat) throws(MLSStorageError) {
    guard let operation = chat.operations.first, let prepared = operation.prepared, let run = chat.run,
      !run.isPosted, run.waitsFor == nil, operation.intent != .found, operation.intent != .reset
    else { return }
    // Still there, so ours is not in the log.
    if operation.intent == .rejoin {
      try dropPrepared(chat, erasing: prepared.groupID)
      return try advanceOperations(of: chat)
    }
    try rebase(chat, after: prepared.commit?.epoch ?? 0)
  }

  /// The server took our commit.
  private mutating func mergeOwn(_ chat: Chat, seq: Int64) throws(MLSStorageError) {
    guard let group = try group(of: chat), group.stored.group.hasPendingCommit else { return }
    try enter(chat, group, seq: seq) { group, seconds throws(MLSError) in
      .ownCommit(try group.mergePendingCommit(at: seconds))
    }
  }

  /// Carries out a commit of the log.
  mutating func carryOut(
    commit row: ServerLogRow, in chat: Chat, _ group: Chat.Group, byQueue: Bool
  ) throws(MLSStorageError) {
    try enter(chat, group, seq: row.seq, row: byQueue ? row : nil) { group, seconds throws(MLSError) in
      try group.process(row.blob, at: seconds)
    }
  }
}

/// Puts a commit of ours together as the server takes it, with the profile sealed for the new epoch (S0-30).
func serverCommit(
  _ bundle: CommitBundle, of group: borrowing MLSGroup, _ profile: GroupProfile,
  using random: inout RandomSource
) throws(MLSError) -> ServerCommit {
  let secret = try group.exportPendingSecret(
    label: SealedProfile.exporterLabel, context: [], length: SealedProfile.secretByteCount)
  return ServerCommit(
    epoch: group.epochNumber, commit: bundle.commit.encoded(), welcome: bundle.welcome?.encoded(),
    groupInfo: try group.pendingGroupInfo().encoded(),
    // A name that is too long to seal goes without; members tell it. None is sealed over one that others know.
    sealedName: profile == GroupProfile()
      ? nil
      : try? SealedProfile.seal(
        profile, secret: secret, group: group.groupID, epoch: group.epochNumber + 1, using: &random))
}
