package import Palbase
package import PalbeChatCore
package import PalbeUnits

/// What a shell tells, in order.
package enum ShellEvent: Sendable {
  /// Chats that are new or changed: the newest snapshot of each. `isAll`: these are all of them; it comes first.
  case chats([ChatSnapshot], isAll: Bool)
  case transcript(ChatID, [TranscriptChange])
  /// Who types there now; replaces what was told before.
  case typing(ChatID, [UserID])
  case presence(ChatID, UserID, isOnline: Bool, at: WallTime)
  /// How far each other user got (S0-91, S0-97).
  case receipts(ChatID, [ChatReceipt])
  /// How far the bytes of a file of ours are at the server.
  case upload(ChatID, ClientMessageID, done: Int64, total: Int64)
  case trustChanged(UserID, StoredTrust)
  case epochChanged(ChatID, epoch: UInt64, authenticator: [UInt8])
  /// What no caller waits for.
  case failure(BackendError)
  /// The shell is closed; the last that it tells.
  case ended(ShellEnd)
}

/// How far a user got, by the chat's sequence numbers.
package struct ChatReceipt: Hashable, Sendable {
  package var user: UserID
  /// The furthest that a device of theirs got.
  package var deliveredSeq: Int64
  /// Up to where they read.
  package var readSeq: Int64

  package init(user: UserID, deliveredSeq: Int64, readSeq: Int64) {
    (self.user, self.deliveredSeq, self.readSeq) = (user, deliveredSeq, readSeq)
  }
}

/// Why a shell is closed.
package enum ShellEnd: Hashable, Sendable {
  /// Somebody called `close`.
  case closed
  /// The person signed out, or somebody else signed in; the stores stay.
  case signedOut
  /// The user removed this device; the stores stay.
  case deviceRevoked
  /// The storage refuses; a new shell may do better.
  case storageFailed
}

/// Takes what a shell tells. It is called in order, on the main actor, and not again before it has returned: what happens
/// meanwhile comes together the next time.
package typealias ShellSink = @MainActor @Sendable ([ShellEvent]) -> Void
