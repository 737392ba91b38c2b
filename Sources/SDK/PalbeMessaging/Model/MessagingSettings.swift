import Synchronization

/// Knows people's names, which Palbe does not (S0-27). It is asked on any thread, and answers at once from what it has.
///
///     struct Contacts: ProfileDirectory {
///       func displayName(of userId: String) -> String? { … }
///     }
///     MessagingSettings.current.profiles = Contacts()
public protocol ProfileDirectory: Sendable {
  /// A user's name; nil when it is not known.
  func displayName(of userId: String) -> String?
}

/// What an app decides for all chats. Set it before the first use of `pb.messaging`: limits count from the next opening
/// of the stores, names at once.
public struct MessagingSettings: Sendable {
  /// Messages that this device keeps of a chat; the oldest go first (S0-53). From 1 on.
  public var historyLimit = 1_000
  /// Whether a chat that a stranger began counts as nothing and notifies nobody until `chat.setConsent(.allowed)` (S3-31).
  public var asksConsent = false
  /// Fills in names of members, senders, mentions and direct chats. Set it again when names changed.
  public var profiles: (any ProfileDirectory)?

  /// As documents say: 1,000 messages, no consent asked, no names.
  public init() {}

  private static let stored = Mutex(MessagingSettings())

  /// The process's.
  public static var current: MessagingSettings {
    get { stored.withLock { $0 } }
    set {
      stored.withLock { $0 = newValue }
      Task { @MainActor in Messenger.namesChanged() }
    }
  }
}
