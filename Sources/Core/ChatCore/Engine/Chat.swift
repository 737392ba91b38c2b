import PalbeMLS
import PalbeUnits

/// A chat in memory: its head and what waits always, its group and transcript while they are used.
final class Chat {
  /// A group that a class can own and a dictionary can reach.
  final class Group {
    var stored: StoredGroup
    init(_ stored: consuming StoredGroup) { self.stored = stored }
  }

  /// Where the first of the outbox is.
  enum Sending: Equatable {
    case idle
    case underway(ClientMessageID)
    /// Until the group is in this epoch.
    case behind(UInt64)
    /// The server refused a message that fits this group: it is made anew after a look at the queue.
    case unclear(until: Instant)
  }

  /// An operation that has begun; nothing of it outlives the process but `GroupOperation.prepared`.
  struct Run {
    let order: UInt64
    var view: ServerGroupView?
    /// Users whose key packages are asked for.
    var wanted: Set<UserID> = []
    /// Those of the user's own other devices are asked for last: none is used up while a peer has no device.
    var defersOwn = false
    var claimed: [UserID: [ServerKeyPackage]] = [:]
    /// The commit lies with the server.
    var isPosted = false
    /// Others were first: it waits until the group is in this epoch.
    var waitsFor: UInt64?
  }

  /// A direct chat's peer has no device that could be written to.
  struct PeerWait {
    var attempts = 0
    var until: Instant
  }

  var head: ChatHead
  var group: Group?
  var transcript: Transcript?
  var outbox: [OutboxEntry] = []
  var operations: [GroupOperation] = []
  /// Who asked for an operation, by its order; nobody any more after a restart.
  var commands: [UInt64: CommandID] = [:]
  var sending = Sending.idle
  /// Files whose upload the shell was told to begin.
  var wantedUploads: Set<ClientMessageID> = []
  /// What its messages' deadlines are, as its summary had it last.
  var deadlines: [ChatDeadline] = []
  /// Messages that the server refused once although they fit.
  var refusedOnce: Set<ClientMessageID> = []
  var run: Run?
  /// Operations of the engine's own wait until then: somebody else's device may be first.
  var tidyAt: Instant?
  /// The founding waits for the peer's first device.
  var peerWait: PeerWait?
  /// The log of commits is asked for.
  var isAskingLog = false
  var isAskingView = false
  var isTellingRead = false
  /// The server was asked who left, for the sake of a commit that waits.
  var hasAskedHearsay = false
  var typing = TypingState()
  var online: Set<UserID> = []
  var lastUse: UInt64 = 0

  var id: ChatID { head.id }

  init(_ head: ChatHead) { self.head = head }

  /// The other user of a direct chat; oneself in a chat with oneself.
  func peer(of me: UserID) -> UserID? { head.shape.peer(of: me) }
}

extension Chat.Group {
  /// Runs an operation and stores what it changed; the engine's own refusal comes back as a value, and then nothing has
  /// changed.
  func update<Value>(
    _ body: (inout MLSGroup) throws(MLSError) -> Value,
    also: (Value, inout MLSTransaction) throws(MLSStorageError) -> Void = {
      (_, _) throws(MLSStorageError) in
    }
  ) throws(MLSStorageError) -> Result<Value, MLSError> {
    do throws(StoredGroupError) {
      return .success(try stored.update(body, also: also))
    } catch {
      switch error {
      case .mls(let error): return .failure(error)
      case .storage(let error): throw error
      }
    }
  }
}
