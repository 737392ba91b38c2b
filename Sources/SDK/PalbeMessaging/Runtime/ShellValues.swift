package import PalbeChatCore
package import PalbeUnits

/// How a shell behaves; the defaults are those of an app.
package struct ShellSettings: Sendable {
  /// Where the user's stores lie; nil: in the runtime's folder, in one of the user's own.
  package var folder: String?
  /// Whether messages of people whom the user has not allowed count for nothing at first (S3-31).
  package var asksConsent = false
  /// Messages that this device keeps of a chat; the oldest go first (S0-53).
  package var historyLimit = 1_000
  /// Whether every turn waits for the medium; false in tests of speed alone.
  package var isDurable = true
  /// How long `open` waits for another process that has the account (2.2 `account_busy`).
  package var patience = TimeDelta.seconds(15)
  /// The first wait between two looks at the queue while there is no socket; it doubles.
  package var firstPoll = TimeDelta.seconds(2)
  /// The longest wait between two looks at the queue while there is no socket.
  package var longestPoll = TimeDelta.seconds(60)
  /// The least time between two deliveries to the sink.
  package var sinkInterval = TimeDelta.milliseconds(16)
  /// Uploads that run at once.
  package var uploadLimit = 2

  package init() {}
}

/// A chat as the shell knows it at one moment.
package struct ChatSnapshot: Equatable, Sendable {
  package var id: ChatID
  /// What the list shows; one record of the storage.
  package var summary: ChatSummary
  /// What the engine knows; nil while only the list was read.
  package var head: ChatHead?
  /// Members of a chat that is not over; empty while only the list was read.
  package var members: [ChatMemberSnapshot] = []
  /// Users who are connected, as far as they say so.
  package var online: [UserID] = []
  /// What is said there is not heard here until the group is founded anew (section 3 #4, #9).
  package var hasDiverged: Bool { head?.standing == .diverged }

  package init(id: ChatID, summary: ChatSummary, head: ChatHead?) {
    (self.id, self.summary, self.head) = (id, summary, head)
  }
}

/// A user of a chat.
package struct ChatMemberSnapshot: Hashable, Sendable {
  package var user: UserID
  package var role: PalbeChatCore.ChatRole

  package init(user: UserID, role: PalbeChatCore.ChatRole) { (self.user, self.role) = (user, role) }
}

/// A file to be sent.
package struct OutgoingFile: Sendable {
  /// Where its bytes are.
  package enum Source: Sendable {
    case bytes([UInt8])
    /// A file of the app's; it may be removed as soon as the call has returned.
    case file(path: String)
  }
  package var source: Source
  package var kind: PalbeChatCore.AttachmentKind
  /// A name without a path.
  package var filename: String
  package var mimeType: String
  /// At most 32 KiB.
  package var thumbnail: [UInt8]?
  /// Peaks of a voice message, at most 256.
  package var waveform: [UInt8]?
  package var durationMs: UInt32?
  package var width: UInt32?
  package var height: UInt32?
  package var caption: String?

  package init(_ source: Source, kind: PalbeChatCore.AttachmentKind, filename: String, mimeType: String) {
    (self.source, self.kind, self.filename, self.mimeType) = (source, kind, filename, mimeType)
  }
}

/// A message that the server took.
package struct SettledMessage: Hashable, Sendable {
  package var id: ClientMessageID
  package var seq: Int64
  /// The MLS epoch it was accepted in.
  package var epoch: UInt64

  package init(id: ClientMessageID, seq: Int64, epoch: UInt64) {
    (self.id, self.seq, self.epoch) = (id, seq, epoch)
  }
}

/// Whether a user's devices are those that this user compared (S0-109, S0-111).
package enum StoredTrust: Hashable, Sendable {
  /// Nobody compared.
  case unverified
  /// They are those that were compared; the hash of the device set.
  case verified(deviceSetHash: [UInt8])
  /// They are no longer; `StoredTrust.verified` follows when they are compared again.
  case changed(DeviceSetChange)
}

/// A change of the devices of somebody who was verified.
package struct DeviceSetChange: Hashable, Sendable {
  package var user: UserID
  package var added: [DeviceID]
  package var removed: [DeviceID]
  package var oldHash: [UInt8]
  package var newHash: [UInt8]
  /// When this device noticed.
  package var at: WallTime

  package init(
    user: UserID, added: [DeviceID], removed: [DeviceID], oldHash: [UInt8], newHash: [UInt8], at: WallTime
  ) {
    (self.user, self.added, self.removed) = (user, added, removed)
    (self.oldHash, self.newHash, self.at) = (oldHash, newHash, at)
  }
}

/// What a user lets others see (S0-100).
package struct StoredCommsPrefs: Hashable, Sendable {
  package var sharePresence: Bool
  package var shareReceipts: Bool

  package init(sharePresence: Bool = true, shareReceipts: Bool = true) {
    (self.sharePresence, self.shareReceipts) = (sharePresence, shareReceipts)
  }
}
