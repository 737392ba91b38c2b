import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// Into groups that others made or that this device comes back to.
extension ChatEngine {
  /// Joins by a welcome. One that is for no key package here, or whose group is not what it must be, is nothing. False: the
  /// row must wait for the answer to a founding of the same pair, which tells whose group is theirs.
  mutating func join(_ blob: [UInt8], as name: GroupID) throws(MLSStorageError) -> Bool {
    guard let message = try? MLSMessage(decoding: blob), case .welcome(let welcome) = message else {
      return true
    }
    var bundles: [KeyPackageBundle] = []
    for entry in welcome.secrets {
      if let record = try storage.read(.keyPackage(entry.newMember)) {
        bundles.append(try KeyPackageBundle(stored: record))
      }
    }
    guard !bundles.isEmpty else { return true }
    var made: MLSGroup?
    do throws(MLSError) {
      made = try MLSGroup.join(welcome, keyPackages: bundles, client: client)
    } catch { return true }
    guard let group = made.take(), let snapshot = GroupSnapshot(group), isSound(snapshot) else { return true }
    if snapshot.shape.isDirect, let chat = known(name, snapshot) {
      if chat.head.standing == .founding, chat.operations.first?.prepared != nil {
        queue.blockedBy = chat.id
        return false
      }
      // The server's names ascend in time: an older group of the pair has ended.
      if let current = chat.head.group, name < current { return true }
    }
    let isLastResort = bundles.first { $0.reference == group.keyPackageReference }?.isLastResort ?? false
    try enter(group, snapshot, as: name, isLastResort: isLastResort)
    return true
  }

  /// Whether a group that one is invited to is what it says.
  func isSound(_ group: GroupSnapshot) -> Bool {
    guard group.shape.members[me] != nil, group.usersInTree.isSubset(of: group.shape.members.keys) else {
      return false
    }
    return !group.shape.isDirect || group.shape.members.count <= 2
  }

  /// Stores a group that was joined, in the chat that it belongs to.
  private mutating func enter(
    _ group: consuming MLSGroup, _ snapshot: GroupSnapshot, as name: GroupID, isLastResort: Bool
  ) throws(MLSStorageError) {
    var fresh = MLSTransaction()
    let isKnown = known(name, snapshot)
    let chat: Chat
    if let isKnown {
      chat = isKnown
      try load(chat)
    } else {
      chat = makeChat(
        snapshot.shape, title: nil, consent: configuration.asksConsent ? .unknown : .allowed, &fresh)
    }
    // Already there, by this device's own coming back.
    if chat.head.standing == .active, chat.head.groupID == group.groupID, chat.head.epoch >= snapshot.epoch {
      return
    }
    let before = chat.head
    let old = chat.head.groupID
    let groupID = group.groupID
    let prepared = chat.operations.first?.prepared?.groupID
    var changes: [TranscriptChange] = []
    forgetRequests(of: chat)
    let stored = try StoredGroup.insert(group, in: storage, replacing: true) {
      transaction throws(MLSStorageError) in
      transaction.append(fresh)
      for gone in [old, prepared].compactMap({ $0 }) where gone != groupID {
        transaction.eraseGroup(gone)
      }
      self.bind(chat, to: name, &transaction)
      chat.head.enter(groupID, snapshot)
      chat.head.departed = []
      chat.head.wantsView = true
      self.unsealAll(in: chat, &transaction)
      self.dropOperations(of: chat, &transaction)
      if before.standing == .removed || before.standing == .left || before.standing == .diverged {
        // What was said meanwhile is not here (2.9d).
        changes = try self.fold(.historyGap, by: nil, at: chat.head.processedSeq, in: chat, &transaction)
      }
      self.keyPackageUsed(isLastResort: isLastResort, &transaction)
      self.save(chat, &transaction)
    }
    if let old, old != groupID { byGroupID[old] = nil }
    chat.group = Chat.Group(stored)
    chat.sending = .idle
    tell(changes, of: chat)
    try arrived(chat)
  }

  /// The chat that a group belongs to; nil when there is none yet.
  private func known(_ name: GroupID, _ snapshot: GroupSnapshot) -> Chat? {
    if let chat = chat(named: name) { return chat }
    return snapshot.shape.peer(of: me).flatMap { byPeer[$0] }.flatMap { chats[$0] }
  }

  /// Answers about what was before this group are nothing any more.
  mutating func forgetRequests(of chat: Chat) {
    forget { purpose in
      switch purpose {
      case .send(chat.id, _), .claim(chat.id, _, _), .found(chat.id, _), .commit(chat.id, _),
        .operationView(chat.id, _), .log(chat.id), .view(chat.id):
        true
      default: false
      }
    }
    chat.run = nil
    chat.isAskingLog = false
    chat.isAskingView = false
  }

  /// Messages that were encrypted for a group that is gone are encrypted anew.
  func unsealAll(in chat: Chat, _ transaction: inout MLSTransaction) {
    for place in chat.outbox.indices where chat.outbox[place].sealed != nil {
      chat.outbox[place].sealed = nil
      transaction.put(chat.outbox[place], chat.outbox[place].key)
    }
  }

  /// Of what was to be done, what founds or prepares is void; the rest is done in the new group.
  private mutating func dropOperations(of chat: Chat, _ transaction: inout MLSTransaction) {
    var rest: [GroupOperation] = []
    for var operation in chat.operations {
      switch operation.intent {
      case .found, .rejoin, .reset:
        transaction.erase(operation.key)
        if let command = chat.commands.removeValue(forKey: operation.order) {
          events.append(.finished(command, .done))
        }
      default:
        operation.prepared = nil
        transaction.put(operation, operation.key)
        rest.append(operation)
      }
    }
    chat.operations = rest
    peerWaitIsOver(chat)
  }

  // MARK: The view of who is new

  /// Who joined asks for the sealed name.
  mutating func lookAtView(of chat: Chat) {
    guard isReady, chat.head.wantsView, chat.head.standing == .active, !chat.isAskingView,
      let group = chat.head.group
    else { return }
    chat.isAskingView = true
    ask(.group(group), for: .view(chat.id))
  }

  mutating func viewed(
    _ id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let chat = chats[id] else { return }
    chat.isAskingView = false
    guard chat.head.standing == .active, chat.head.wantsView else { return }
    guard case .success(.group(let view)) = result else {
      guard case .failure(let refusal) = result else { return }
      // The user left on another device while this one came in: nobody tells it.
      if refusal.saysOut {
        return chat.head.shape.isDirect ? try leftElsewhere(chat) : try wasRemoved(from: chat)
      }
      return
    }
    // A newer epoch's name is opened in that epoch.
    if let epoch = view.nameEpoch, epoch > chat.head.epoch { return }
    try load(chat)
    let profile = try openProfile(view, of: chat)
    var transaction = MLSTransaction()
    chat.head.wantsView = false
    chat.head.generation = view.group.generation
    for leaf in view.leaves where !leaf.isLive {
      if view.members.contains(leaf.user) {
        chat.head.changed.insert(leaf.user)
      } else {
        chat.head.departed.insert(leaf.user)
      }
    }
    if let profile { chat.transcript?.adopt(profile, in: &transaction) }
    save(chat, &transaction)
    try storage.apply(transaction)
    changed(chat)
    try advanceOperations(of: chat)
  }

  private mutating func openProfile(
    _ view: ServerGroupView, of chat: Chat
  ) throws(MLSStorageError) -> GroupProfile? {
    guard let sealed = view.sealedName, let epoch = view.nameEpoch, let groupID = chat.head.groupID,
      let key = try secret(SealedProfile.exporterLabel, SealedProfile.secretByteCount, of: chat, epoch: epoch)
    else { return nil }
    return try? SealedProfile.open(sealed.span, secret: key, group: groupID, epoch: epoch)
  }

  // MARK: Coming back from outside

  /// Joins by a commit of one's own: nobody sent a welcome.
  mutating func rejoin(_ chat: Chat, _ view: ServerGroupView) throws(MLSStorageError) {
    guard chat.head.standing == .adopting || chat.head.standing == .diverged else {
      return try finish(chat, .done)
    }
    guard let message = try? MLSMessage(decoding: view.groupInfo), var operation = chat.operations.first
    else {
      return try finish(chat, .failed(code: "not_a_member"))
    }
    var made: MLSGroup?
    var commit = ServerCommit(epoch: view.group.epoch, commit: [], groupInfo: [])
    do throws(MLSError) {
      let join = try MLSGroup.joinExternally(message, client: client, using: &random)
      commit.commit = join.commit.encoded()
      let hasLeaf = view.leaves.contains { $0.device == device.name.device }
      let group = join.accepted()
      commit.groupInfo = try group.groupInfo().encoded()
      commit.delta.addedLeaves = [ServerLeaf(device: device.name.device, index: group.ownLeaf.value)]
      if hasLeaf { commit.delta.removedLeaves = [device.name.device] }
      made = consume group
    } catch { return try finish(chat, .failed(code: "not_a_member")) }
    guard let group = made.take(), let snapshot = GroupSnapshot(group), isSound(snapshot),
      chat.head.standing != .diverged || snapshot.shape == chat.head.shape
    else { return try finish(chat, .failed(code: "not_a_member")) }
    operation.prepared = GroupOperation.Prepared(key: makeKey(), groupID: group.groupID, commit: commit)
    _ = try StoredGroup.insert(group, in: storage, replacing: true) { transaction throws(MLSStorageError) in
      transaction.put(operation, operation.key)
    }
    chat.group = nil
    chat.operations[0] = operation
    post(operation, of: chat)
  }

  /// The server took the commit from outside.
  mutating func rejoined(
    _ chat: Chat, _ prepared: GroupOperation.Prepared, seq: Int64
  ) throws(MLSStorageError) {
    guard let stored = try StoredGroup.load(prepared.groupID, client: client, from: storage),
      let snapshot = GroupSnapshot(stored.group)
    else { throw .inconsistent }
    try load(chat)
    let group = Chat.Group(stored)
    let old = chat.head.groupID
    var transaction = MLSTransaction()
    if let old, old != prepared.groupID { transaction.eraseGroup(old) }
    let wasDiverged = chat.head.standing == .diverged
    chat.head.enter(prepared.groupID, snapshot)
    chat.head.wantsView = true
    unsealAll(in: chat, &transaction)
    dropOperations(of: chat, &transaction)
    chat.run = nil
    let changes = wasDiverged ? try fold(.historyGap, by: nil, at: seq, in: chat, &transaction) : []
    save(chat, &transaction)
    try storage.apply(transaction)
    chat.group = group
    tell(changes, of: chat)
    try arrived(chat)
  }
}

extension MLSTransaction {
  /// Adds the changes of another, which erases nothing under prefixes.
  mutating func append(_ other: MLSTransaction) {
    for (key, change) in other.changes {
      switch change {
      case .write(let record): write(record, key)
      case .erase: erase(key)
      }
    }
  }
}
