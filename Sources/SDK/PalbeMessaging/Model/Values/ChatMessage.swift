public import Foundation
import PalbeUnits

/// One line of a chat: what was sent, and what became of it since. The same type everywhere (S3-6).
///
/// Two are equal when their ids are: compare what you show of them, not them, to find a change (S0-49).
public struct ChatMessage: Identifiable, Sendable {
  /// Everything in one box: a transcript is copied often, its messages hardly ever change.
  final class Contents: Sendable {
    let reference: ClientMessageID?
    let id: String
    let serverSeq: Int64
    let senderUserId: String
    let senderDeviceId: String
    let senderDisplayName: String?
    let kind: MessageKind
    let text: String?
    let caption: String?
    let attachment: Attachment?
    let sentAt: Date
    let isOutgoing: Bool
    let reply: ResolvedReply?
    let reactions: MessageReactions
    let isEdited: Bool
    let isDeleted: Bool
    let mentions: [ResolvedMention]
    let expiresAt: Date?
    let delivery: DeliveryState
    let epoch: UInt64

    init(
      reference: ClientMessageID?, id: String, serverSeq: Int64, senderUserId: String,
      senderDeviceId: String, senderDisplayName: String? = nil, kind: MessageKind, text: String?,
      caption: String? = nil, attachment: Attachment?, sentAt: Date, isOutgoing: Bool,
      reply: ResolvedReply? = nil, reactions: MessageReactions = [:], isEdited: Bool = false,
      isDeleted: Bool = false, mentions: [ResolvedMention] = [], expiresAt: Date? = nil,
      delivery: DeliveryState = .sent, epoch: UInt64 = 0
    ) {
      self.reference = reference
      self.id = id
      self.serverSeq = serverSeq
      self.senderUserId = senderUserId
      self.senderDeviceId = senderDeviceId
      self.senderDisplayName = senderDisplayName
      self.kind = kind
      self.text = text
      self.caption = caption
      self.attachment = attachment
      self.sentAt = sentAt
      self.isOutgoing = isOutgoing
      self.reply = reply
      self.reactions = reactions
      self.isEdited = isEdited
      self.isDeleted = isDeleted
      self.mentions = mentions
      self.expiresAt = expiresAt
      self.delivery = delivery
      self.epoch = epoch
    }
  }

  let contents: Contents

  init(_ contents: Contents) { self.contents = contents }

  /// A message of the app's own making. The chat does not know it: it cannot be answered, reacted to, edited or deleted
  /// for everyone, and each of these returns without doing anything (S0-50). Pass what `chat.messages` gave; for
  /// previews there is `preview(…)`.
  public init(
    id: String, serverSeq: Int64, senderUserId: String, senderDeviceId: String, kind: MessageKind,
    text: String?, attachment: Attachment?, sentAt: Date, isOutgoing: Bool
  ) {
    contents = Contents(
      reference: nil, id: id, serverSeq: serverSeq, senderUserId: senderUserId,
      senderDeviceId: senderDeviceId, kind: kind, text: text, attachment: attachment, sentAt: sentAt,
      isOutgoing: isOutgoing)
  }

  /// A message for previews and tests of apps, with everything that one can have. Like any other that the app makes, the
  /// chat does not know it.
  public static func preview(
    id: String = UUID().uuidString, serverSeq: Int64 = 1, senderUserId: String = "usr_preview",
    senderDeviceId: String = "", senderDisplayName: String? = nil, kind: MessageKind = .text,
    text: String? = "Hello", caption: String? = nil, attachment: Attachment? = nil,
    sentAt: Date = Date(timeIntervalSince1970: 1_750_000_000), isOutgoing: Bool = false,
    reply: ResolvedReply? = nil, reactions: MessageReactions = [:], isEdited: Bool = false,
    isDeleted: Bool = false, mentions: [ResolvedMention] = [], expiresAt: Date? = nil,
    delivery: DeliveryState = .sent, epoch: UInt64 = 1
  ) -> ChatMessage {
    ChatMessage(
      Contents(
        reference: nil, id: id, serverSeq: serverSeq, senderUserId: senderUserId,
        senderDeviceId: senderDeviceId, senderDisplayName: senderDisplayName, kind: kind, text: text,
        caption: caption, attachment: attachment, sentAt: sentAt, isOutgoing: isOutgoing, reply: reply,
        reactions: reactions, isEdited: isEdited, isDeleted: isDeleted, mentions: mentions,
        expiresAt: expiresAt, delivery: delivery, epoch: epoch))
  }

  /// The same from the moment it is made on, on every device (S3-7, S3-17).
  public var id: String { contents.id }
  /// Its place in the chat. `Int64.max` while the server has not taken it, so that it stands behind what has a place and is
  /// neither delivered nor read.
  public var serverSeq: Int64 { contents.serverSeq }
  /// `usr_…`, as MLS authenticated it; who did it, for a system event; empty where nobody did.
  public var senderUserId: String { contents.senderUserId }
  /// `mdv_…`.
  public var senderDeviceId: String { contents.senderDeviceId }
  /// From the app's `ProfileDirectory`; nil without one (S0-27).
  public var senderDisplayName: String? { contents.senderDisplayName }
  public var kind: MessageKind { contents.kind }
  /// What is said; nil for files, and for what is deleted (S0-48).
  public var text: String? { contents.text }
  /// The text under a file.
  public var caption: String? { contents.caption }
  public var attachment: Attachment? { contents.attachment }
  /// When it was composed, by the sender's clock.
  public var sentAt: Date { contents.sentAt }
  /// One of this user's, from this device or another.
  public var isOutgoing: Bool { contents.isOutgoing }
  /// What it answers.
  public var reply: ResolvedReply? { contents.reply }
  public var reactions: MessageReactions { contents.reactions }
  /// Once true, true: also when it is edited back (S0-68).
  public var isEdited: Bool { contents.isEdited }
  /// Once true, true; nothing of what it said is left (S0-70).
  public var isDeleted: Bool { contents.isDeleted }
  /// Inside `text`.
  public var mentions: [ResolvedMention] { contents.mentions }
  /// When it disappears from this device; nil for never, or not before it is read.
  public var expiresAt: Date? { contents.expiresAt }
  public var delivery: DeliveryState { contents.delivery }
  /// The MLS epoch that it was accepted in; 0 while it is not.
  public var epoch: UInt64 { contents.epoch }

  /// The name that the chat knows it by; empty for a message that the app made (S0-50).
  var clientMsgId: String { contents.reference?.text ?? "" }
}

extension ChatMessage: Hashable {
  /// By id alone (S0-49).
  public static func == (left: ChatMessage, right: ChatMessage) -> Bool { left.id == right.id }
  /// By id alone.
  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
