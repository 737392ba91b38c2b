import Foundation
import Palbase
import PalbeChatCore
import PalbeUnits

/// A user's chats while they are signed in: the open shell, and one object for each chat.
@MainActor final class MessagingSession {
  let me: UserID
  let runtime: PalbaseRuntime
  private(set) weak var messenger: Messenger?
  /// The user is signed in.
  var isCurrent = true

  private var chats: [ChatID: Chat] = [:]
  private var byGroup: [GroupID: ChatID] = [:]
  private var byPeer: [UserID: Chat] = [:]
  /// Drafts that wait for the store, by whom they are with.
  private var expected: [UserID: Chat] = [:]
  private var twins: [ChatID: [Chat]] = [:]
  private var trusts: [UserID: StoredTrust] = [:]
  /// Chats whose wish for pushes is `mentions`, which only this device knows.
  lazy var mentionScopes = MentionScopes(runtime.vault, me)

  private var shell: MessagingShell?
  private var opening: Task<MessagingShell, any Error>?
  private var closing: Task<Void, Never>?
  private var isTalking = false
  /// What happens in order and is waited for by nobody.
  private let errands: AsyncStream<@MainActor (MessagingSession) async -> Void>.Continuation
  private var errandRunner: Task<Void, Never>?

  /// Transcripts held in memory at once; of more, that which was looked at longest ago goes.
  static let loadedLimit = 64
  private var loaded: Set<Chat> = []
  private var touches: [ObjectIdentifier: UInt64] = [:]
  private var touchCount: UInt64 = 0

  init(_ me: UserID, _ runtime: PalbaseRuntime, _ messenger: Messenger) {
    (self.me, self.runtime, self.messenger) = (me, runtime, messenger)
    let (stream, continuation) = AsyncStream.makeStream(
      of: (@MainActor (MessagingSession) async -> Void).self)
    errands = continuation
    errandRunner = Task { [weak self] in
      for await errand in stream {
        guard let self else { return }
        await errand(self)
      }
    }
  }

  deinit { errands.finish() }

  // MARK: The shell

  /// The open shell. Opening takes no network.
  func openShell() async throws -> MessagingShell {
    guard isCurrent else { throw BackendError.client(.notSignedIn) }
    if let shell { return shell }
    if let opening { return try await opening.value }
    let (runtime, me) = (runtime, me)
    let settings = ShellSettings(MessagingSettings.current)
    let sink: ShellSink = { [weak self] events in self?.take(events) }
    let task = Task { () async throws -> MessagingShell in
      defer { self.opening = nil }
      await self.closing?.value
      let shell = try await MessagingShell.open(runtime, user: me, settings: settings, sink: sink)
      guard self.isCurrent else {
        await shell.close()
        throw BackendError.client(.notSignedIn)
      }
      (self.shell, self.isTalking) = (shell, false)
      // Somebody else may have used the stores meanwhile.
      for chat in self.loaded { chat.reload() }
      return shell
    }
    opening = task
    return try await task.value
  }

  /// Opens the shell; false when that takes longer than anybody who waits for a screen should. It goes on opening.
  func opensSoon() async -> Bool {
    guard shell == nil else { return true }
    let (outcomes, outcome) = AsyncStream.makeStream(of: Bool.self)
    Task {
      _ = try? await self.openShell()
      outcome.yield(true)
    }
    let patience = Task { [time = runtime.time] in
      try await time.sleep(.seconds(1))
      outcome.yield(false)
    }
    defer { patience.cancel() }
    for await isOpen in outcomes { return isOpen }
    return false
  }

  /// The open shell, enrolling and connected as far as it can be.
  func talkingShell() async throws -> MessagingShell {
    let shell = try await openShell()
    if !isTalking {
      isTalking = true
      await shell.start()
    }
    return shell
  }

  /// The user is gone, or somebody else is there: nothing of theirs is told any more.
  func end() {
    isCurrent = false
    let (old, before) = (shell, closing)
    (shell, isTalking) = (nil, false)
    closing = Task {
      await before?.value
      await old?.close()
    }
  }

  /// Ends, and returns when the stores are free.
  func close() async {
    end()
    if let opening { _ = try? await opening.value }
    await closing?.value
  }

  /// Does something in the order of the calls; a failure is told to `pb.configure(onError:)`.
  func later(_ errand: @escaping @MainActor (MessagingShell) async throws -> Void) {
    errands.yield { session in
      do { try await errand(try await session.talkingShell()) } catch { session.report(error) }
    }
  }

  func report(_ error: any Error) {
    if let error = error as? BackendError, error.code != .notSignedIn { messenger?.host.report(error) }
  }

  /// Where attachments of this user are fetched.
  var source: AttachmentSource {
    AttachmentSource { [weak self] origin, progress in
      guard let shell = try await self?.talkingShell() else { throw BackendError.client(.notSignedIn) }
      return shell.download(origin.descriptor, of: origin.message, in: origin.chat, progress: progress)
    }
  }

  // MARK: Chats

  func known(_ chat: ChatID) -> Chat? { chats[chat] }

  func chat(with peer: UserID) -> Chat? { byPeer[peer] ?? expected[peer] }

  /// Has a draft be the chat with this user when the store says which that is. False when it has one already.
  func expect(_ chat: Chat, _ peer: String) -> Bool {
    guard let peer = UserID(peer), byPeer[peer] == nil, expected[peer] == nil || expected[peer] === chat
    else { return false }
    expected[peer] = chat
    return true
  }

  func directChat(with peer: UserID) async throws -> Chat {
    let chat: Chat
    if let known = byPeer[peer] {
      chat = known
    } else {
      chat = object(for: try await openShell().directChat(with: peer))
      finish([chat])
    }
    try? await chat.load()
    return chat
  }

  func groupChat(title: String?, members: [UserID]) async throws -> Chat {
    let chat = object(for: try await openShell().groupChat(title: title, members: members))
    finish([chat])
    try? await chat.load()
    return chat
  }

  /// Puts a draft group into the store.
  func bindGroup(_ chat: Chat, title: String?, members: [UserID]) async throws {
    let snapshot = try await openShell().groupChat(title: title, members: members)
    register(chat, snapshot)
    chat.adopt(snapshot, in: self)
    finish([chat])
  }

  func chat(id: String) async throws -> Chat? {
    let shell = try await openShell()
    let local: ChatID?
    if let group = GroupID(id) {
      if let known = byGroup[group] { local = known } else { local = try await shell.chat(group) }
    } else {
      local = ChatID(id)
    }
    guard let local else { return nil }
    let chat: Chat
    if let known = chats[local] {
      chat = known
    } else {
      guard let snapshot = try await shell.snapshot(local) else { return nil }
      chat = object(for: snapshot)
      finish([chat])
    }
    try? await chat.load()
    return chat
  }

  /// The one object of a chat.
  private func object(for snapshot: ChatSnapshot) -> Chat {
    if let known = chats[snapshot.id] { return known }
    let chat: Chat
    if snapshot.summary.kind == .direct, let peer = snapshot.summary.peer,
      let draft = expected.removeValue(forKey: peer)
    {
      chat = draft
      register(chat, snapshot)
      chat.adopt(snapshot, in: self)
    } else {
      chat = Chat(snapshot, in: self)
      register(chat, snapshot)
    }
    return chat
  }

  private func register(_ chat: Chat, _ snapshot: ChatSnapshot) {
    chats[snapshot.id] = chat
    if let group = snapshot.summary.group { byGroup[group] = snapshot.id }
    if snapshot.summary.kind == .direct, let peer = snapshot.summary.peer { byPeer[peer] = chat }
  }

  /// A draft that an app got while nobody was signed in, of a chat that this user had all along: it shows the same.
  func pair(_ draft: Chat, with chat: Chat) {
    guard draft !== chat, let snapshot = chat.snapshot else { return }
    twins[snapshot.id, default: []].append(draft)
    draft.adopt(snapshot, in: self)
  }

  private func objects(of id: ChatID) -> [Chat] {
    guard let chat = chats[id] else { return [] }
    return [chat] + (twins[id] ?? [])
  }

  /// The user is back: what was there is shown again.
  func relist() { finish(Array(chats.values)) }

  private func finish(_ changed: [Chat]) {
    guard isCurrent, let list = messenger?.list else { return }
    if list.follow(changed) { list.tell() }
  }

  // MARK: What the shell tells

  func take(_ events: [ShellEvent]) {
    // Of somebody who is no longer signed in nothing is shown.
    guard isCurrent else {
      if events.contains(where: { if case .ended = $0 { true } else { false } }) {
        (shell, isTalking) = (nil, false)
      }
      return
    }
    var visible: Set<Chat> = []
    for event in events {
      switch event {
      case .chats(let snapshots, _):
        for snapshot in snapshots { if let chat = take(snapshot) { visible.insert(chat) } }
      case .transcript(let id, let changes):
        for chat in objects(of: id) {
          chat.take(changes)
          visible.insert(chat)
        }
      case .typing(let id, let users):
        for chat in objects(of: id) where chat.takeTyping(users) { visible.insert(chat) }
      case .presence(let id, let user, let isOnline, let at):
        for chat in objects(of: id) where chat.takePresence(user, isOnline, at) { visible.insert(chat) }
      case .receipts(let id, let receipts):
        for chat in objects(of: id) where chat.takeReceipts(receipts) { visible.insert(chat) }
      case .upload(let id, let message, let done, let total):
        for chat in objects(of: id) { chat.takeUpload(message, done, total) }
      case .trustChanged(let user, let trust):
        trusts[user] = trust
        for id in chats.keys {
          for chat in objects(of: id) where chat.followTrust(of: user) { visible.insert(chat) }
        }
      case .epochChanged(let id, let epoch, _):
        for chat in objects(of: id) where chat.set(\.epoch, epoch) { visible.insert(chat) }
      case .failure(let error): messenger?.host.report(error)
      case .ended: (shell, isTalking) = (nil, false)
      }
    }
    if !visible.isEmpty { finish(Array(visible)) }
  }

  private func take(_ snapshot: ChatSnapshot) -> Chat? {
    if let chat = chats[snapshot.id] {
      if let group = snapshot.summary.group { byGroup[group] = snapshot.id }
      for twin in twins[snapshot.id] ?? [] { twin.take(snapshot) }
      return chat.take(snapshot) ? chat : nil
    }
    // A draft that nobody has asked for is made when somebody does.
    if snapshot.summary.state == .draft,
      snapshot.summary.peer.map({ expected[$0] == nil }) ?? true
    {
      return nil
    }
    return object(for: snapshot)
  }

  // MARK: Trust

  /// What is known of somebody's devices; nil: it was not read yet.
  func trust(of user: UserID) -> StoredTrust? { trusts[user] }

  /// It is read anew: it was changed here.
  func forgetTrust(of user: UserID) { trusts[user] = nil }

  func readTrust(of users: [UserID]) async throws {
    let shell = try await openShell()
    for user in users where trusts[user] == nil {
      let trust = try await shell.trust(of: user)
      if trusts[user] == nil { trusts[user] = trust }
    }
  }

  // MARK: Memory

  /// Somebody looks at the chat's transcript.
  func touch(_ chat: Chat) {
    touchCount += 1
    touches[ObjectIdentifier(chat)] = touchCount
    guard chat.isLoaded, loaded.insert(chat).inserted, loaded.count > Self.loadedLimit else { return }
    let oldest = loaded.min {
      touches[ObjectIdentifier($0), default: 0] < touches[ObjectIdentifier($1), default: 0]
    }
    if let oldest, oldest !== chat {
      loaded.remove(oldest)
      touches[ObjectIdentifier(oldest)] = nil
      oldest.unload()
    }
  }

  func namesChanged() {
    for chat in chats.values { chat.namesChanged() }
    messenger?.list.tell()
  }
}
