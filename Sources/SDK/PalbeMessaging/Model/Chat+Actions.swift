public import Foundation
import Palbase
import PalbeChatCore
import PalbeUnits

/// What is done to messages, and to the chat.
extension Chat {
  /// The open shell, and what it calls this chat; a draft that no store has is stored first.
  /// - Parameter talks: whether it takes the server.
  func reach(talks: Bool = true) async throws -> (MessagingShell, ChatID) {
    if local == nil { try await bind() }
    guard let session, session.isCurrent, let local else { throw BackendError.client(.notSignedIn) }
    return (talks ? try await session.talkingShell() : try await session.openShell(), local)
  }

  private func bind() async throws {
    if let binding { return try await binding.value }
    guard let plan, let messenger else { throw BackendError.client(.notSignedIn) }
    let task = Task { try await messenger.bind(self, plan) }
    binding = task
    defer { binding = nil }
    try await task.value
  }

  private func command(_ command: (ChatID) -> EngineCommand) async throws -> CommandResult {
    let (shell, chat) = try await reach()
    return try await shell.command(command(chat))
  }

  // MARK: Reactions, edits, deletions

  /// Sets an emoji on a message: one character of at most 32 bytes, else `invalid_request`. It is no message of its own and
  /// notifies nobody (S0-63, S0-64). On a message that the app made, nothing (S0-50).
  public func react(_ message: ChatMessage, emoji: String) async throws {
    try await react(message, emoji, isRemoved: false)
  }

  /// Takes an emoji off a message.
  public func unreact(_ message: ChatMessage, emoji: String) async throws {
    try await react(message, emoji, isRemoved: true)
  }

  private func react(_ message: ChatMessage, _ emoji: String, isRemoved: Bool) async throws {
    guard let target = message.answerable else { return }
    guard TextRules.isEmoji(emoji) else { throw BackendError.client(.invalidRequest) }
    _ = try await send(.reaction(target: target, emoji: emoji, isRemoved: isRemoved))
  }

  /// Gives one of this user's texts other words (S0-66). Of any other message, and of one that the app made, nothing (S0-67).
  public func edit(_ message: ChatMessage, newText: String) async throws {
    guard let target = message.contents.reference, message.isOutgoing, message.kind == .text,
      !message.isDeleted
    else { return }
    _ = try await send(.edit(target: target, try TextBody(checked: newText, [])))
  }

  /// Takes a message of this user's away from everybody, as far as their apps follow (S0-69). Throws `forbidden` for
  /// somebody else's. Of one that the app made, nothing.
  public func deleteForEveryone(_ message: ChatMessage) async throws {
    guard let target = message.answerable, !message.isDeleted else { return }
    guard message.isOutgoing else { throw BackendError.client(.forbidden) }
    _ = try await send(.delete(target: target))
  }

  /// Takes a message away on this device alone, at once (S0-71). A failure of the store is told to `pb.configure(onError:)`.
  public func deleteForMe(_ message: ChatMessage) {
    guard let id = message.contents.reference ?? ClientMessageID(message.id), let session, let local else {
      return
    }
    if shown.window.contains(id) { take([.removed(id)]) }
    session.later { shell in try await shell.hide(id, in: local) }
  }

  // MARK: Reading

  /// This user has read up to this message, on every device of theirs; it never goes back (S0-96). Others hear of it where
  /// the user shares that (S0-102).
  public func markRead(upTo message: ChatMessage) async throws {
    guard let snapshot else { return }
    // No further than there is anything: a message that waits has no place yet.
    let seq = min(message.serverSeq, snapshot.summary.lastSeq)
    guard seq > snapshot.summary.readSeq else { return }
    _ = try await command { .markRead($0, upTo: seq) }
  }

  /// This user types, or no longer. Told at most every three seconds, an end at once (S0-94).
  public func setTyping(_ isTyping: Bool) {
    guard let session, let local, state == .active else { return }
    session.later { shell in await shell.setTyping(isTyping, in: local) }
  }

  /// Asks the server what is unread, and returns the count (S0-90). Throws `chat_is_draft` before the first message.
  @discardableResult
  public func refreshUnread() async throws -> Int {
    try refuseDraft()
    guard case .unread(let unread) = try await command({ .refreshUnread($0) }) else {
      throw BackendError.unexpectedAnswer(requestId: nil)
    }
    let view = ServerUnread(unread)
    set(\.serverUnread, view)
    return view.unreadCount
  }

  // MARK: Pushes

  /// Sets what of the chat wakes this user's devices (S0-87). Throws `chat_is_draft` before the first message.
  public func setNotifyScope(_ scope: NotifyScope) async throws {
    try refuseDraft()
    let wanted: PalbeChatCore.NotifyScope = scope == .all ? .all : .none
    _ = try await command { .setNotifyScope($0, wanted) }
    if let session, let local { try session.mentionScopes.set(scope == .mentions, local) }
    set(\.notifyScope, scope)
  }

  /// Asks the server what wakes this user's devices (S0-87). Throws `chat_is_draft` before the first message.
  @discardableResult
  public func refreshNotifyScope() async throws -> NotifyScope {
    try refuseDraft()
    guard case .notifyScope(let scope) = try await command({ .refreshNotifyScope($0) }) else {
      throw BackendError.unexpectedAnswer(requestId: nil)
    }
    guard let session, let local else { throw BackendError.client(.notSignedIn) }
    // Another device has set it to all: the wish for mentions is over.
    if scope == .all { try session.mentionScopes.set(false, local) }
    let result: NotifyScope =
      scope == .all ? .all : session.mentionScopes.contains(local) ? .mentions : .none
    set(\.notifyScope, result)
    return result
  }

  private func refuseDraft() throws {
    guard state != .draft else { throw BackendError.client(.chatIsDraft) }
  }

  // MARK: People

  /// Brings somebody in, on every device of theirs at once (S0-104). Throws `chat_is_direct`, `chat_is_draft`,
  /// `no_key_package` when they have no device that can be added, `group_full`, `user_not_found`.
  public func addMember(userId: String) async throws {
    let user = try person(userId)
    _ = try await command { .addMember($0, user) }
  }

  /// Takes somebody out, on every device of theirs at once (S0-104). Throws `chat_is_direct`, `chat_is_draft`, `forbidden`
  /// for who is not stronger, `not_a_member`.
  public func removeMember(userId: String) async throws {
    let user = try person(userId)
    _ = try await command { .removeMember($0, user) }
  }

  /// Gives somebody another role: for owners (S0-106). Throws `chat_is_direct`, `chat_is_draft`, `forbidden`, also when the
  /// last owner would be none, and `not_a_member`.
  public func setRole(_ role: ChatRole, for userId: String) async throws {
    let user = try person(userId)
    _ = try await command { .setRole($0, user, role.core) }
  }

  private func person(_ userId: String) throws -> UserID {
    guard kind == .group else { throw BackendError.client(.chatIsDirect) }
    try refuseDraft()
    guard let user = UserID(userId) else { throw BackendError.client(.userNotFound) }
    return user
  }

  /// Leaves (S0-103). What was said stays on this device. Throws `chat_is_draft`, `not_a_member`.
  public func leave() async throws {
    try refuseDraft()
    _ = try await command { .leave($0) }
  }

  /// Gives a group another name, for everybody; an empty one takes it away (S0-29). Throws `chat_is_direct`, `chat_is_draft`,
  /// and `forbidden` for members who are neither admin nor owner.
  public func rename(_ name: String) async throws {
    guard kind == .group else { throw BackendError.client(.chatIsDirect) }
    try refuseDraft()
    guard name.utf8.count <= ContentLimits.nameByteCount else { throw BackendError.client(.invalidRequest) }
    guard (myRole ?? .member) >= .admin else { throw BackendError.client(.forbidden) }
    _ = try await send(.control(.renamed(name)))
  }

  /// Has messages from now on disappear by default; nil: they stay (S0-81). It is cooperative: `disappearingAckedBy` says
  /// whose devices told that they follow, and nobody is forced. Throws `invalid_request` for a time that is not positive.
  public func setDisappearing(ttlSeconds: Int?, start: ExpiryStart = .send) async throws {
    let expiry = try ttlSeconds.map { try Expiry(ttlSeconds: $0, start: start) }
    _ = try await send(.control(.timer(expiry)))
  }

  /// Founds the chat anew when its members fell apart (`hasDiverged`): for owners and admins, and in a direct chat for both
  /// (section 3 #9). Throws `forbidden`, `chat_is_draft`.
  public func refound() async throws {
    try refuseDraft()
    _ = try await command { .reset($0) }
  }

  /// Allows or denies who began the chat (S3-31).
  public func setConsent(_ consent: ChatConsent) async throws {
    let (shell, chat) = try await reach(talks: false)
    try await shell.setConsent(consent.core, for: chat)
    set(\.consent, consent)
  }

  // MARK: Safety numbers

  /// What the two people of a direct chat compare (S0-107). Throws `chat_is_group`, and `chat_is_draft`: before the first
  /// message nobody's devices are known.
  public func safetyNumber() async throws -> SafetyNumberResult {
    guard kind == .direct else { throw BackendError.client(.chatIsGroup) }
    guard let peer = snapshot?.summary.peer else { throw BackendError.client(.chatIsDraft) }
    return try await safetyNumber(of: peer)
  }

  /// What this user and a member compare (S0-107). Throws `not_a_member`, `chat_is_draft`.
  public func safetyNumber(with userId: String) async throws -> SafetyNumberResult {
    guard let user = UserID(userId), members.contains(where: { $0.userId == userId }) else {
      throw BackendError.client(.notAMember)
    }
    return try await safetyNumber(of: user)
  }

  private func safetyNumber(of user: UserID) async throws -> SafetyNumberResult {
    try refuseDraft()
    let (shell, chat) = try await reach(talks: false)
    guard let session else { throw BackendError.client(.notSignedIn) }
    let local = try await shell.safetyDevices(of: session.me, in: chat)
    let remote = try await shell.safetyDevices(of: user, in: chat)
    return SafetyNumberResult(
      await SafetyNumber.result(local: session.me, local, remote: user, remote))
  }

  /// Remembers that the user compared the number: `trust` is `verified` from now on, until a device of theirs comes or goes
  /// (S0-109, S0-111).
  /// - Parameter deviceSetHash: `SafetyNumberResult.peerDeviceSetHash` of what was compared.
  ///
  /// Throws `integrity` when their devices are not, or no longer, those that were compared, `not_a_member`.
  public func verify(_ userId: String, deviceSetHash: Data) async throws {
    guard let user = UserID(userId), members.contains(where: { $0.userId == userId }) else {
      throw BackendError.client(.notAMember)
    }
    let (shell, chat) = try await reach(talks: false)
    try await shell.verify(user, deviceSetHash: [UInt8](deviceSetHash), in: chat)
    session?.forgetTrust(of: user)
    try await session?.readTrust(of: [user])
    want(.trust)
    set(\.shownTrust, foldedTrust)
  }
}

extension SafetyNumber {
  /// Thousands of hashes, away from the main actor.
  @concurrent static func result(
    local: UserID, _ localDevices: [PalbeChatCore.DeviceMaterial], remote: UserID,
    _ remoteDevices: [PalbeChatCore.DeviceMaterial]
  ) async -> PalbeChatCore.SafetyNumberResult {
    PalbeChatCore.SafetyNumber.result(
      local: local, localDevices: localDevices, remote: remote, remoteDevices: remoteDevices)
  }
}
