import PalbeMLS
import PalbeUnits

/// Groups that the user is in and this device is not: others add it, or after a while it comes in by itself (2.9h).
extension ChatEngine {
  mutating func gotGroups(_ result: Result<ServerAnswer, ServerRefusal>) throws(MLSStorageError) {
    guard case .success(.groups(let groups, let hasMore)) = result else { return }
    for group in groups where chat(named: group.id) == nil { strangers.insert(group.id) }
    if hasMore, let last = groups.last { ask(.groups(after: last.id), for: .groups) }
    guard !strangers.isEmpty, timers[.strangers] == nil else { return }
    timers[.strangers] = now.instant + configuration.housekeepingWait * 3
  }

  /// Those that no welcome came for are looked at.
  mutating func lookAtStrangers() {
    for group in strangers.sorted() where chat(named: group) == nil {
      ask(.group(group), for: .stranger(group))
    }
    strangers = []
  }

  mutating func viewedStranger(
    _ group: GroupID, _ result: Result<ServerAnswer, ServerRefusal>
  ) throws(MLSStorageError) {
    guard case .success(.group(let view)) = result, chat(named: group) == nil, view.members.contains(me),
      !view.group.isDirect || view.members.count <= 2
    else { return }
    var transaction = MLSTransaction()
    let chat: Chat
    let peer = view.members.first { $0 != me } ?? me
    if view.group.isDirect, let known = byPeer[peer].flatMap({ chats[$0] }) {
      // A founding of the pair finds the group by itself.
      guard known.head.standing == .draft || known.head.standing == .left else { return }
      chat = known
      try load(chat)
    } else {
      // Roles come with the group; until then nobody is anything.
      var shape = GroupShape(isDirect: view.group.isDirect, founder: me, others: view.members)
      for user in shape.users { shape.members[user]?.role = .member }
      chat = makeChat(
        shape, title: nil, consent: configuration.asksConsent ? .unknown : .allowed, &transaction)
    }
    bind(chat, to: group, &transaction)
    chat.head.standing = .adopting
    chat.head.generation = view.group.generation
    put(.rejoin, for: chat, &transaction)
    save(chat, &transaction)
    try storage.apply(transaction)
    index(chat)
    changed(chat)
    try advance(chat)
  }

  /// The commits between here and the others are gone: the device joins them by one of its own, and a gap shows (2.9i).
  mutating func comeBack(_ chat: Chat) throws(MLSStorageError) {
    guard chat.head.standing == .active else { return }
    try load(chat)
    forgetRequests(of: chat)
    chat.sending = .idle
    var transaction = MLSTransaction()
    unsealAll(in: chat, &transaction)
    finishAll(chat, .failed(code: "stale_epoch"), &transaction)
    chat.head.standing = .adopting
    put(.rejoin, for: chat, &transaction)
    let changes = try fold(.historyGap, by: nil, at: chat.head.processedSeq, in: chat, &transaction)
    save(chat, &transaction)
    try storage.apply(transaction)
    tell(changes, of: chat)
    try advanceOperations(of: chat)
  }
}
