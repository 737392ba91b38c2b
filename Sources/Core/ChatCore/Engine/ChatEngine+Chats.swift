import PalbeMLS
import PalbeUnits

/// Chats before the server knows of them, and commands about them.
extension ChatEngine {
  /// The chat with a user, made here where there is none (S0-13): no network, the same one each time.
  package mutating func directChat(with peer: UserID, at now: ChatTime) throws(EngineError) -> ChatID {
    try perform(at: now) { (engine) throws(EngineError) in
      if let known = engine.byPeer[peer] { return known }
      let shape = GroupShape(isDirect: true, founder: engine.me, others: [peer])
      return try engine.draft(shape, title: nil)
    }
  }

  /// A new group with these people and the user, only here until its first message (S0-14).
  package mutating func groupChat(
    title: String?, members: [UserID], at now: ChatTime
  ) throws(EngineError) -> ChatID {
    try perform(at: now) { (engine) throws(EngineError) in
      try engine.draft(GroupShape(isDirect: false, founder: engine.me, others: members), title: title)
    }
  }

  private mutating func draft(_ shape: GroupShape, title: String?) throws(EngineError) -> ChatID {
    do throws(MLSStorageError) {
      var transaction = MLSTransaction()
      let chat = makeChat(shape, title: title, consent: .allowed, &transaction)
      try storage.apply(transaction)
      return chat.id
    } catch { throw .storage(error) }
  }

  /// A chat with its records, in memory.
  mutating func makeChat(
    _ shape: GroupShape, title: String?, consent: ChatConsent, _ transaction: inout MLSTransaction
  ) -> Chat {
    let chat = Chat(ChatHead(id: ChatID(at: now.wall, using: &random), shape: shape))
    var summary = ChatSummary(
      chat: chat.id.bytes, kind: shape.isDirect ? .direct : .group, createdAt: now.wall)
    summary.peer = chat.peer(of: me)
    summary.consent = consent
    summary.profile.name = title.flatMap { $0.isEmpty ? nil : $0 }
    chat.transcript = Transcript.create(
      summary, me: device.name, storage: storage, limits: configuration.transcript, in: &transaction)
    transaction.put(chat.head, RecordKey.chat(chat.id))
    index(chat)
    touch(chat)
    return chat
  }

  /// The user's word on who began a chat (S3-31).
  package mutating func setConsent(
    _ consent: ChatConsent, for id: ChatID, at now: ChatTime
  ) throws(EngineError) {
    try change(id, at: now) { (transcript, transaction) throws(MLSStorageError) in
      transcript.updateSummary(in: &transaction) { $0.consent = consent }
      return []
    }
  }

  // MARK: Commands

  mutating func carryOut(_ command: EngineCommand, _ id: CommandID) throws(MLSStorageError) {
    do throws(EngineError) {
      try begin(command, id)
    } catch {
      if case .storage(let fault) = error { throw fault }
      events.append(.finished(id, .failed(code: error.code)))
    }
  }

  private mutating func begin(_ command: EngineCommand, _ id: CommandID) throws(EngineError) {
    switch command {
    case .addMember(let chat, let user):
      let chat = try groupChat(chat)
      try queue(.add(user), for: chat, id)
    case .removeMember(let chat, let user):
      let chat = try groupChat(chat)
      try permit(.remove(user), chat, chat.head.shape)
      try queue(.remove(user), for: chat, id)
    case .setRole(let chat, let user, let role):
      let chat = try groupChat(chat)
      try permit(.setRole(user, role), chat, chat.head.shape)
      try queue(.setRole(user, role), for: chat, id)
    case .leave(let chat): try leave(try activeChat(chat), id)
    case .reset(let chat):
      let chat = try activeChat(chat, orDiverged: true)
      try permit(.reset, chat, chat.head.shape)
      try queue(.reset, for: chat, id)
    case .markRead(let chat, let seq): try markRead(chat, upTo: seq, id)
    case .setNotifyScope(let chat, let scope):
      let group = try serverName(of: chat)
      ask(.setNotifyScope(group, scope), for: .scope(chat, id))
    case .refreshNotifyScope(let chat):
      let group = try serverName(of: chat)
      ask(.notifyScope(group), for: .scope(chat, id))
    case .refreshUnread(let chat):
      let group = try serverName(of: chat)
      ask(.unread(group), for: .unread(chat, id))
    }
  }

  /// Whether the user's role allows something: when it is asked for, and again when its turn comes, by what the group is then.
  func permit(_ intent: GroupOperation.Intent, _ chat: Chat, _ shape: GroupShape) throws(EngineError) {
    guard let role = shape.role(of: me) else { throw .notAMember }
    switch intent {
    case .remove(let user):
      guard user != me else { throw .forbidden }
      // Who left may be cleared up after by anybody.
      if chat.head.departed.contains(user) { return }
      guard let other = shape.role(of: user) else { throw .notAMember }
      guard GroupShape.mayRemove(role, other) else { throw .forbidden }
    case .setRole(let user, let new):
      guard role == .owner else { throw .forbidden }
      guard let other = shape.role(of: user) else { throw .notAMember }
      // Somebody must stay who can give roles.
      let owners = shape.users.count { shape.role(of: $0) == .owner }
      guard other != .owner || new == .owner || owners > 1 else { throw .forbidden }
    case .reset: guard shape.isDirect || shape.isAdmin(me) else { throw .forbidden }
    case .found, .add, .tellRole, .tidy, .leave, .rejoin: break
    }
  }

  /// The server's name; throws for a chat that it does not know (S0-17).
  func serverName(of id: ChatID) throws(EngineError) -> GroupID {
    guard let chat = chats[id] else { throw .chatNotFound }
    guard chat.head.standing.state != .draft, let group = chat.head.group else { throw .chatIsDraft }
    return group
  }

  func activeChat(_ id: ChatID, orDiverged: Bool = false) throws(EngineError) -> Chat {
    guard let chat = chats[id] else { throw .chatNotFound }
    switch chat.head.standing {
    case .draft, .founding: throw .chatIsDraft
    case .left, .removed: throw .notAMember
    case .diverged: guard orDiverged else { throw .notAMember }
    case .active, .adopting, .resetting: break
    }
    return chat
  }

  func groupChat(_ id: ChatID) throws(EngineError) -> Chat {
    guard let chat = chats[id] else { throw .chatNotFound }
    guard !chat.head.shape.isDirect else { throw .chatIsDirect }
    return try activeChat(id)
  }

  /// Stores an operation and begins it when it is its turn.
  mutating func queue(
    _ intent: GroupOperation.Intent, for chat: Chat, _ command: CommandID?
  ) throws(EngineError) {
    do throws(MLSStorageError) {
      var transaction = MLSTransaction()
      let order = put(intent, for: chat, &transaction)
      try storage.apply(transaction)
      if let command { chat.commands[order] = command }
      try advanceOperations(of: chat)
    } catch { throw .storage(error) }
  }

  @discardableResult
  mutating func put(
    _ intent: GroupOperation.Intent, for chat: Chat, _ transaction: inout MLSTransaction
  ) -> UInt64 {
    let operation = GroupOperation(chat: chat.id, order: takeOrder(), intent: intent)
    chat.operations.append(operation)
    transaction.put(operation, operation.key)
    return operation.order
  }
}
