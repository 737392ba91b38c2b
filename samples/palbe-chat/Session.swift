import Foundation
import PalbeMessaging

/// Who is signed in, which chats there are, and which is open.
@MainActor
final class Session {
  let arguments: Arguments
  let contacts: Contacts
  let display: any Display
  private(set) var wording: Wording
  private var watchers: [ObjectIdentifier: ChatWatcher] = [:]
  private(set) var open: ChatWatcher?
  private var unsubscribe: (() -> Void)?
  /// The list that was shown, for `/open NUMBER`.
  var listed: [Chat] = []
  /// What the other's devices were when the number was shown, by user.
  var compared: [String: Data] = [:]
  /// Transfers that run: what is shown of each.
  private var transfers: [Int: (name: String, part: Double)] = [:]
  private var transferCount = 0
  private var isEnding = false
  /// Hears each line that is shown.
  var listener: ((String) -> Void)?
  /// Asks a person, where there is one.
  var passwordSource: ((_ question: String) async -> String)?
  /// Every change is a line: who types and who is there is in the status line otherwise.
  private let saysAll: Bool

  init(_ arguments: Arguments, display: any Display, saysAll: Bool) {
    self.arguments = arguments
    self.display = display
    self.saysAll = saysAll
    contacts = Contacts(path: arguments.contacts ?? arguments.data + "/contacts")
    wording = Wording(contacts: contacts, me: pb.auth.currentUser?.id ?? "")
    MessagingSettings.current.profiles = contacts
    MessagingSettings.current.asksConsent = arguments.asksConsent
  }

  func show(_ line: String) {
    display.show(line)
    listener?(line)
  }

  // MARK: Who is signed in

  /// Signs in as the command line says, and begins.
  func begin() async throws {
    if let email = arguments.email {
      if pb.auth.currentUser == nil {
        try await signIn(email, try await password(of: email), signsUp: arguments.signsUp)
      }
    }
    if pb.auth.currentUser == nil {
      show("nobody is signed in; /signin EMAIL or /signup EMAIL")
    } else {
      try await enter()
    }
  }

  /// From the file that the command line names, or asked for.
  func password(of email: String) async throws -> String {
    if let password = try arguments.password() { return password }
    guard let ask = passwordSource else { throw Misuse("no password; give --password-file FILE") }
    return await ask("password of \(safe(email)): ")
  }

  func signIn(_ email: String, _ password: String, signsUp: Bool) async throws {
    if signsUp {
      do { try await pb.auth.signUp(email: email, password: password) } catch let error as BackendError
        where error.code == .accountExists
      {
        try await pb.auth.signIn(email: email, password: password)
      }
    } else {
      try await pb.auth.signIn(email: email, password: password)
    }
  }

  /// After a sign-in: the device enrols, chats are listened to, and others may know the name.
  func enter() async throws {
    guard let user = pb.auth.currentUser else { throw Misuse("nobody is signed in") }
    wording = Wording(contacts: contacts, me: user.id)
    unsubscribe = pb.messaging.chats.onChange { [weak self] chats in self?.watch(chats) }
    watch(pb.messaging.chats.all)
    try await pb.messaging.start()
    if let name = arguments.ownName { try contacts.add(user.id, name: name) }
    show("signed in as \(contacts.shown(user.id)), \(user.id)")
    refreshStatus()
  }

  func leave() {
    unsubscribe?()
    unsubscribe = nil
    for watcher in watchers.values { watcher.stop() }
    (watchers, open, listed) = ([:], nil, [])
    wording = Wording(contacts: contacts, me: "")
    refreshStatus()
  }

  func end() {
    isEnding = true
    leave()
    display.end()
  }

  // MARK: Chats

  private func watch(_ chats: [Chat]) {
    for chat in chats { _ = watcher(of: chat) }
    refreshStatus()
  }

  @discardableResult
  private func watcher(of chat: Chat) -> ChatWatcher {
    if let known = watchers[ObjectIdentifier(chat)] { return known }
    let watcher = ChatWatcher(
      chat, wording: wording,
      say: { [weak self, weak chat] line in
        guard let self, let chat else { return }
        say(line, about: chat)
      }, changed: { [weak self] in self?.refreshSoon() })
    watchers[ObjectIdentifier(chat)] = watcher
    chat.onMentionElevation = { [weak self] message in
      guard let self else { return }
      show("\(wording.name(message.senderUserId)) mentioned you")
    }
    return watcher
  }

  private func say(_ line: String, about chat: Chat) {
    if open?.chat === chat {
      if !saysAll, line.hasSuffix(" types") || line == "nobody types" { return }
      show(line)
      readSoon()
    } else if saysAll || line.contains(": ") {
      show("(\(safe(chat.title))) \(line)")
    }
  }

  func enter(_ chat: Chat) {
    open?.isOpen = false
    open = watcher(of: chat)
    show("open: \(safe(chat.title)), \(chat.kind.rawValue), \(chat.state.rawValue)")
    open?.isOpen = true
    readSoon()
    refreshStatus()
  }

  func closeChat() {
    open?.chat.setTyping(false)
    open?.isOpen = false
    open = nil
    refreshStatus()
  }

  /// The open chat; what most commands need.
  func opened() throws -> ChatWatcher {
    guard let open else { throw Misuse("no chat is open; /dm NAME, /group TITLE NAME… or /open CHAT") }
    return open
  }

  func user(_ word: String) throws -> String {
    guard let user = contacts.user(word) else {
      throw Misuse("nobody is called '\(safe(word))'; /contact NAME usr_… writes it down")
    }
    return user
  }

  // MARK: Read marks

  private var isReading = false

  /// What is on the screen is read.
  private func readSoon() {
    guard !isReading, !isEnding else { return }
    isReading = true
    Task {
      isReading = false
      guard let chat = open?.chat, chat.state == .active, chat.unreadCount > 0,
        let last = chat.messages.last(where: { !$0.isOutgoing })
      else { return }
      try? await chat.markRead(upTo: last)
    }
  }

  // MARK: Status

  private var willRefresh = false
  private func refreshSoon() {
    guard !willRefresh else { return }
    willRefresh = true
    Task {
      willRefresh = false
      refreshStatus()
    }
  }

  func refreshStatus() {
    guard !isEnding else { return }
    let downloads = transfers.sorted { $0.key < $1.key }.map { "\($0.value.name) \(bar($0.value.part))" }
    display.setStatus(uploads + downloads + [statusLine])
  }

  private var uploads: [String] {
    guard let chat = open?.chat else { return [] }
    return chat.messages.compactMap { message in
      guard message.delivery == .pending, let name = message.attachment?.filename,
        let part = chat.uploadProgress(of: message)
      else { return nil }
      return "put \(safe(name)) \(bar(part))"
    }
  }

  var statusLine: String {
    var parts = [wording.me.isEmpty ? "signed out" : contacts.shown(wording.me)]
    if let chat = open?.chat {
      parts.append(safe(chat.title) + (chat.kind == .group ? " (\(chat.members.count))" : ""))
      if chat.state != .active { parts.append(chat.state.rawValue) }
      if !chat.typing.isEmpty { parts.append("\(wording.names(chat.typing.map(\.userId))) types…") }
      let online = chat.onlineMembers.map(\.userId).filter { $0 != wording.me }
      if !online.isEmpty { parts.append("online: \(wording.names(online))") }
      if let own = chat.messages.last(where: { $0.isOutgoing }) { parts.append(wording.ticks(own, in: chat)) }
      if chat.trust == .verified { parts.append("verified") }
      if let timer = chat.disappearing { parts.append("timer \(wording.timer(timer))") }
      if chat.isMuted { parts.append("muted") }
    }
    let unread = pb.auth.currentUser == nil ? 0 : pb.messaging.chats.all.reduce(0) { $0 + $1.unreadCount }
    if unread > 0 { parts.append("\(unread) unread") }
    return parts.joined(separator: " · ")
  }

  /// Shows a bar while `work` runs.
  func transfer<T>(_ name: String, _ work: (_ report: @escaping @Sendable (Double) -> Void) async throws -> T)
    async
    rethrows -> T
  {
    transferCount += 1
    let id = transferCount
    transfers[id] = (name, 0)
    refreshStatus()
    defer {
      transfers[id] = nil
      refreshStatus()
    }
    return try await work { part in
      Task { @MainActor [weak self] in
        guard let self, transfers[id] != nil else { return }
        transfers[id]?.part = part
        refreshSoon()
      }
    }
  }
}
