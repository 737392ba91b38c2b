import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// From one epoch to the next: what a commit did is checked, told and stored with the new keys in one transaction.
extension ChatEngine {
  /// What came of a commit that was carried out.
  private enum Step {
    case entered(GroupSnapshot, committer: DeviceName?, isExternal: Bool)
    case removed(by: DeviceName?)
    /// It was here before.
    case known
  }

  /// Carries out a commit.
  /// - Parameter row: the queue's row that brought it, which is done with then.
  mutating func enter(
    _ chat: Chat, _ group: Chat.Group, seq: Int64, row: ServerLogRow? = nil,
    _ body: (inout MLSGroup, UInt64) throws(MLSError) -> ProcessedMessage
  ) throws(MLSStorageError) {
    try load(chat)
    guard let before = GroupSnapshot(group.stored.group) else { throw .inconsistent }
    let prepared = chat.operations.first?.prepared
    let at = seconds
    var violation: CommitRules.Violation?
    var changes: [TranscriptChange] = []
    let hearsay = CommitRules.Hearsay(departed: chat.head.departed, changed: chat.head.changed)
    let kept = keep(group.stored.group, of: chat)
    let result = try group.update { group throws(MLSError) in
      let message = try body(&group, at)
      switch message {
      case .commit(let effect):
        let committer = before.devices[effect.committer]
        let isExternal = committer == nil || effect.removed.contains(effect.committer)
        do throws(CommitRules.Violation) {
          guard let after = GroupSnapshot(group) else { throw .membersAndLeavesDiffer }
          try CommitRules.check(before, after, committer: isExternal ? nil : committer, hearsay: hearsay)
          return Step.entered(
            after, committer: committer ?? after.devices[effect.committer], isExternal: isExternal)
        } catch {
          violation = error
          // Nothing of it stays: the group is as before.
          throw .message(.wrongSenderType)
        }
      case .ownCommit(let effect):
        guard let after = GroupSnapshot(group) else { throw .message(.wrongSenderType) }
        return .entered(after, committer: after.devices[effect.committer], isExternal: false)
      case .removed(let effect): return .removed(by: before.devices[effect.committer])
      case .application, .proposal, .own, .duplicate: return .known
      }
    } also: { step, transaction throws(MLSStorageError) in
      if let row { self.processed(row, of: chat, &transaction) }
      switch step {
      case .known: break
      case .removed(let committer):
        changes = try self.fold(.memberRemoved([self.me]), by: committer, at: seq, in: chat, &transaction)
        self.end(chat, .removed, &transaction)
      case .entered(let after, let committer, _):
        kept.write(&transaction)
        changes = try self.note(before, after, by: committer, seq: seq, in: chat, &transaction)
        self.settle(chat, &transaction)
        self.save(chat, &transaction)
      }
    }
    switch result {
    case .success(.known): break
    case .success(.removed): try ended(chat, changes)
    case .success(.entered(let after, let committer, let isExternal)):
      tell(changes, of: chat)
      let isOwn = committer == device.name
      try followed(before, after, in: chat, isOwn: isOwn, wasPrepared: prepared?.commit != nil)
      if isOwn, let prepared { try tellProfile(prepared, in: chat, before, after) }
      if isExternal { try tellProfile(afterExternal: after, by: committer, in: chat) }
      if !isOwn { try tellOwnControl(in: chat, before, after) }
    case .failure(let error): try refused(error, violation, chat, row)
    }
  }

  /// A commit could not be followed. Our own that lies in the log and is not pending any more, or one whose keys are gone:
  /// in any case the others are in an epoch that this device does not reach.
  private mutating func refused(
    _ error: MLSError, _ violation: CommitRules.Violation?, _ chat: Chat, _ row: ServerLogRow?
  ) throws(MLSStorageError) {
    if violation == nil, case .message(.staleCommit) = error { return }
    if violation == nil, case .state(.removed) = error { return }
    if violation?.restsOnHearsay == true, let row, !chat.hasAskedHearsay {
      // Word of who left may have gone to devices that were here before this one.
      return askHearsay(row, of: chat)
    }
    if let row { try pass(row, in: chat) }
    try diverge(chat)
  }

  /// The commit waits for what the server knows of members and devices.
  private mutating func askHearsay(_ row: ServerLogRow, of chat: Chat) {
    guard let group = chat.head.group else { return }
    queue.blockedBy = chat.id
    chat.hasAskedHearsay = true
    ask(.group(group), for: .hearsay(chat.id))
  }

  mutating func gotHearsay(
    of id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let chat = chats[id] else { return }
    if case .success(.group(let view)) = result, let group = try group(of: chat),
      let snapshot = GroupSnapshot(group.stored.group)
    {
      let members = Set(view.members)
      let devices = Set(view.leaves.filter(\.isLive).map(\.device)).union(view.missingDevices)
      for name in snapshot.devices.values {
        if !members.contains(name.user) {
          chat.head.departed.insert(name.user)
        } else if !devices.contains(name.device) {
          chat.head.changed.insert(name.user)
        }
      }
      try store(chat)
    } else if case .failure(let refusal) = result, refusal.saysOut {
      try wasRemoved(from: chat)
    }
    try resumeQueue(for: id)
    chat.hasAskedHearsay = false
  }

  /// Folds what a commit did to the members, and notes it in the head.
  private mutating func note(
    _ before: GroupSnapshot, _ after: GroupSnapshot, by committer: DeviceName?, seq: Int64, in chat: Chat,
    _ transaction: inout MLSTransaction
  ) throws(MLSStorageError) -> [TranscriptChange] {
    let departed = chat.head.departed
    chat.head.epoch = after.epoch
    chat.head.shape = after.shape
    let old = Set(before.shape.members.keys)
    let new = Set(after.shape.members.keys)
    chat.head.departed.subtract(old.subtracting(new))
    let renewed = old.intersection(new).filter {
      before.shape.members[$0]?.joinedEpoch != after.shape.members[$0]?.joinedEpoch
    }
    chat.head.departed.subtract(renewed)
    var changes: [TranscriptChange] = []
    let added = new.subtracting(old).union(renewed).sorted()
    if !added.isEmpty {
      changes += try fold(.memberAdded(added), by: committer, at: seq, in: chat, &transaction)
    }
    // Who left was told of when they did.
    let removed = old.subtracting(new).subtracting(departed).sorted()
    if !removed.isEmpty {
      changes += try fold(.memberRemoved(removed), by: committer, at: seq, in: chat, &transaction)
    }
    for user in old.intersection(new).sorted() {
      guard let was = before.shape.members[user]?.role, let role = after.shape.members[user]?.role,
        was != role,
        before.shape.role(of: user) != role
      else { continue }
      changes += try fold(.roleChanged(user, role), by: committer, at: seq, in: chat, &transaction)
    }
    let (oldDevices, newDevices) = (before.devicesByUser, after.devicesByUser)
    for user in old.intersection(new).subtracting(renewed).sorted() {
      guard oldDevices[user] != newDevices[user], user != me else { continue }
      changes += try fold(.keyChanged(user), by: committer, at: seq, in: chat, &transaction)
    }
    return changes
  }

  /// What the first operation had prepared for the epoch that ended is void, or done.
  private mutating func settle(_ chat: Chat, _ transaction: inout MLSTransaction) {
    guard var operation = chat.operations.first, operation.prepared?.commit != nil else { return }
    operation.prepared = nil
    operation.attempts &+= 1
    chat.operations[0] = operation
    transaction.put(operation, operation.key)
  }

  /// What follows from a new epoch, once it is stored.
  private mutating func followed(
    _ before: GroupSnapshot, _ after: GroupSnapshot, in chat: Chat, isOwn: Bool, wasPrepared: Bool
  ) throws(MLSStorageError) {
    let (oldDevices, newDevices) = (before.devicesByUser, after.devicesByUser)
    for user in Set(before.shape.members.keys).union(after.shape.members.keys).sorted() {
      let old = oldDevices[user] ?? []
      let new = newDevices[user] ?? []
      guard old != new else { continue }
      events.append(
        .devicesChanged(
          chat.id, user, added: new.subtracting(old).sorted(), removed: old.subtracting(new).sorted()))
    }
    try entered(chat)
    scheduleSecrets(of: chat)
    if wasPrepared || chat.run?.waitsFor != nil {
      forget { purpose in
        switch purpose {
        case .commit(chat.id, _): true
        default: false
        }
      }
      chat.run = nil
    }
    if isOwn, let operation = chat.operations.first, isDone(operation, after) { try merged(chat) }
    try advance(chat)
  }

  /// Name or timer changed while our commit was on its way: who it added knows the older one.
  private mutating func tellProfile(
    _ prepared: GroupOperation.Prepared, in chat: Chat, _ before: GroupSnapshot, _ after: GroupSnapshot
  ) throws(MLSStorageError) {
    guard let profile = chat.transcript?.summary.profile, chat.head.standing == .active,
      profile.nameVersion.seq > prepared.sealedName || profile.timerVersion.seq > prepared.sealedTimer,
      !Set(after.devices.values).isSubset(of: before.devices.values)
    else { return }
    try sendControl(.profile(profile), in: chat)
  }

  /// Who came in from outside cannot open what was sealed before: of those who may name the group one device tells, the
  /// first in the tree.
  private mutating func tellProfile(
    afterExternal after: GroupSnapshot, by newcomer: DeviceName?, in chat: Chat
  ) throws(MLSStorageError) {
    let tellers = after.devices.filter { after.shape.isAdmin($0.value.user) && $0.value != newcomer }
    guard let teller = tellers.min(by: { $0.key < $1.key })?.value, teller == device.name,
      let profile = chat.transcript?.summary.profile, profile.name != nil || profile.timer != nil
    else { return }
    try sendControl(.profile(profile), in: chat)
  }

  /// A name or a timer of this device's own in the epoch that a commit ended: whoever made the commit may not have known
  /// it, and who came with it cannot read it.
  private mutating func tellOwnControl(
    in chat: Chat, _ before: GroupSnapshot, _ after: GroupSnapshot
  ) throws(MLSStorageError) {
    guard !Set(after.devices.values).isSubset(of: before.devices.values), let transcript = chat.transcript,
      chat.head.standing == .active
    else { return }
    let profile = transcript.summary.profile
    for version in [profile.nameVersion, profile.timerVersion]
    where version.epoch == before.epoch {
      guard let control = version.control, try transcript.row(control)?.sender == device.name else {
        continue
      }
      return try sendControl(.profile(profile), in: chat)
    }
  }

  /// Whether an operation needs no further commit: looked at after each of our own.
  private func isDone(_ operation: GroupOperation, _ after: GroupSnapshot) -> Bool {
    switch operation.intent {
    case .add(let user): after.usersInTree.contains(user)
    case .remove(let user): after.shape.members[user] == nil
    case .setRole(let user, let role): after.shape.members[user]?.role == role
    case .tidy: true
    case .found, .reset, .tellRole, .leave, .rejoin: false
    }
  }

  // MARK: Ends

  /// The chat has no group any more; its records go in the transaction.
  mutating func end(_ chat: Chat, _ standing: ChatStanding, _ transaction: inout MLSTransaction) {
    chat.head.standing = standing
    finishAll(chat, .failed(code: "not_a_member"), &transaction)
    save(chat, &transaction)
  }

  mutating func ended(_ chat: Chat, _ changes: [TranscriptChange]) throws(MLSStorageError) {
    if let groupID = chat.head.groupID {
      // What StoredGroup just wrote goes with the rest.
      var transaction = MLSTransaction()
      transaction.eraseGroup(groupID)
      chat.head.groupID = nil
      transaction.put(chat.head, RecordKey.chat(chat.id))
      try storage.apply(transaction)
      byGroupID[groupID] = nil
      unsubscribe(groupID)
    }
    chat.group = nil
    tell(changes, of: chat)
    try failAll(in: chat, code: "not_a_member")
    try resumeQueue(for: chat.id)
  }

  /// The server says that this user is not in the group any more.
  mutating func wasRemoved(from chat: Chat) throws(MLSStorageError) {
    guard chat.head.standing != .removed, chat.head.standing != .left else { return }
    try load(chat)
    var transaction = MLSTransaction()
    end(chat, .removed, &transaction)
    try storage.apply(transaction)
    try ended(chat, [])
  }

  /// The group's commits cannot be followed from here on.
  mutating func diverge(_ chat: Chat) throws(MLSStorageError) {
    guard chat.head.standing == .active else { return }
    try load(chat)
    var transaction = MLSTransaction()
    chat.head.standing = .diverged
    finishAll(chat, .failed(code: "not_a_member"), &transaction)
    save(chat, &transaction)
    try storage.apply(transaction)
    events.append(.diverged(chat.id))
    changed(chat)
  }
}
