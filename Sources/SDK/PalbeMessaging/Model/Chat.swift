public import Foundation
public import Observation
import Palbase
import PalbeChatCore
import PalbeUnits

/// A conversation: a direct chat or a group, alike. A screen binds to it alone: its messages, who types, who is online, how
/// far everybody read, who is in it (S0-4).
///
///     let chat = await pb.messaging.directChat(with: peer)
///     try await chat.send(text: "Saturday works for me")
///     ForEach(chat.messages) { message in Text(message.text ?? "(media)") }
///
/// There is one object for a conversation, from its first moment as a draft on. Every property can be read in a view's body,
/// which is made anew when it changes.
@MainActor @Observable
public final class Chat: Identifiable {
  /// A row of a list stays the same row while `id` goes from `draft_…` to `grp_…`.
  public typealias ID = ObjectIdentifier

  /// `grp_…`, the server's name; `draft_…` before there is one.
  public internal(set) var id: String
  /// Whether it is between two people or any number.
  public let kind: ChatKind
  /// Where it stands.
  public internal(set) var state: ChatState = .draft
  /// The group's name where it has one; else, of a direct chat, the other's name from the app's `ProfileDirectory`; else
  /// "Group a1b2" after the end of `id`, or "Chat" for a draft (S0-28).
  public internal(set) var title: String
  /// When it began on this device.
  public internal(set) var createdAt: Date
  /// Its people, this user among them.
  public internal(set) var members: [ChatMember] = []
  /// What this user may do; nil for who is not, or no longer, in it.
  public internal(set) var myRole: ChatRole?
  /// The last that was said and is still there: its text is cut to 256 bytes and it has no attachment, as a list shows it.
  public var lastMessage: ChatMessage? { last.message }
  /// When something was said last; the list is ordered by it (S3-28).
  public internal(set) var lastActivity: Date
  /// What others said and this user has not read: at once, and offline (S0-89).
  public internal(set) var unreadCount = 0
  /// The server's count when it was asked last; nil before (S0-90).
  public internal(set) var serverUnread: ServerUnread?
  /// What of it wakes this user's devices; nil until it was read or set. `isMuted` needs no care with optionals (S0-88).
  public internal(set) var notifyScope: NotifyScope?
  /// After what messages disappear by default; nil: they stay (S0-81). It is cooperative: nobody is forced.
  public internal(set) var disappearing: DisappearingSetting?
  /// User ids of those whose devices said that they apply `disappearing` (S0-86). It is cooperative: nobody is forced.
  public var disappearingAckedBy: [String] {
    want(.acknowledgements)
    return acknowledgedBy
  }
  /// Whether the other's devices are those that this user compared. Of a group: `changed` when anybody's are not, `verified`
  /// when everybody's were compared (S0-109, S0-111).
  public var trust: ChatTrust {
    want(.trust)
    return shownTrust
  }
  /// Who types now (S0-94).
  public internal(set) var typing: [ChatMember] = []
  /// Who is connected, of those who let others see it (S0-95).
  public internal(set) var onlineMembers: [ChatMember] = []
  /// Up to which `serverSeq` any other user's device has it (S0-91). It never falls.
  public internal(set) var deliveredUpTo: Int64 = 0
  /// Up to which `serverSeq` any other user read it, of those who let others see it (S0-91, S0-92). It never falls.
  public internal(set) var readUpTo: Int64 = 0
  /// The MLS epoch, for diagnosis; 0 for a draft.
  public internal(set) var epoch: UInt64 = 0
  /// What this user said about being written to here (S3-31).
  public internal(set) var consent: ChatConsent = .allowed
  /// What the others say is not heard here any more: the group fell apart, and `refound()` mends it (section 3 #9).
  public internal(set) var hasDiverged = false

  /// Called once for an incoming message that mentions this user, ever: raise a louder local notification there (S0-80).
  /// A message that came before it was set does not come again.
  @ObservationIgnored public var onMentionElevation: (@MainActor (ChatMessage) -> Void)?

  // MARK: What is behind

  var acknowledgedBy: [String] = []
  var shownTrust = ChatTrust.unverified
  // Not comparable: messages are equal by id, and who observes would not hear of an edit.
  var shown = Shown()
  var last = Last()
  var uploads: [ClientMessageID: Double] = [:]
  var receipts: [UserID: ChatReceipt] = [:]
  var presences: [UserID: Presence] = [:]

  struct Shown { var window = TranscriptWindow() }
  struct Last { var message: ChatMessage? }

  /// What is read from the storage when somebody looks at it first.
  struct Wanted: OptionSet {
    var rawValue: UInt8
    static let transcript = Wanted(rawValue: 1)
    static let receipts = Wanted(rawValue: 2)
    static let trust = Wanted(rawValue: 4)
    static let acknowledgements = Wanted(rawValue: 8)
  }
  @ObservationIgnored var wanted: Wanted = []
  /// What is being read.
  @ObservationIgnored var reading: Wanted = []
  @ObservationIgnored var loading: Task<Void, any Error>?
  @ObservationIgnored var paging: Task<Int, any Error>?
  @ObservationIgnored var isLoaded = false
  /// Pages and rows that are being read, and what was told of rows since the first of them was asked for.
  @ObservationIgnored var reads = 0
  @ObservationIgnored var told: [TranscriptChange] = []

  /// What it will be at the server, while no store has it.
  enum Plan {
    case direct(peer: String)
    case group(title: String?, members: [String])
  }
  @ObservationIgnored var plan: Plan?
  @ObservationIgnored var local: ChatID?
  @ObservationIgnored weak var session: MessagingSession?
  @ObservationIgnored weak var messenger: Messenger?
  @ObservationIgnored var binding: Task<Void, any Error>?
  @ObservationIgnored var snapshot: ChatSnapshot?
  @ObservationIgnored var typingUsers: [UserID] = []
  /// Under which key the list has it; nil: it is not in the list.
  @ObservationIgnored var listed: ChatListStore.Key?

  init(_ snapshot: ChatSnapshot, in session: MessagingSession) {
    kind = ChatKind(snapshot.summary.kind)
    id = snapshot.id.text
    title = ""
    createdAt = Date(snapshot.summary.createdAt)
    lastActivity = Date(snapshot.summary.lastActivity)
    local = snapshot.id
    self.session = session
    messenger = session.messenger
    take(snapshot)
  }

  /// One that no store has.
  init(_ plan: Plan, id: String, at now: Date, _ messenger: Messenger) {
    self.plan = plan
    self.id = id
    createdAt = now
    lastActivity = now
    title = ""
    self.messenger = messenger
    switch plan {
    case .direct(let peer):
      kind = .direct
      members = [Messenger.member(peer, .member)]
    case .group(_, let users):
      kind = .group
      members = users.map { Messenger.member($0, .member) }
    }
    title = shownTitle
  }

  // MARK: What it shows

  /// What is said here: durable and live as one, each once, by `serverSeq`, what waits behind it (S0-48). The newest 50 at
  /// first, then what comes; `loadEarlier` pages back. At most 1,000 and what was paged in are held.
  public var messages: [ChatMessage] {
    want(.transcript)
    return shown.window.messages
  }

  /// Whether `loadEarlier` has something to give.
  public var hasEarlier: Bool {
    want(.transcript)
    return shown.window.earlier != nil
  }

  /// Nothing of it pushes: its scope is `none` or `mentions` (S0-88). False while the scope is not known.
  public var isMuted: Bool { notifyScope == NotifyScope.none || notifyScope == .mentions }

  /// Whether somebody is connected; nil while nothing is known of them (S0-95).
  public func presence(of userId: String) -> Presence? { UserID(userId).flatMap { presences[$0] } }

  /// Who read up to this `serverSeq`, of those who let others see it (S0-97).
  public func readers(upTo serverSeq: Int64) -> [ChatMember] {
    want(.receipts)
    return members.filter { member in
      UserID(member.userId).flatMap { receipts[$0] }.map { $0.readSeq >= serverSeq } ?? false
    }
  }

  /// Up to which `serverSeq` somebody read, as far as they let others see it; 0 at first (S0-97).
  public func readWatermark(of userId: String) -> Int64 {
    want(.receipts)
    return UserID(userId).flatMap { receipts[$0]?.readSeq } ?? 0
  }

  /// How much of a file of this user's is at the server, 0 to 1; nil for a message that does not wait for one.
  public func uploadProgress(of message: ChatMessage) -> Double? {
    message.contents.reference.flatMap { uploads[$0] }
  }
}

extension Chat: Hashable {
  /// The same object.
  public nonisolated static func == (left: Chat, right: Chat) -> Bool { left === right }
  /// By identity.
  public nonisolated func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
