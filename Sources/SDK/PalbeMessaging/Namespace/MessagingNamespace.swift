@_exported public import Palbe

extension PalbeNamespace {
  /// Chats, end-to-end encrypted. The first use that needs the server enrols this device; there is nothing to set up.
  @MainActor public var messaging: MessagingNamespace { MessagingNamespace(messenger: .of(host)) }
}

/// `pb.messaging`: the inbox, and the way into a chat (S0-24).
///
///     let chat = await pb.messaging.directChat(with: peerUserId)
///     try await chat.send(text: "Saturday works for me")
@MainActor public struct MessagingNamespace: Sendable {
  let messenger: Messenger

  /// The inbox. Reading it enrols this device and starts live delivery in the background, as soon as somebody is signed in:
  /// messages and invitations come by themselves (S0-22). It is one object, empty while nobody is signed in.
  public var chats: ChatListStore {
    messenger.warm()
    return messenger.list
  }

  /// The one direct chat with a user: at once, without the network, the same object each time (S0-13).
  ///
  /// It never fails: while nobody is signed in or the stores of this device cannot be opened, it is a draft all the same,
  /// which joins what is stored when they can. Its calls say what is wrong: `not_signed_in`, `store_unavailable`,
  /// `account_busy`, and `user_not_found` for what is no user id.
  public func directChat(with userId: String) async -> Chat { await messenger.directChat(with: userId) }

  /// A new group with these users and the signed-in one, only on this device until its first message (S0-14). Each call
  /// makes another. Its name can be changed later by `chat.rename(_:)`. It never fails, as `directChat(with:)` does not.
  public func groupChat(title: String? = nil, members: [String] = []) async -> Chat {
    await messenger.groupChat(title: title, members: members)
  }

  /// The chat that the server calls so (`grp_…`), or this device (`draft_…`); nil when it is not known here (S0-15).
  public func chat(id: String) async -> Chat? { await messenger.chat(id: id) }

  /// Returns when this device is enrolled and live delivery has begun: to have it warm at sign-in. Never needed, and a
  /// second call is nothing (S0-23). Throws `not_signed_in`, `device_revoked`, `store_unavailable`, `account_busy`.
  public func start() async throws { try await messenger.start() }

  /// What the user lets others see, in all chats (S0-100).
  public func commsPrefs() async throws -> CommsPrefs {
    CommsPrefs(try await messenger.reach().commsPrefs())
  }

  /// Changes what the user lets others see; nil leaves it as it is (S0-100).
  @discardableResult
  public func setCommsPrefs(
    sharePresence: Bool? = nil, shareReceipts: Bool? = nil
  ) async throws -> CommsPrefs {
    CommsPrefs(
      try await messenger.reach().setCommsPrefs(sharePresence: sharePresence, shareReceipts: shareReceipts))
  }
}
