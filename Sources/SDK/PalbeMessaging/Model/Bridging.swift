import Foundation
import Palbase
import PalbeChatCore
import PalbeUnits

// Between what the engine speaks and what an app sees. Both have types of the same names: the engine's are written with
// their module.

extension Date {
  init(_ time: WallTime) { self.init(timeIntervalSince1970: Double(time.microseconds) / 1_000_000) }
}

extension ChatKind {
  init(_ kind: PalbeChatCore.ChatKind) {
    switch kind {
    case .direct: self = .direct
    case .group: self = .group
    }
  }
}

extension ChatState {
  init(_ state: PalbeChatCore.ChatState) {
    switch state {
    case .draft: self = .draft
    case .active: self = .active
    case .left: self = .left
    case .removed: self = .removed
    }
  }
}

extension ChatRole {
  init(_ role: PalbeChatCore.ChatRole) {
    switch role {
    case .member: self = .member
    case .admin: self = .admin
    case .owner: self = .owner
    }
  }

  var core: PalbeChatCore.ChatRole {
    switch self {
    case .member: .member
    case .admin: .admin
    case .owner: .owner
    }
  }
}

extension ChatConsent {
  init(_ consent: PalbeChatCore.ChatConsent) {
    switch consent {
    case .unknown: self = .unknown
    case .allowed: self = .allowed
    case .denied: self = .denied
    }
  }

  var core: PalbeChatCore.ChatConsent {
    switch self {
    case .unknown: .unknown
    case .allowed: .allowed
    case .denied: .denied
    }
  }
}

extension ExpiryStart {
  init(_ start: PalbeChatCore.ExpiryStart) {
    switch start {
    case .send: self = .send
    case .read: self = .read
    }
  }

  var core: PalbeChatCore.ExpiryStart {
    switch self {
    case .send: .send
    case .read: .read
    }
  }
}

extension DisappearingSetting {
  init(_ expiry: Expiry) {
    self.init(ttlSeconds: Int(expiry.seconds), start: ExpiryStart(expiry.start))
  }
}

extension Expiry {
  /// Throws `invalid_request` for a time that is not positive, or longer than 136 years.
  init(ttlSeconds: Int, start: ExpiryStart) throws {
    guard let seconds = UInt32(exactly: ttlSeconds), seconds > 0 else {
      throw BackendError.client(.invalidRequest)
    }
    self.init(seconds: seconds, start: start.core)
  }
}

extension ServerUnread {
  init(_ unread: PalbeChatCore.ServerUnread) {
    self.init(
      groupMaxSeq: unread.groupMaxSeq, lastReadSeq: unread.lastReadSeq, deliveredSeq: unread.deliveredSeq,
      unreadCount: Int(max(0, unread.unreadCount)))
  }
}

extension AttachmentKind {
  init(_ kind: PalbeChatCore.AttachmentKind) {
    switch kind {
    case .image: self = .image
    case .video: self = .video
    case .file: self = .file
    case .voice: self = .voice
    }
  }

  var core: PalbeChatCore.AttachmentKind {
    switch self {
    case .image: .image
    case .video: .video
    case .file: .file
    case .voice: .voice
    }
  }

  /// Of a media type (S0-40).
  init(mimeType: String) {
    switch mimeType.split(separator: "/", maxSplits: 1).first?.lowercased() {
    case "image": self = .image
    case "video": self = .video
    case "audio": self = .voice
    default: self = .file
    }
  }
}

extension SystemEvent {
  init(_ event: PalbeChatCore.SystemEvent) {
    switch event {
    case .memberAdded(let users): self = .memberAdded(users.map(\.text))
    case .memberRemoved(let users): self = .memberRemoved(users.map(\.text))
    case .memberLeft(let user): self = .memberLeft(user.text)
    case .renamed(let name): self = .renamed(name)
    case .roleChanged(let user, let role): self = .roleChanged(user.text, ChatRole(role))
    case .timerChanged(let expiry): self = .timerChanged(expiry.map { DisappearingSetting($0) })
    case .keyChanged(let user): self = .keyChanged(user.text)
    case .historyGap: self = .historyGap
    case .groupReset: self = .groupReset
    }
  }
}

extension DeliveryState {
  init(_ delivery: Delivery) {
    switch delivery {
    case .pending: self = .pending
    case .sent: self = .sent
    case .failed(let code): self = .failed(FailureCode(rawValue: code))
    }
  }
}

extension MessageKind {
  init(_ kind: RowKind, text: String?) {
    switch kind {
    case .text: self = .text
    case .image: self = .image
    case .video: self = .video
    case .file: self = .file
    case .voice: self = .voice
    case .system(let event): self = .system(SystemEvent(event))
    case .custom(let type, let payload): self = .custom(type: type, payload: Data(payload))
    case .unsupported(let field): self = .unsupported(type: "field \(field)", fallback: text)
    case .unreadable: self = .unreadable
    }
  }

  /// The word of a quote and of a preview.
  init(word: String, text: String?) {
    switch word {
    case "text": self = .text
    case "image": self = .image
    case "video": self = .video
    case "file": self = .file
    case "voice": self = .voice
    case "custom": self = .custom(type: "", payload: Data())
    default: self = .unsupported(type: word, fallback: text)
    }
  }
}

extension ResolvedReply {
  init(_ reply: PalbeChatCore.ResolvedReply) {
    self.init(
      parentClientMsgId: reply.parent.text, state: reply.state == .resolved ? .resolved : .unavailable,
      quoteSenderUserId: reply.quoteSender.text, quoteText: reply.quoteText, quoteKind: reply.quoteKind)
  }
}

extension KeyChangeEvent {
  init(_ change: DeviceSetChange) {
    self.init(
      userId: change.user.text, addedDeviceIds: change.added.map(\.text),
      removedDeviceIds: change.removed.map(\.text), oldHash: Data(change.oldHash),
      newHash: Data(change.newHash), at: Date(change.at))
  }
}

extension ChatTrust {
  init(_ trust: StoredTrust) {
    switch trust {
    case .unverified: self = .unverified
    case .verified: self = .verified
    case .changed(let change): self = .changed(KeyChangeEvent(change))
    }
  }
}

extension SafetyNumberResult {
  init(_ result: PalbeChatCore.SafetyNumberResult) {
    self.init(
      safetyNumber: result.safetyNumber, localDeviceSetHash: Data(result.localDeviceSetHash),
      peerDeviceSetHash: Data(result.peerDeviceSetHash), qrPayload: Data(result.qrPayload))
  }
}

extension CommsPrefs {
  init(_ prefs: StoredCommsPrefs) {
    self.init(sharePresence: prefs.sharePresence, shareReceipts: prefs.shareReceipts)
  }
}

/// What turns rows into messages of one chat.
struct MessageMaker: Sendable {
  var me: UserID
  var chat: ChatID
  var source: AttachmentSource
  var profiles: (any ProfileDirectory)?

  func message(_ row: Row) -> ChatMessage {
    let sender = row.sender?.user
    return ChatMessage(
      ChatMessage.Contents(
        reference: row.id, id: row.id.text, serverSeq: row.seq ?? .max,
        senderUserId: sender?.text ?? "", senderDeviceId: row.sender?.device.text ?? "",
        senderDisplayName: sender.flatMap { profiles?.displayName(of: $0.text) },
        kind: MessageKind(row.kind, text: row.text), text: row.text, caption: row.caption,
        attachment: row.attachment.map { Attachment($0, of: row.id, in: chat, from: source) },
        sentAt: Date(row.sentAt), isOutgoing: sender == me && row.kind.isBubble,
        reply: row.reply.map { ResolvedReply($0) },
        reactions: MessageReactions(
          row.reactions.map { (emoji: $0.emoji, userIds: $0.users.map(\.text)) }),
        isEdited: row.isEdited, isDeleted: row.isDeleted,
        mentions: row.mentions.map { mention in
          ResolvedMention(
            start: mention.start, length: mention.length, mentionedUserId: mention.user.text,
            displayName: profiles?.displayName(of: mention.user.text))
        },
        expiresAt: row.expiresAt.map { Date($0) }, delivery: DeliveryState(row.delivery), epoch: row.epoch))
  }

  /// What the list knows of the last message.
  func message(_ preview: MessagePreview) -> ChatMessage {
    ChatMessage(
      ChatMessage.Contents(
        reference: preview.id, id: preview.id.text, serverSeq: preview.position?.seq ?? .max,
        senderUserId: preview.sender.text, senderDeviceId: "",
        senderDisplayName: profiles?.displayName(of: preview.sender.text),
        kind: MessageKind(word: preview.kind, text: preview.text), text: preview.text, attachment: nil,
        sentAt: Date(preview.sentAt), isOutgoing: preview.sender == me, isDeleted: preview.isDeleted,
        delivery: DeliveryState(preview.delivery)))
  }
}
