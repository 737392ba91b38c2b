import PalbeMLS
import PalbeUnits

/// Who types, in memory alone.
struct TypingState {
  /// Others' devices, until when.
  var others: [DeviceName: Instant] = [:]
  /// This user's own: whether, and when the server was told last.
  var isOn = false
  var toldAt: Instant?
  /// The server was told that it is on.
  var isTold = false

  var users: [UserID] { Set(others.keys.map(\.user)).sorted() }
}

/// What the socket brings and takes: nothing of it is durable but watermarks.
extension ChatEngine {
  mutating func connection(isUp: Bool) throws(MLSStorageError) {
    isConnected = isUp
    // What belongs to a socket ended with it.
    forget { purpose in
      switch purpose {
      case .subscription, .queueSubscription: true
      default: false
      }
    }
    guard isUp else {
      for id in chats.keys.sorted() {
        guard let chat = chats[id] else { continue }
        for user in chat.online.sorted() { events.append(.presence(id, user, isOnline: false)) }
        chat.online = []
        chat.typing.isTold = false
        guard !chat.typing.others.isEmpty else { continue }
        chat.typing.others = [:]
        tellTyping(in: chat)
      }
      return
    }
    guard isReady else { return }
    askAllAgain()
    ask(.subscribeDevice(device.name.device), for: .queueSubscription)
    for id in chats.keys.sorted() {
      guard let chat = chats[id] else { continue }
      subscribe(chat)
      if chat.peerWait != nil { try askForPeer(chat) }
      // The cursor may have moved on another device meanwhile (2.9g).
      if chat.head.standing == .active, let group = chat.head.group {
        ask(.unread(group), for: .unread(id, nil))
      }
    }
    fetchQueue()
  }

  mutating func subscribe(_ chat: Chat) {
    guard isConnected, chat.head.standing == .active, let groupID = chat.head.groupID else { return }
    ask(.subscribe(groupID: groupID), for: .subscription(chat.id))
  }

  mutating func unsubscribe(_ groupID: [UInt8]) {
    guard isConnected else { return }
    ask(.unsubscribe(groupID: groupID), for: .subscription(nil))
  }

  mutating func subscribed(_ id: ChatID?, _ result: Result<ServerAnswer, ServerRefusal>) {
    guard let id, let chat = chats[id], case .success(.subscribed(_, let online, _)) = result else {
      return
    }
    for user in online.sorted() where user != me && chat.online.insert(user).inserted {
      events.append(.presence(id, user, isOnline: true))
    }
  }

  mutating func take(_ event: LiveEvent) throws(MLSStorageError) {
    switch event {
    case .queueChanged: fetchQueue()
    case .deviceRevoked: try revoked()
    case .ownRead(let group, let seq):
      if let chat = chat(named: group) { try readElsewhere(chat, upTo: seq + chat.head.seqBase) }
    case .typing(let group, let user, let device, let isOn):
      guard user != me, let chat = chat(named: group) else { return }
      let name = DeviceName(user: user, device: device)
      chat.typing.others[name] = isOn ? now.instant + configuration.typingLifetime : nil
      scheduleTyping(of: chat)
      tellTyping(in: chat)
    case .presence(let group, let user, let isOnline):
      guard user != me, let chat = chat(named: group) else { return }
      if isOnline { chat.online.insert(user) } else { chat.online.remove(user) }
      events.append(.presence(chat.id, user, isOnline: isOnline))
      // Who is gone types no more (section 3 #38).
      if !isOnline, clearTyping(of: user, in: chat) { tellTyping(in: chat) }
    case .delivered(let group, let user, _, let seq):
      guard user != me, let chat = chat(named: group) else { return }
      try note(.delivered, by: user, upTo: seq, in: chat)
    case .read(let group, let user, let seq):
      guard let chat = chat(named: group) else { return }
      guard user != me else { return try readElsewhere(chat, upTo: seq + chat.head.seqBase) }
      try note(.read, by: user, upTo: seq, in: chat)
    }
  }

  private mutating func note(
    _ kind: ReceiptKind, by user: UserID, upTo seq: Int64, in chat: Chat
  ) throws(MLSStorageError) {
    let base = chat.head.seqBase
    guard seq <= TranscriptPosition.maximumSeq else { return }
    var hasMoved = false
    try change(chat) { (transcript, transaction) throws(MLSStorageError) in
      hasMoved = try transcript.note(kind, by: user, upTo: seq + base, in: &transaction)
      return []
    }
    if hasMoved { events.append(.receipts(chat.id)) }
  }

  // MARK: Typing

  /// The user types, or no longer (S0-94): told at most every three seconds, an end at once.
  package mutating func setTyping(_ isOn: Bool, in id: ChatID, at now: ChatTime) {
    guard !isStopped, let chat = chats[id] else { return }
    self.now = now
    chat.typing.isOn = isOn
    if isOn {
      typingOut(id)
    } else {
      timers[.typingOut(id)] = nil
      if chat.typing.isTold { tellTyping(false, in: chat) }
    }
  }

  mutating func typingOut(_ id: ChatID) {
    guard let chat = chats[id], chat.typing.isOn else { return }
    if let told = chat.typing.toldAt, chat.typing.isTold, now.instant - told < configuration.typingInterval {
      timers[.typingOut(id)] = told + configuration.typingInterval
      return
    }
    tellTyping(true, in: chat)
    // It lapses at the others after six seconds, so it is said again for as long as it lasts.
    timers[.typingOut(id)] = now.instant + configuration.typingInterval
  }

  private mutating func tellTyping(_ isOn: Bool, in chat: Chat) {
    guard isConnected, isReady, chat.head.standing == .active, let group = chat.head.group else { return }
    chat.typing.isTold = isOn
    chat.typing.toldAt = now.instant
    ask(.setTyping(group, isOn), for: .typing)
  }

  mutating func typingIn(_ id: ChatID) {
    guard let chat = chats[id] else { return }
    chat.typing.others = chat.typing.others.filter { $0.value > now.instant }
    scheduleTyping(of: chat)
    tellTyping(in: chat)
  }

  private mutating func scheduleTyping(of chat: Chat) {
    timers[.typingIn(chat.id)] = chat.typing.others.values.min()
  }

  func clearTyping(of user: UserID, in chat: Chat) -> Bool {
    let before = chat.typing.others.count
    chat.typing.others = chat.typing.others.filter { $0.key.user != user }
    return chat.typing.others.count != before
  }

  mutating func tellTyping(in chat: Chat) { events.append(.typing(chat.id, chat.typing.users)) }
}
