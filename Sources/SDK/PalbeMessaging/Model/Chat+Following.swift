import Foundation
import PalbeChatCore
import PalbeUnits

/// How a chat follows what the shell tells. A property is set only where its value differs, so that nobody looks anew for
/// nothing.
extension Chat {
  /// Sets a property where its value differs; returns whether it does.
  @discardableResult
  func set<Value: Equatable>(_ property: ReferenceWritableKeyPath<Chat, Value>, _ value: Value) -> Bool {
    guard self[keyPath: property] != value else { return false }
    self[keyPath: property] = value
    return true
  }

  /// A draft that no store had is this chat from now on.
  func adopt(_ snapshot: ChatSnapshot, in session: MessagingSession) {
    (plan, local) = (nil, snapshot.id)
    (self.session, messenger) = (session, session.messenger)
    take(snapshot)
    // What was asked for while there was nothing to read.
    let asked = wanted
    wanted = []
    for what: Wanted in [.transcript, .receipts, .trust, .acknowledgements] where asked.contains(what) {
      want(what)
    }
  }

  /// Returns whether anything that is shown has changed.
  @discardableResult
  func take(_ snapshot: ChatSnapshot) -> Bool {
    guard snapshot != self.snapshot, let session else { return false }
    self.snapshot = snapshot
    let summary = snapshot.summary
    var isChanged = set(\.id, summary.group?.text ?? snapshot.id.text)
    func follow(_ changed: Bool) { isChanged = isChanged || changed }
    follow(set(\.state, ChatState(summary.state)))
    follow(set(\.createdAt, Date(summary.createdAt)))
    follow(set(\.lastActivity, Date(summary.lastActivity)))
    follow(set(\.unreadCount, summary.unreadCount))
    follow(set(\.serverUnread, summary.serverUnread.map { ServerUnread($0) }))
    follow(set(\.notifyScope, scope(of: summary)))
    follow(set(\.disappearing, summary.profile.timer.map { DisappearingSetting($0) }))
    // The fold never lets them fall; what comes late is not believed over it (S0-91).
    follow(set(\.deliveredUpTo, max(deliveredUpTo, summary.deliveredUpTo)))
    follow(set(\.readUpTo, max(readUpTo, summary.readUpTo)))
    follow(set(\.consent, ChatConsent(summary.consent)))
    follow(set(\.hasDiverged, snapshot.hasDiverged))
    if let head = snapshot.head { follow(set(\.epoch, head.epoch)) }
    follow(takeLastMessage(summary.lastMessage))
    follow(takeMembers(snapshot, me: session.me))
    follow(takeOnline(snapshot.online))
    follow(set(\.title, shownTitle))
    if wanted.contains(.acknowledgements) { read(.acknowledgements) }
    return isChanged
  }

  private func scope(of summary: ChatSummary) -> NotifyScope? {
    switch summary.notifyScope {
    case .all: .all
    case .some(.none): session?.mentionScopes.contains(snapshotID) == true ? .mentions : NotifyScope.none
    case nil: nil
    }
  }

  private var snapshotID: ChatID { snapshot!.id }

  private func takeLastMessage(_ preview: MessagePreview?) -> Bool {
    guard let preview else {
      guard last.message != nil else { return false }
      last.message = nil
      return true
    }
    let new = maker?.message(preview)
    // Equality is by id alone.
    guard let old = lastMessage, let new, old.id == new.id, old.text == new.text, old.kind == new.kind,
      old.isDeleted == new.isDeleted, old.delivery == new.delivery, old.serverSeq == new.serverSeq,
      old.senderDisplayName == new.senderDisplayName
    else {
      last.message = new
      return true
    }
    return false
  }

  private func takeMembers(_ snapshot: ChatSnapshot, me: UserID) -> Bool {
    var people = snapshot.members.map { Messenger.member($0.user.text, ChatRole($0.role)) }
    if people.isEmpty, snapshot.head == nil, snapshot.summary.kind == .direct,
      let peer = snapshot.summary.peer
    {
      // Only the list was read: of a direct chat that says it all but the roles.
      people = Set([me, peer]).sorted().map { Messenger.member($0.text, .member) }
    }
    // A chat that is over keeps its people as they were seen last.
    let isOver = snapshot.summary.state == .left || snapshot.summary.state == .removed
    var isChanged = set(\.myRole, snapshot.members.first { $0.user == me }.map { ChatRole($0.role) })
    if !people.isEmpty || !isOver { isChanged = set(\.members, people) || isChanged }
    if isChanged {
      _ = takeTyping(typingUsers)
      _ = set(\.onlineMembers, shownOnline)
      if wanted.contains(.trust) { read(.trust) }
    }
    return isChanged
  }

  /// S0-28.
  var shownTitle: String {
    if let name = snapshot?.summary.profile.name, !name.isEmpty { return name }
    if case .group(let title?, _) = plan, !title.isEmpty { return title }
    if kind == .direct, let name = peerId.flatMap({ MessagingSettings.current.profiles?.displayName(of: $0) })
    {
      return name
    }
    guard state != .draft, let group = snapshot?.summary.group else { return "Chat" }
    return "Group \(group.text.suffix(4))"
  }

  private var peerId: String? {
    if case .direct(let peer) = plan { return peer }
    return snapshot?.summary.peer?.text
  }

  /// What makes messages of rows; nil while no store has the chat.
  var maker: MessageMaker? {
    guard let session, let local else { return nil }
    return MessageMaker(
      me: session.me, chat: local, source: session.source, profiles: MessagingSettings.current.profiles)
  }

  /// Another directory, or other names in it.
  func namesChanged() {
    guard let snapshot else { return }
    self.snapshot = nil
    take(snapshot)
    // Names are in messages too: they are read again, as at opening.
    reload()
  }

  // MARK: Who is there

  /// Replaces what was told before.
  func takeTyping(_ users: [UserID]) -> Bool {
    typingUsers = users
    return set(\.typing, people(users))
  }

  func takePresence(_ user: UserID, _ isOnline: Bool, _ at: WallTime) -> Bool {
    presences[user] = Presence(isOnline: isOnline, lastSeen: Date(at))
    _ = set(\.onlineMembers, shownOnline)
    return true
  }

  private func takeOnline(_ users: [UserID]) -> Bool {
    let online = Set(users)
    var new = presences
    for (user, presence) in presences where presence.isOnline && !online.contains(user) {
      new[user] = Presence(isOnline: false, lastSeen: presence.lastSeen)
    }
    for user in online where new[user]?.isOnline != true {
      new[user] = Presence(isOnline: true, lastSeen: new[user]?.lastSeen)
    }
    guard set(\.presences, new) else { return false }
    _ = set(\.onlineMembers, shownOnline)
    return true
  }

  private var shownOnline: [ChatMember] {
    members.filter { member in UserID(member.userId).map { presences[$0]?.isOnline == true } ?? false }
  }

  private func people(_ users: [UserID]) -> [ChatMember] {
    users.map { user in
      members.first { $0.userId == user.text } ?? Messenger.member(user.text, .member)
    }
  }

  // MARK: Receipts, uploads, trust

  func takeReceipts(_ new: [ChatReceipt]) -> Bool {
    var all = receipts
    var (delivered, read) = (deliveredUpTo, readUpTo)
    for receipt in new {
      let old = all[receipt.user] ?? ChatReceipt(user: receipt.user, deliveredSeq: 0, readSeq: 0)
      all[receipt.user] = ChatReceipt(
        user: receipt.user, deliveredSeq: max(old.deliveredSeq, receipt.deliveredSeq),
        readSeq: max(old.readSeq, receipt.readSeq))
      delivered = max(delivered, receipt.deliveredSeq)
      read = max(read, receipt.readSeq)
    }
    var isChanged = set(\.receipts, all)
    isChanged = set(\.deliveredUpTo, delivered) || isChanged
    return set(\.readUpTo, read) || isChanged
  }

  func takeUpload(_ message: ClientMessageID, _ done: Int64, _ total: Int64) {
    uploads[message] = total > 0 ? min(1, max(0, Double(done) / Double(total))) : 0
  }

  func followTrust(of user: UserID) -> Bool {
    guard wanted.contains(.trust), members.contains(where: { $0.userId == user.text }) else { return false }
    return set(\.shownTrust, foldedTrust)
  }

  /// What is known of the others' devices, as one.
  var foldedTrust: ChatTrust {
    guard let session else { return .unverified }
    let others = members.compactMap { UserID($0.userId) }.filter { $0 != session.me }
    var result = ChatTrust.verified
    for user in others {
      switch session.trust(of: user) {
      case .changed(let change): return .changed(KeyChangeEvent(change))
      case .unverified, nil: result = .unverified
      case .verified: break
      }
    }
    return others.isEmpty ? .unverified : result
  }

  // MARK: What is read when somebody looks

  /// Somebody looks at it: reads it, once, in the background.
  func want(_ what: Wanted) {
    if what == .transcript { session?.touch(self) }
    guard !wanted.contains(what) else { return }
    wanted.insert(what)
    read(what)
  }

  private func read(_ what: Wanted) {
    guard local != nil, let session, !reading.contains(what) else { return }
    reading.insert(what)
    Task {
      defer { self.reading.remove(what) }
      do {
        switch what {
        case .transcript: try await self.load()
        case .receipts: try await self.readReceipts()
        case .trust:
          let others = self.members.compactMap { UserID($0.userId) }.filter { $0 != session.me }
          try await session.readTrust(of: others)
          self.set(\.shownTrust, self.foldedTrust)
        case .acknowledgements: try await self.readAcknowledgements()
        default: break
        }
      } catch {
        // The next look tries again.
        self.wanted.remove(what)
        session.report(error)
      }
    }
  }

  private func readReceipts() async throws {
    guard let session, let local else { return }
    _ = takeReceipts(try await session.openShell().receipts(in: local))
  }

  private func readAcknowledgements() async throws {
    guard let session, let local else { return }
    set(\.acknowledgedBy, try await session.openShell().disappearingAckedBy(local).map(\.text))
  }
}
