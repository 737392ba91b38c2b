import Foundation
import PalbeMessaging

/// How things are said on a line. All text of other people goes through `safe(_:)` here.
struct Wording {
  let contacts: Contacts
  let me: String

  func name(_ user: String) -> String { user == me ? "you" : contacts.shown(user) }
  func names(_ users: some Sequence<String>) -> String {
    let all = users.map { name($0) }.sorted()
    return all.isEmpty ? "nobody" : all.joined(separator: ", ")
  }

  /// A message as one line.
  func line(_ message: ChatMessage) -> String {
    let time = Self.time(message.sentAt)
    if case .system(let event) = message.kind { return "\(time) -- \(said(event, by: message.senderUserId))" }
    return "\(time) \(name(message.senderUserId)): \(content(message))"
  }

  /// What a message says.
  func content(_ message: ChatMessage) -> String {
    if message.isDeleted { return "(deleted)" }
    var parts: [String] = []
    if let reply = message.reply {
      let quote = reply.quoteText.map { "\"\(cut(safe($0), to: 30))\"" } ?? safe(reply.quoteKind)
      parts.append(
        "(to \(name(reply.quoteSenderUserId)): \(quote)\(reply.state == .resolved ? "" : ", not here"))")
    }
    if let attachment = message.attachment { parts.append(described(attachment)) }
    if let caption = message.caption { parts.append(safe(caption)) }
    switch message.kind {
    case .custom(let type, let payload):
      parts.append("[\(safe(type)), \(payload.count) bytes] \(safe(message.text ?? ""))")
    case .unsupported(let type, let fallback):
      parts.append("[\(safe(type)) is too new for this program] \(safe(fallback ?? ""))")
    case .unreadable: parts.append("[a message that cannot be read]")
    default: if let text = message.text { parts.append(safe(text)) }
    }
    if message.isEdited { parts.append("(edited)") }
    if let end = message.expiresAt { parts.append("(until \(Self.time(end)))") }
    if message.mentions.contains(where: { $0.mentionedUserId == me }) { parts.append("(mentions you)") }
    return parts.joined(separator: " ")
  }

  func described(_ attachment: Attachment) -> String {
    var parts = [
      "\(attachment.kind.rawValue) \(safe(attachment.filename))", Self.size(attachment.plaintextSize),
    ]
    if let width = attachment.width, let height = attachment.height { parts.append("\(width)x\(height)") }
    if let time = attachment.durationMs { parts.append(String(format: "%.1f s", Double(time) / 1000)) }
    if attachment.thumbnail != nil { parts.append("thumbnail") }
    return "[" + parts.joined(separator: ", ") + "]" + (attachment.waveform.map { " " + Self.wave($0) } ?? "")
  }

  private func said(_ event: SystemEvent, by actor: String) -> String {
    let who = name(actor)
    return switch event {
    case .memberAdded(let users): "\(who) added \(names(users))"
    case .memberRemoved(let users): "\(who) removed \(names(users))"
    case .memberLeft(let user): "\(name(user)) left"
    case .renamed(let title):
      title.isEmpty ? "\(who) took the name away" : "\(who) named the group \"\(safe(title))\""
    case .roleChanged(let user, let role): "\(name(user)) is now \(role.rawValue)"
    case .timerChanged(let setting): "\(who) set the timer: \(timer(setting))"
    case .keyChanged(let user): "the safety number with \(name(user)) changed"
    case .historyGap: "earlier messages are missing here"
    case .groupReset: "\(who) founded the group anew"
    }
  }

  func timer(_ setting: DisappearingSetting?) -> String {
    setting.map { "\($0.ttlSeconds) s after \($0.start == .send ? "sending" : "reading")" } ?? "off"
  }

  func trust(_ trust: ChatTrust) -> String {
    switch trust {
    case .unverified: "not verified"
    case .verified: "verified"
    case .changed(let event): "the devices of \(name(event.userId)) changed; compare again"
    }
  }

  @MainActor
  func ticks(_ message: ChatMessage, in chat: Chat) -> String {
    switch message.delivery {
    case .pending: "…"
    case .failed: "!"
    case .sent:
      message.serverSeq <= chat.readUpTo ? "✓✓ read" : message.serverSeq <= chat.deliveredUpTo ? "✓✓" : "✓"
    }
  }

  /// A failure as one line: the code that a program compares, and the sentence for people.
  static func failure(_ error: any Error) -> String {
    switch error {
    case let error as BackendError: "\(error.code): \(safe(error.message))"
    case let error as Misuse: error.description
    case is CancellationError: "cancelled"
    default: safe(error.localizedDescription)
    }
  }

  static func time(_ date: Date) -> String {
    date.formatted(
      Date.VerbatimFormatStyle(
        format: "\(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits)",
        timeZone: .current, calendar: .current))
  }

  static func size(_ count: Int) -> String {
    switch count {
    case ..<1_000: "\(count) B"
    case ..<1_000_000: String(format: "%.1f kB", Double(count) / 1_000)
    default: String(format: "%.1f MB", Double(count) / 1_000_000)
    }
  }

  /// Peaks as small bars.
  static func wave(_ peaks: [Int]) -> String {
    guard let top = peaks.max(), top > 0 else { return "" }
    let bars = Array("▁▂▃▄▅▆▇█")
    let step = max(1, peaks.count / 16)
    return String(
      stride(from: 0, to: peaks.count, by: step).map { bars[min(7, max(0, peaks[$0]) * 8 / (top + 1))] })
  }
}
