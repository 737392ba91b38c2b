public import Foundation
public import Palbase

/// What a message is.
public enum MessageKind: Hashable, Sendable {
  case text
  case image
  case video
  case file
  case voice
  /// Something that happened to the chat; nobody said it, and it cannot be answered.
  case system(SystemEvent)
  /// An app's own content (S3-9); the message's text is its fallback.
  case custom(type: String, payload: Data)
  /// Content of a newer version of the SDK (S3-8); the fallback is the message's text too.
  case unsupported(type: String, fallback: String?)
  /// A message that could not be read, and never will be (2.2 `undecryptable`).
  case unreadable
}

/// What happened to a chat; who did it is the message's sender.
public enum SystemEvent: Hashable, Sendable {
  /// User ids.
  case memberAdded([String])
  /// User ids.
  case memberRemoved([String])
  case memberLeft(String)
  /// To this name; an empty one takes it away.
  case renamed(String)
  case roleChanged(String, ChatRole)
  /// Nil: messages stay.
  case timerChanged(DisappearingSetting?)
  /// The user's devices are not those that were verified.
  case keyChanged(String)
  /// Messages are missing here.
  case historyGap
  /// The group was founded anew.
  case groupReset
}

/// How far a message of one's own got (S3-15).
public enum DeliveryState: Hashable, Sendable {
  /// It waits, or is on its way.
  case pending
  /// The server has it; also every message of somebody else.
  case sent
  /// It did not get there, and nothing is tried until `chat.retry(_:)`.
  case failed(FailureCode)
}

/// What kind of file it is (S0-40).
public enum AttachmentKind: String, Hashable, Sendable, CaseIterable {
  case image
  case video
  case file
  case voice
}

/// A stretch of a text that names a user, in UTF-16 code units (S0-73, S0-75).
///
///     let range = NSRange(text.range(of: "@ali")!, in: text)
///     MentionRange(start: range.location, length: range.length, mentionedUserId: ali)
public struct MentionRange: Codable, Sendable, Equatable {
  /// Where it begins; the stretch is half-open.
  public let start: Int
  public let length: Int
  /// `usr_…`.
  public let mentionedUserId: String

  /// `length` code units from `start`.
  public init(start: Int, length: Int, mentionedUserId: String) {
    (self.start, self.length, self.mentionedUserId) = (start, length, mentionedUserId)
  }
}

/// A mention that stands: it lies inside the message's text, cuts no character's pair and overlaps no other (S0-74, S0-77).
public struct ResolvedMention: Sendable, Equatable {
  /// In UTF-16 code units.
  public let start: Int
  public let length: Int
  /// `usr_…`.
  public let mentionedUserId: String
  /// From the app's `ProfileDirectory`; nil without one (S0-27).
  public let displayName: String?

  /// For previews and tests of apps.
  public init(start: Int, length: Int, mentionedUserId: String, displayName: String? = nil) {
    (self.start, self.length) = (start, length)
    (self.mentionedUserId, self.displayName) = (mentionedUserId, displayName)
  }
}

/// Where a quote comes from (S0-61).
public enum ReplyState: String, Hashable, Sendable {
  /// From the message that is answered, as it is on this device.
  case resolved
  /// That message is not here: the quote is what the answer's sender says.
  case unavailable
}

/// What a message answers (S0-60).
public struct ResolvedReply: Sendable, Equatable {
  /// `ChatMessage.id` of the message that is answered.
  public let parentClientMsgId: String
  public let state: ReplyState
  /// `usr_…`.
  public let quoteSenderUserId: String
  /// Nil for files without a text, and for what is gone.
  public let quoteText: String?
  /// `text`, `image`, `video`, `file`, `voice`, or a newer word.
  public let quoteKind: String

  /// For previews and tests of apps.
  public init(
    parentClientMsgId: String, state: ReplyState, quoteSenderUserId: String, quoteText: String?,
    quoteKind: String
  ) {
    self.parentClientMsgId = parentClientMsgId
    self.state = state
    self.quoteSenderUserId = quoteSenderUserId
    self.quoteText = quoteText
    self.quoteKind = quoteKind
  }
}

/// The emoji on a message and who set them, in the order in which each emoji came first (S0-63).
///
///     for (emoji, userIds) in message.reactions { Text("\(emoji) \(userIds.count)") }
public struct MessageReactions: RandomAccessCollection, Hashable, Sendable, ExpressibleByDictionaryLiteral {
  private struct Tally: Hashable {
    var emoji: String
    var userIds: [String]
  }
  private var tallies: [Tally]

  /// In this order; an emoji stands once.
  public init(_ reactions: some Sequence<(emoji: String, userIds: [String])>) {
    tallies = []
    for (emoji, userIds) in reactions where self[emoji] == nil {
      tallies.append(Tally(emoji: emoji, userIds: userIds))
    }
  }

  /// In this order.
  public init(dictionaryLiteral elements: (String, [String])...) {
    self.init(elements.map { (emoji: $0.0, userIds: $0.1) })
  }

  public var startIndex: Int { 0 }
  public var endIndex: Int { tallies.count }
  /// An emoji and who set it.
  public subscript(position: Int) -> (emoji: String, userIds: [String]) {
    (tallies[position].emoji, tallies[position].userIds)
  }
  /// Who set this emoji; nil when nobody did.
  public subscript(emoji: String) -> [String]? { tallies.first { $0.emoji == emoji }?.userIds }
}
