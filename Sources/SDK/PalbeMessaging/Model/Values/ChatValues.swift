public import Foundation

/// Whether a chat is between two people or any number.
public enum ChatKind: String, Hashable, Sendable, CaseIterable {
  case direct
  case group
}

/// Where a chat stands.
public enum ChatState: String, Hashable, Sendable, CaseIterable {
  /// Only on this device: nothing of it is at the server (S0-12).
  case draft
  /// It has begun.
  case active
  /// The user left.
  case left
  /// Somebody removed the user.
  case removed
}

/// What a member may do; the stronger is the greater (S0-105).
public enum ChatRole: String, Hashable, Comparable, Sendable, CaseIterable {
  /// Sends, adds and leaves.
  case member
  /// Removes members too, and renames.
  case admin
  /// Gives roles too. Who made the group is one.
  case owner

  private var rank: Int {
    switch self {
    case .member: 1
    case .admin: 2
    case .owner: 3
    }
  }

  /// By strength.
  public static func < (left: ChatRole, right: ChatRole) -> Bool { left.rank < right.rank }
}

/// What the user said about being written to by somebody (S3-31).
public enum ChatConsent: String, Hashable, Sendable, CaseIterable {
  /// Nothing yet. Where the app asks for consent, such a chat counts as nothing and notifies nobody.
  case unknown
  case allowed
  case denied
}

/// What of a chat wakes this user's devices (S0-87).
public enum NotifyScope: String, Hashable, Sendable, CaseIterable {
  /// Every message.
  case all
  /// Nothing. `chat.notifyScope` is optional: write `chat.notifyScope == NotifyScope.none`, or `chat.isMuted` (S0-88).
  case none
  /// No push wakes, for the server cannot know who is mentioned; `chat.onMentionElevation` fires as ever. It is a promise
  /// of this device alone: to the server and to other devices it is `none`.
  case mentions
}

/// Where a message's time begins (S0-82).
public enum ExpiryStart: String, Hashable, Sendable, CaseIterable {
  /// When it was composed.
  case send
  /// On each device, when it is read there first.
  case read
}

/// After what a chat's messages disappear by default. It is cooperative: a changed app can keep a copy.
public struct DisappearingSetting: Hashable, Sendable {
  /// Seconds from `start`; 1 at least.
  public let ttlSeconds: Int
  /// Where the time begins.
  public let start: ExpiryStart

  /// For previews and tests of apps.
  public init(ttlSeconds: Int, start: ExpiryStart = .send) {
    (self.ttlSeconds, self.start) = (ttlSeconds, start)
  }
}

/// Somebody in a chat.
public struct ChatMember: Hashable, Sendable, Identifiable {
  /// `usr_…`.
  public let userId: String
  /// What they may do.
  public let role: ChatRole
  /// From the app's `ProfileDirectory`; nil without one (S0-27).
  public let displayName: String?
  /// When they came in, where that is known.
  public let joinedAt: Date?

  /// The user id.
  public var id: String { userId }

  /// For previews and tests of apps.
  public init(userId: String, role: ChatRole = .member, displayName: String? = nil, joinedAt: Date? = nil) {
    self.userId = userId
    self.role = role
    self.displayName = displayName
    self.joinedAt = joinedAt
  }
}

/// Whether somebody is connected, as far as they let others see it (S0-95, S0-101).
public struct Presence: Hashable, Sendable {
  public let isOnline: Bool
  /// When this device heard of a change last.
  public let lastSeen: Date?

  /// For previews and tests of apps.
  public init(isOnline: Bool, lastSeen: Date? = nil) {
    (self.isOnline, self.lastSeen) = (isOnline, lastSeen)
  }
}

/// What a user lets others see, in all chats (S0-100).
public struct CommsPrefs: Hashable, Sendable {
  /// False hides that the user is online, and that they type (S0-101).
  public let sharePresence: Bool
  /// False keeps to themselves how far they read (S0-102).
  public let shareReceipts: Bool

  /// For previews and tests of apps.
  public init(sharePresence: Bool = true, shareReceipts: Bool = true) {
    (self.sharePresence, self.shareReceipts) = (sharePresence, shareReceipts)
  }
}

/// The server's count of what is unread: an upper bound, for it cannot tell a reaction from a text (S0-90).
public struct ServerUnread: Hashable, Sendable {
  /// The newest number of the chat's log.
  public let groupMaxSeq: Int64
  /// Up to where the user read.
  public let lastReadSeq: Int64
  /// Up to where this user's devices have it.
  public let deliveredSeq: Int64
  /// At least 0.
  public let unreadCount: Int

  /// For previews and tests of apps.
  public init(groupMaxSeq: Int64, lastReadSeq: Int64, deliveredSeq: Int64, unreadCount: Int) {
    (self.groupMaxSeq, self.lastReadSeq) = (groupMaxSeq, lastReadSeq)
    (self.deliveredSeq, self.unreadCount) = (deliveredSeq, unreadCount)
  }
}

/// The server has a message (S0-39).
public struct SentReceipt: Hashable, Sendable {
  /// `ChatMessage.id`.
  public let messageId: String
  /// Its place in the chat.
  public let serverSeq: Int64
  /// The MLS epoch that it was accepted in.
  public let epoch: UInt64

  /// For previews and tests of apps.
  public init(messageId: String, serverSeq: Int64, epoch: UInt64) {
    (self.messageId, self.serverSeq, self.epoch) = (messageId, serverSeq, epoch)
  }
}
