import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// A group's beginning: epoch 0 with this device alone, and one commit that adds everybody's devices (S0-104).
extension ChatEngine {
  mutating func beginFounding(_ chat: Chat, _ transaction: inout MLSTransaction) {
    if let old = chat.head.groupID {
      // A direct chat that somebody left begins again.
      transaction.eraseGroup(old)
      chat.group = nil
      byGroupID[old] = nil
    }
    if chat.head.standing != .draft, let peer = chat.peer(of: me) {
      chat.head.shape = GroupShape(isDirect: true, founder: me, others: [peer])
    }
    chat.head.standing = .founding
    chat.head.groupID = nil
    chat.head.departed = []
    finishAll(chat, .failed(code: "not_a_member"), &transaction)
    put(.found, for: chat, &transaction)
    save(chat, &transaction)
  }

  /// Makes the group and stores it with the request.
  mutating func buildFounding(_ operation: GroupOperation, in chat: Chat) throws(MLSStorageError) {
    guard let run = chat.run else { return }
    try load(chat)
    let isReset = operation.intent == .reset
    var shape = chat.head.shape
    if isReset, let view = run.view {
      // Whom the server knows stays what they were here; who is not known here comes as a member.
      shape.members = [:]
      for user in view.members {
        shape.members[user] = chat.head.shape.members[user] ?? .init(role: .member, joinedEpoch: 1)
      }
    }
    let packages = keyPackages(run.claimed)
    let reached = Set(packages.map(\.name.user))
    let added = shape.users.filter { $0 != me && reached.contains($0) }
    if !isReset, let missing = shape.users.first(where: { $0 != me && !reached.contains($0) }) {
      if try waitForPeer(chat, .noKeyPackage(missing)) { return }
      return try fail(chat, code: ServerRefusal.noKeyPackage(missing).code)
    }
    var prepared = GroupOperation.Prepared(key: makeKey(), groupID: random.bytes(32))
    let profile = chat.transcript?.summary.profile ?? GroupProfile()
    var made: MLSGroup?
    do throws(MLSError) {
      var group = try MLSGroup.create(
        groupID: prepared.groupID, client: client, lifetime: lifetime, extensions: [shape.asExtension],
        using: &random)
      if packages.isEmpty {
        prepared.groupInfo = try group.groupInfo().encoded()
      } else {
        let bundle = try group.add(packages.map(\.package), at: seconds, using: &random)
        var commit = try serverCommit(bundle, of: group, profile, using: &random)
        commit.delta.addedUsers = isReset ? [] : added
        commit.delta.addedLeaves = zip(packages, bundle.effect.added).map {
          ServerLeaf(device: $0.name.device, index: $1.value)
        }
        prepared.commit = commit
        prepared.sealedName = profile.nameVersion.seq
        prepared.sealedTimer = profile.timerVersion.seq
      }
      made = consume group
    } catch { return try fail(chat, code: "no_key_package") }
    guard let group = made.take() else { return }
    var operation = operation
    operation.prepared = prepared
    _ = try StoredGroup.insert(group, in: storage) { transaction throws(MLSStorageError) in
      transaction.put(operation, operation.key)
    }
    chat.operations[0] = operation
    post(operation, of: chat)
  }

  /// Claimed key packages that are what the server says, this device's own apart.
  func keyPackages(
    _ claimed: [UserID: [ServerKeyPackage]]
  ) -> [(name: DeviceName, package: KeyPackage)] {
    var result: [(name: DeviceName, package: KeyPackage)] = []
    for (user, packages) in claimed.sorted(by: { $0.key < $1.key }) {
      for claimed in packages where claimed.device != device.name.device {
        let name = DeviceName(user: user, device: claimed.device)
        guard let message = try? MLSMessage(decoding: claimed.blob), case .keyPackage(let package) = message,
          package.leafNode.credential == name.credential
        else { continue }
        result.append((name, package))
      }
    }
    return result
  }

  var seconds: UInt64 { UInt64(clamping: now.wall.seconds) }
  var lifetime: Lifetime {
    Lifetime(
      notBefore: seconds - min(seconds, 3_600),
      notAfter: seconds + UInt64(clamping: configuration.keyPackageLifetime.nanoseconds / 1_000_000_000))
  }

  // MARK: The answer

  mutating func post(_ operation: GroupOperation, of chat: Chat) {
    guard let prepared = operation.prepared else { return }
    peerWaitIsOver(chat)
    chat.run?.isPosted = true
    let founding = ServerFounding(
      groupID: prepared.groupID, peer: chat.peer(of: me), commit: prepared.commit,
      groupInfo: prepared.groupInfo)
    switch operation.intent {
    case .found:
      ask(.createGroup(founding), for: .found(chat.id, order: operation.order), key: prepared.key)
    case .reset:
      guard let group = chat.head.group else { return }
      ask(
        .reset(group, generation: chat.head.generation, founding),
        for: .found(chat.id, order: operation.order), key: prepared.key)
    default:
      guard let group = chat.head.group, let commit = prepared.commit else { return }
      ask(.commit(group, commit), for: .commit(chat.id, order: operation.order), key: prepared.key)
    }
  }

  mutating func founded(
    _ order: UInt64, in id: ChatID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard let (chat, operation) = underway(order, in: id), let prepared = operation.prepared else { return }
    switch result {
    case .success(.founded(let founded)) where founded.groupID == prepared.groupID:
      try enterFounded(founded, prepared, of: chat)
    case .success(.founded(let founded)): try adopt(founded, instead: prepared, in: chat)
    case .success: break
    case .failure(let refusal):
      try dropPrepared(chat, erasing: prepared.groupID)
      switch refusal {
      case .commitIncomplete where operation.attempts < configuration.rebaseLimit,
        .noKeyPackage where operation.intent == .reset,
        .staleEpoch where operation.attempts < configuration.rebaseLimit:
        try resumeQueue(for: chat.id)
        try advanceOperations(of: chat)
      default:
        if try waitForPeer(chat, refusal) { return }
        try fail(chat, code: refusal.code)
      }
    }
  }

  /// The group is there: the chat lives.
  private mutating func enterFounded(
    _ founded: ServerFounded, _ prepared: GroupOperation.Prepared, of chat: Chat
  ) throws(MLSStorageError) {
    guard let stored = try StoredGroup.load(prepared.groupID, client: client, from: storage) else {
      throw .inconsistent
    }
    try load(chat)
    let group = Chat.Group(stored)
    let old = chat.head.groupID
    let at = seconds
    let operation = chat.operations[0]
    let result = try group.update { group throws(MLSError) in
      if group.hasPendingCommit { try group.mergePendingCommit(at: at) }
      return GroupSnapshot(group)
    } also: { snapshot, transaction throws(MLSStorageError) in
      guard let snapshot else { throw .inconsistent }
      if let old, old != prepared.groupID { transaction.eraseGroup(old) }
      self.bind(chat, to: founded.id, &transaction)
      chat.head.enter(prepared.groupID, snapshot)
      chat.head.departed = []
      transaction.erase(operation.key)
      self.save(chat, &transaction)
    }
    guard case .success = result else { throw .inconsistent }
    if let old { byGroupID[old] = nil }
    chat.group = group
    chat.operations.removeFirst()
    chat.run = nil
    if let command = chat.commands.removeValue(forKey: operation.order) {
      events.append(.finished(command, .done))
    }
    try arrived(chat)
  }

  /// A chat has a group that it did not have before: what waited for it goes on.
  mutating func arrived(_ chat: Chat) throws(MLSStorageError) {
    try entered(chat)
    try resumeQueue(for: chat.id)
    try advance(chat)
  }

  /// A chat's group is in another epoch, or is another group.
  mutating func entered(_ chat: Chat) throws(MLSStorageError) {
    index(chat)
    guard let group = try group(of: chat) else { return }
    subscribe(chat)
    changed(chat)
    events.append(
      .epochChanged(
        chat.id, epoch: group.stored.group.epochNumber, authenticator: group.stored.group.epochAuthenticator))
  }

  /// The peer was first: their group is the chat of both (2.9c). What waits is encrypted for it once the welcome comes.
  private mutating func adopt(
    _ founded: ServerFounded, instead prepared: GroupOperation.Prepared, in chat: Chat
  ) throws(MLSStorageError) {
    try load(chat)
    var transaction = MLSTransaction()
    transaction.eraseGroup(prepared.groupID)
    finishAll(chat, .done, &transaction)
    chat.head.standing = .adopting
    bind(chat, to: founded.id, &transaction)
    chat.head.groupID = nil
    // Where nobody sends a welcome, this device comes in by itself.
    put(.rejoin, for: chat, &transaction)
    save(chat, &transaction)
    try storage.apply(transaction)
    index(chat)
    changed(chat)
    tidyLater(chat, after: configuration.housekeepingWait * 3)
    try resumeQueue(for: chat.id)
  }

  mutating func foundingFailed(_ chat: Chat, code: String) throws(MLSStorageError) {
    try load(chat)
    var transaction = MLSTransaction()
    finishAll(chat, .failed(code: code), &transaction)
    chat.head.standing = .draft
    save(chat, &transaction)
    try storage.apply(transaction)
    changed(chat)
    try failAll(in: chat, code: code)
    try resumeQueue(for: chat.id)
  }

  /// What was prepared is void: it is made anew.
  mutating func dropPrepared(_ chat: Chat, erasing groupID: [UInt8]? = nil) throws(MLSStorageError) {
    guard !chat.operations.isEmpty else { return }
    chat.operations[0].prepared = nil
    chat.operations[0].attempts &+= 1
    chat.run = nil
    var transaction = MLSTransaction()
    transaction.put(chat.operations[0], chat.operations[0].key)
    if let groupID { transaction.eraseGroup(groupID) }
    try storage.apply(transaction)
  }
}
