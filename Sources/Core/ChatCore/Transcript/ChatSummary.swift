import PalbeMLS
import PalbeUnits
import PalbeWire

/// One chat as the list shows it, and all that its transcript must know before it reads anything else: one
/// record.
///
///     let list = try ChatSummary.all(in: storage).filter { $0.state != .draft }
package struct ChatSummary: Equatable, Sendable {
  // Set by the engine, through `Transcript.updateSummary`.

  /// What the chat's records are kept under.
  package let chat: [UInt8]
  package var kind: ChatKind
  package var state: ChatState
  /// Its name at the server; nil for a draft.
  package var group: GroupID?
  /// Whom a direct chat is with.
  package var peer: UserID?
  package var createdAt: WallTime
  /// Nil until it was read or set (S0-88).
  package var notifyScope: NotifyScope?
  package var consent: ChatConsent
  /// The server's own count, when it was asked last (S0-90).
  package var serverUnread: ServerUnread?

  // Folded from messages.

  /// Name and timer, with what made them so.
  package internal(set) var profile: GroupProfile
  /// The last that was said and is still there.
  package internal(set) var lastMessage: MessagePreview?
  /// When something was said last; the list is ordered by it (S3-28). It never falls.
  package internal(set) var lastActivity: WallTime
  /// The highest number of the server's log that the fold has seen.
  package internal(set) var lastSeq: Int64
  /// Up to where this user has read, on any device.
  package internal(set) var readSeq: Int64
  /// What others said behind it and is still there (S0-89).
  package internal(set) var unreadCount: Int
  /// The furthest that any other user's device got (S0-91).
  package internal(set) var deliveredUpTo: Int64
  /// The furthest that any other user has read (S0-91).
  package internal(set) var readUpTo: Int64
  /// The deadlines that may be next, so that a chat sleeps in the storage until then.
  package internal(set) var deadlines: [ChatDeadline]

  var counters = FoldCounters()

  /// A chat in which nothing was said.
  package init(chat: [UInt8], kind: ChatKind, state: ChatState = .draft, createdAt: WallTime) {
    (self.chat, self.kind, self.state, self.createdAt) = (chat, kind, state, createdAt)
    consent = .unknown
    profile = GroupProfile()
    lastActivity = createdAt
    (lastSeq, readSeq, unreadCount, deliveredUpTo, readUpTo) = (0, 0, 0, 0, 0)
    deadlines = []
  }

  /// Nothing of it wakes anybody. False also while the scope is not known; `notifyScope == .none` asks that (S0-88).
  package var isMuted: Bool { notifyScope == NotifyScope.none }

  /// When `Transcript.expire` has something to do; nil for never.
  package func nextExpiry(at now: ChatTime) -> Instant? { deadlines.map { $0.wake(at: now) }.min() }

  /// Every chat, drafts among them, in no order. Throws `corrupted` where one chat's record is none; `survey` goes on.
  package static func all(in storage: any MLSStorage) throws(MLSStorageError) -> [ChatSummary] {
    var result: [ChatSummary] = []
    for key in try storage.keys(under: TranscriptNames.summaries) {
      if let record = try storage.read(key, as: SummaryRecord.self) { result.append(record.summary) }
    }
    return result
  }

  /// Every chat whose record can be read, and those whose record is damaged and wants `Transcript.repair`.
  package static func survey(
    in storage: any MLSStorage
  ) throws(MLSStorageError) -> (chats: [ChatSummary], damaged: [[UInt8]]) {
    var result: (chats: [ChatSummary], damaged: [[UInt8]]) = ([], [])
    for key in try storage.keys(under: TranscriptNames.summaries) {
      let chat = Array(key.name.dropFirst(TranscriptNames.summaries.name.count))
      do throws(MLSStorageError) {
        if let summary = try load(chat, from: storage) { result.chats.append(summary) }
      } catch {
        guard case .corrupted = error else { throw error }
        result.damaged.append(chat)
      }
    }
    return result
  }

  /// One chat; nil where there is none.
  package static func load(_ chat: [UInt8], from storage: any MLSStorage) throws(MLSStorageError)
    -> ChatSummary?
  {
    try storage.read(TranscriptNames(chat: chat).summary, as: SummaryRecord.self)?.summary
  }
}

/// The last message as the list shows it: never what an action that was not allowed claims (section 3 #21).
package struct MessagePreview: Hashable, Sendable {
  /// Bytes of UTF-8 that the list keeps of a text.
  static let textByteCount = 256

  package var id: ClientMessageID
  /// Nil while the server has not taken it.
  package var position: TranscriptPosition?
  package var sender: UserID
  /// As in quotes: `text`, `image`, …
  package var kind: String
  /// Its beginning; of a file the text under it.
  package var text: String?
  package var isDeleted: Bool
  package var sentAt: WallTime
  package var delivery: Delivery

  /// Nil for a row that nobody said.
  init?(_ row: Row) {
    guard row.kind.isBubble, let sender = row.sender else { return nil }
    (id, position, self.sender, kind) = (row.id, row.position, sender.user, row.kind.word)
    text = row.excerpt(byteCount: Self.textByteCount)
    (isDeleted, sentAt, delivery) = (row.isDeleted, row.sentAt, row.delivery)
  }
}

/// What the fold counts, so that a message costs the same in any chat.
struct FoldCounters: Equatable, Sendable {
  /// Confirmed rows.
  var rows = 0
  /// Everything up to here was trimmed.
  var trimmedThrough = TranscriptPosition.lowest
  /// Pending rows and actions, and the number of the next.
  var pending = 0
  var nextPending: UInt64 = 0
  /// Actions whose message has not come, and the number of the next.
  var orphans = 0
  var nextOrphan: UInt64 = 0
  /// Messages with a deadline.
  var timers = 0
  /// Messages whose time begins when they are read.
  var readers = 0
  /// The numbers of the messages that are gone and not forgotten.
  var gone: Range<UInt64> = 0..<0
}

extension String {
  /// The beginning, in whole characters and at most so many bytes of UTF-8.
  func beginning(byteCount limit: Int) -> String {
    if utf8.count <= limit { return self }
    var count = 0
    var end = startIndex
    while end < endIndex {
      let next = index(after: end)
      count += self[end..<next].utf8.count
      if count > limit { break }
      end = next
    }
    return String(self[..<end])
  }
}
