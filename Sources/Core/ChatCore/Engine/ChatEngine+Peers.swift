import PalbeMLS
import PalbeUnits

/// Direct chats whose peer has an account and no device that could be written to (2.2 `no_key_package`).
///
/// What is said there waits: the rows stay pending, and `waitReason` is what to show with them. Nothing tells that a stranger
/// enrolled, so the server is asked again with growing waits, whenever there is a connection, at the user's `retry`, and
/// with the next message. A group is not held up by one of its members: there the message fails with the code.
extension ChatEngine {
  /// Why nothing of a chat goes out although everything is well here, with a code of requirements 2.2; nil for no such reason.
  package func waitReason(of id: ChatID) -> String? {
    chats[id]?.peerWait == nil ? nil : ServerRefusal.noKeyPackage(me).code
  }

  /// Whether a founding that has nobody to add waits; tells so the first time.
  mutating func waitForPeer(_ chat: Chat, _ refusal: ServerRefusal) throws(MLSStorageError) -> Bool {
    guard case .noKeyPackage = refusal, chat.head.shape.isDirect, let operation = chat.operations.first,
      operation.intent == .found
    else { return false }
    let attempts = chat.peerWait?.attempts ?? 0
    let doubled = configuration.peerWait * (1 << min(attempts, 16))
    let wait = min(doubled, configuration.longestPeerWait)
    let until = now.instant + wait + jitter(upTo: wait / 4)
    let isNew = chat.peerWait == nil
    chat.peerWait = Chat.PeerWait(attempts: attempts + 1, until: until)
    chat.run = nil
    timers[.peer(chat.id)] = until
    if isNew { changed(chat) }
    return true
  }

  /// Asks at once whether the peer has a device by now.
  mutating func askForPeer(_ chat: Chat) throws(MLSStorageError) {
    chat.peerWait?.until = now.instant
    try advanceOperations(of: chat)
  }

  mutating func peerWaitIsOver(_ chat: Chat) {
    guard chat.peerWait != nil else { return }
    chat.peerWait = nil
    timers[.peer(chat.id)] = nil
    changed(chat)
  }
}
