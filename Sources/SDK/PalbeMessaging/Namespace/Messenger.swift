import Foundation
import Palbase
import PalbeChatCore
import PalbeUnits

/// What `pb.messaging` stands on: who is signed in, and their session.
///
///     nobody ──sign-in──▶ session of a user ──sign-out, or somebody else──▶ ended; its stores stay
///
/// A session of the same user goes on when they sign in again, with the same chats.
@MainActor final class Messenger {
  private static var all: [ObjectIdentifier: Messenger] = [:]

  /// The one of a process's configuration.
  static func of(_ host: PalbaseHost) -> Messenger {
    if let known = all[ObjectIdentifier(host)] { return known }
    let messenger = Messenger(host)
    all[ObjectIdentifier(host)] = messenger
    return messenger
  }

  /// For tests, which have many processes in one: closes the stores and forgets the host.
  static func discard(_ host: PalbaseHost) async {
    guard let messenger = all.removeValue(forKey: ObjectIdentifier(host)) else { return }
    messenger.following?.cancel()
    await messenger.session?.close()
  }

  static func namesChanged() {
    for messenger in all.values { messenger.session?.namesChanged() }
  }

  static func member(_ userId: String, _ role: ChatRole) -> ChatMember {
    ChatMember(
      userId: userId, role: role,
      displayName: MessagingSettings.current.profiles?.displayName(of: userId))
  }

  let host: PalbaseHost
  let list = ChatListStore()
  private(set) var session: MessagingSession?
  private var following: Task<Void, Never>?
  private var isWarm = false
  private var warming: Task<Void, Never>?
  /// Drafts that no store has, by whom they are with as it was written.
  private var loose: [String: Chat] = [:]

  private init(_ host: PalbaseHost) { self.host = host }

  // MARK: Who is signed in

  /// The session of who is signed in. Throws `not_signed_in`, and what is wrong with the configuration.
  func currentSession() throws -> MessagingSession {
    let runtime = try host.runtime()
    follow(runtime)
    settle(runtime.sessions.state.value, runtime)
    guard let session, session.isCurrent else { throw BackendError.client(.notSignedIn) }
    return session
  }

  /// The open shell of who is signed in, talking to the server.
  func reach() async throws -> MessagingShell { try await currentSession().talkingShell() }

  private func follow(_ runtime: PalbaseRuntime) {
    guard following == nil else { return }
    let states = runtime.sessions.state.stream()
    following = Task { [weak self] in
      for await state in states {
        guard let self, !Task.isCancelled else { return }
        // Who is signed in now counts, not what was told on the way.
        _ = state
        self.settle(runtime.sessions.state.value, runtime)
      }
    }
  }

  private func settle(_ state: AuthState, _ runtime: PalbaseRuntime) {
    guard case .signedIn(let user) = state, let me = UserID(user.id) else {
      if let session, session.isCurrent {
        session.end()
        list.clear()
      }
      return
    }
    if let session, session.me == me {
      guard !session.isCurrent else { return }
      session.isCurrent = true
      session.relist()
    } else {
      if let session {
        session.end()
        list.clear()
      }
      session = MessagingSession(me, runtime, self)
      for (peer, chat) in loose { if session?.expect(chat, peer) == true { loose[peer] = nil } }
    }
    if isWarm { warmUp() }
  }

  // MARK: The namespace

  func warm() {
    guard !isWarm else { return }
    isWarm = true
    _ = try? currentSession()
    warmUp()
  }

  /// Opens and starts in the background; while another process has the account it tries again (S2-7).
  private func warmUp() {
    guard warming == nil else { return }
    warming = Task { [weak self] in
      while let self, !Task.isCancelled {
        do {
          _ = try await self.reach()
        } catch BackendError.accountBusy {
          self.host.report(.accountBusy)
          if let time = self.session?.runtime.time { try? await time.sleep(.seconds(5)) }
          continue
        } catch let error as BackendError where error.code != .notSignedIn {
          self.host.report(error)
        } catch {}
        self.warming = nil
        return
      }
    }
  }

  func start() async throws { try await reach().waitUntilEnrolled() }

  func directChat(with userId: String) async -> Chat {
    guard let peer = UserID(userId) else { return looseChat(with: userId) }
    do {
      let session = try currentSession()
      // Binds what was given out while nobody was signed in.
      if let draft = loose[userId] { try await bind(draft, .direct(peer: userId)) }
      if let known = session.chat(with: peer), known.isLoaded { return known }
      // Another process may have the account for a while: who tapped a name does not wait for it.
      guard await session.opensSoon() else { throw BackendError.accountBusy }
      return try await session.directChat(with: peer)
    } catch {
      if let session, session.isCurrent {
        if let known = session.chat(with: peer) ?? loose[userId] { return known }
        let chat = draft(.direct(peer: userId))
        _ = session.expect(chat, userId)
        return chat
      }
      return looseChat(with: userId)
    }
  }

  private func looseChat(with userId: String) -> Chat {
    if let known = loose[userId] { return known }
    let chat = draft(.direct(peer: userId))
    loose[userId] = chat
    return chat
  }

  func groupChat(title: String?, members: [String]) async -> Chat {
    let users = members.compactMap { UserID($0) }
    if users.count == members.count, let session = try? currentSession(),
      await session.opensSoon(), let chat = try? await session.groupChat(title: title, members: users)
    {
      return chat
    }
    return draft(.group(title: title, members: members))
  }

  func chat(id: String) async -> Chat? { try? await currentSession().chat(id: id) }

  private func draft(_ plan: Chat.Plan) -> Chat {
    let time = (try? host.runtime())?.time ?? .system
    let now = WallTime(microseconds: time.wallMilliseconds() * 1_000)
    var random = time.randomSource
    return Chat(plan, id: ChatID(at: now, using: &random).text, at: Date(now), self)
  }

  /// Puts a draft that no store has into the store of who is signed in.
  func bind(_ chat: Chat, _ plan: Chat.Plan) async throws {
    let session = try currentSession()
    switch plan {
    case .direct(let peer):
      guard let user = UserID(peer) else { throw BackendError.client(.userNotFound) }
      _ = session.expect(chat, peer)
      let known = try await session.directChat(with: user)
      loose[peer] = nil
      session.pair(chat, with: known)
    case .group(let title, let members):
      let users = members.compactMap { UserID($0) }
      guard users.count == members.count else { throw BackendError.client(.userNotFound) }
      try await session.bindGroup(chat, title: title, members: users)
    }
  }
}
