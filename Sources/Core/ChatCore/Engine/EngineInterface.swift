import PalbeMLS
import PalbeUnits

/// Names a chat on this device from its first moment on, before the server knows of it and after its group was founded anew.
package typealias ChatID = Identifier<LocalChatKind>

/// Chats as this device names them; `draft_…` until the server gives one a `grp_…`.
package enum LocalChatKind: IdentifierKind {
  package static let prefix = "draft"
}

/// What the engine is told besides time.
package enum EngineInput: Sendable {
  /// Something to do whose end comes as `EngineEvent.finished`.
  case command(CommandID, EngineCommand)
  /// What came of a request; one answer each, any order. An answer to a request that nobody waits for is nothing.
  case response(RequestID, Result<ServerAnswer, ServerRefusal>)
  /// Rows of the device's queue that came over the socket, ascending.
  case rows([QueueRow], hasMore: Bool)
  case live(LiveEvent)
  /// The socket is up, or gone. Up again, everything is subscribed anew and the queue is asked for.
  case connection(isUp: Bool)
}

/// Numbers a command; made by the caller.
package struct CommandID: Hashable, Sendable {
  package var rawValue: UInt64
  package init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// Numbers a request; made by the engine.
package struct RequestID: Hashable, Comparable, Sendable {
  package var rawValue: UInt64
  package static func < (left: RequestID, right: RequestID) -> Bool { left.rawValue < right.rawValue }
}

/// What takes the server's help.
package enum EngineCommand: Hashable, Sendable {
  case addMember(ChatID, UserID)
  case removeMember(ChatID, UserID)
  case setRole(ChatID, UserID, ChatRole)
  case leave(ChatID)
  /// Founds a chat anew whose members fell apart (section 3 #9).
  case reset(ChatID)
  case markRead(ChatID, upTo: Int64)
  case setNotifyScope(ChatID, NotifyScope)
  case refreshNotifyScope(ChatID)
  case refreshUnread(ChatID)
}

/// How a command ended.
package enum CommandResult: Hashable, Sendable {
  case done
  case notifyScope(NotifyScope)
  case unread(ServerUnread)
  /// With a code of requirements 2.2.
  case failed(code: String)
}

/// A request for the shell to carry.
package struct EngineRequest: Sendable {
  package var id: RequestID
  package var request: ServerRequest
  /// Under which name the server knows a repetition.
  package var idempotencyKey: [UInt8]?
}

/// What happens on the socket.
package enum LiveEvent: Hashable, Sendable {
  case queueChanged
  /// The user removed this device.
  case deviceRevoked
  case ownRead(GroupID, Int64)
  case typing(GroupID, UserID, DeviceID, Bool)
  case presence(GroupID, UserID, isOnline: Bool)
  case delivered(GroupID, UserID, DeviceID, Int64)
  case read(GroupID, UserID, Int64)
}

/// What the engine tells.
package enum EngineEvent: Equatable, Sendable {
  /// The server knows this device.
  case enrolled(DeviceID)
  /// The server does not take this device, such as one too many.
  case enrolmentRefused(code: String)
  /// The user removed this device; nothing is asked any more, and nothing is erased.
  case deviceRevoked
  /// The session is over: sign in, then tell `signedIn`.
  case notSignedIn
  /// Storage refused: nothing more happens until the engine is opened again.
  case storageFailed(MLSStorageError)
  /// Something that the chat list or the chat's head shows has changed.
  case chatChanged(ChatID)
  case transcript(ChatID, [TranscriptChange])
  case finished(CommandID, CommandResult)
  /// Keys of calls change with it (section 3 #26).
  case epochChanged(ChatID, epoch: UInt64, authenticator: [UInt8])
  /// A commit could not be followed: what is said there is not heard here until the group is founded anew (section 3 #4).
  case diverged(ChatID)
  /// Devices of a user came or went: who verified them looks again (S0-111).
  case devicesChanged(ChatID, UserID, added: [DeviceID], removed: [DeviceID])
  case typing(ChatID, [UserID])
  case presence(ChatID, UserID, isOnline: Bool)
  /// The server took a message of this user's from this device (S3-12): `seq` as the chat's rows count, and the epoch it was
  /// accepted in. The row's change comes before it.
  case settled(ChatID, ClientMessageID, seq: Int64, epoch: UInt64)
  /// A message of this device's goes no further until `retry`; with a code of requirements 2.2. Its row says so too, an
  /// action no longer shows. Of a file whose bytes are on their way, the upload is to end.
  case failed(ChatID, ClientMessageID, code: String)
  /// Watermarks of other users moved: `deliveredUpTo`, `readUpTo`, `readWatermark`, `readers` (S0-91, S0-97).
  case receipts(ChatID)
  /// A file's bytes are to go up now, to this group; `release` or `failUpload` answers. Comes once in a process and again
  /// after a retry, and when the chat lives in another group meanwhile: then what went up before counts for nothing.
  case uploadWanted(ChatID, GroupID, ClientMessageID)
  /// A file was sent, or given up: its bytes under this name are not needed any more.
  case uploadOver(ChatID, ClientMessageID, spool: String)
  /// A row could not be read; it is gone (2.2 `undecryptable`).
  case undecryptable(ChatID, seq: Int64)
}

/// Why an operation was not begun, or the engine cannot be opened.
package enum EngineError: Error, Equatable, Sendable {
  case storage(MLSStorageError)
  case mls(MLSError)
  case content(ContentError)
  /// A chat that is not known here.
  case chatNotFound
  case chatIsDirect
  case chatIsDraft
  /// The user left or was removed.
  case notAMember
  /// The role does not allow it.
  case forbidden
  /// The message is not there, or not in a state for this.
  case messageNotFound
  /// The storage is of another user.
  case wrongUser
  /// The engine stopped: it must be opened again.
  case stopped

  /// The code of requirements 2.2.
  package var code: String {
    switch self {
    case .storage, .stopped: "store_unavailable"
    case .mls, .wrongUser: "internal"
    case .content: "invalid_request"
    case .chatNotFound, .messageNotFound: "chat_not_found"
    case .chatIsDirect: "chat_is_direct"
    case .chatIsDraft: "chat_is_draft"
    case .notAMember: "not_a_member"
    case .forbidden: "forbidden"
    }
  }
}

/// Whose engine it is, and its limits.
package struct EngineConfiguration: Sendable {
  package var me: UserID
  /// Key packages that lie ready with the server.
  package var keyPackageCount = 100
  /// Below this many new ones are published.
  package var keyPackageFloor = 25
  package var keyPackageLifetime = TimeDelta.seconds(90 * 86_400)
  /// A last-resort key package is replaced after this, and once it was used.
  package var lastResortLifetime = TimeDelta.seconds(30 * 86_400)
  /// The wait before the second try; it doubles up to `longestWait`.
  package var firstWait = TimeDelta.milliseconds(500)
  package var longestWait = TimeDelta.seconds(30)
  /// Before somebody else's device, or who left, is seen to: the user's own devices go first.
  package var housekeepingWait = TimeDelta.seconds(4)
  /// Before a peer without a device is asked for again; it doubles up to `longestPeerWait`.
  package var peerWait = TimeDelta.seconds(5)
  package var longestPeerWait = TimeDelta.seconds(900)
  package var rowsPerFetch = 100
  /// How often a commit is made anew when others were first.
  package var rebaseLimit = 5
  /// Groups and transcripts held in memory at once.
  package var loadedChats = 64
  package var typingInterval = TimeDelta.seconds(3)
  package var typingLifetime = TimeDelta.seconds(6)
  /// How long secrets of an epoch stay after it ended.
  package var secretLifetime = TimeDelta.seconds(10)
  /// What each transcript keeps (S0-53).
  package var transcript = TranscriptLimits()
  /// Whether messages of people whom the user has not allowed count for nothing at first (S3-31).
  package var asksConsent = false
  /// Labels whose secrets the previous epoch keeps for `secretLifetime`.
  package var keptLabels = ["palbe call media key"]

  package init(me: UserID) { self.me = me }
}
