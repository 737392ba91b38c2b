import Foundation
import Observation
import PalbeMessaging

/// Says as lines what happens in one chat. An app binds its views to `chat`, and the views find the changes; a terminal
/// can only add lines, so this compares the chat with what was said before.
@MainActor
final class ChatWatcher {
  let chat: Chat
  private let wording: Wording
  /// Takes a line about the chat.
  private let say: (String) -> Void
  /// Something that a status line shows may be different.
  private let changed: () -> Void
  private var shown: [String: Shown] = [:]
  /// What was said, in its order: number n is at n - 1.
  private var numbered: [String] = []
  private var facts: Facts?
  private var isOver = false
  private var looks = 0
  /// The newest message that was told of while the chat was not open.
  private var lastTold: String?
  /// Whether the chat is on the screen: only then its messages are read and shown.
  var isOpen = false {
    didSet { if isOpen != oldValue { observe() } }
  }

  private struct Shown {
    var number: Int
    var content: String
    var reactions: String
    var delivery: DeliveryState
    var isDelivered = false
    var isRead = false
  }

  private struct Facts: Equatable {
    var title: String, members: [String], role: ChatRole?, state: ChatState
    var typing: [String], online: [String], trust: String, timer: String, consent: ChatConsent
  }

  init(_ chat: Chat, wording: Wording, say: @escaping (String) -> Void, changed: @escaping () -> Void) {
    (self.chat, self.wording, self.say, self.changed) = (chat, wording, say, changed)
    observe()
  }

  func stop() { isOver = true }

  /// Looks at the chat now and after each change. `onChange` comes before the change and may be on any thread; the task
  /// looks after it, once for all changes until then.
  private func observe() {
    guard !isOver else { return }
    looks += 1
    let number = looks
    withObservationTracking {
      look()
    } onChange: { [weak self] in
      // An older look waits for the same changes.
      Task { @MainActor in if let self, self.looks == number { self.observe() } }
    }
  }

  private func look() {
    if isOpen { lookAtAll() } else { lookAtList() }
    _ = chat.unreadCount
    changed()
  }

  /// What the list shows of a chat.
  private func lookAtList() {
    if let last = chat.lastMessage, last.id != lastTold {
      lastTold = last.id
      if !last.isOutgoing, chat.unreadCount > 0 { say(wording.line(last)) }
    }
    var new =
      facts
      ?? Facts(
        title: "", members: [], role: nil, state: chat.state, typing: [], online: [], trust: "", timer: "",
        consent: chat.consent)
    (new.title, new.members, new.role, new.state) = (
      chat.title, chat.members.map(\.userId), chat.myRole, chat.state
    )
    look(new)
  }

  private func lookAtAll() {
    let messages = chat.messages
    lastTold = chat.lastMessage?.id
    let (delivered, read) = (chat.deliveredUpTo, chat.readUpTo)
    var here: Set<String> = []
    for message in messages {
      here.insert(message.id)
      look(message, delivered, read)
      // A transfer is in the status line.
      if message.delivery == .pending, message.attachment != nil { _ = chat.uploadProgress(of: message) }
    }
    // A chat that was let go of is read again first.
    let isReading = messages.isEmpty && chat.lastMessage != nil
    for (id, old) in shown where !here.contains(id) && !isReading {
      shown[id] = nil
      say("[\(old.number)] is gone")
    }
    look(
      Facts(
        title: chat.title, members: chat.members.map(\.userId), role: chat.myRole, state: chat.state,
        typing: chat.typing.map(\.userId),
        online: chat.onlineMembers.map(\.userId).filter { $0 != wording.me },
        trust: wording.trust(chat.trust), timer: wording.timer(chat.disappearing), consent: chat.consent))
  }

  private func look(_ message: ChatMessage, _ delivered: Int64, _ read: Int64) {
    let reactions = message.reactions.map { "\(safe($0.emoji)) \(wording.names($0.userIds))" }.joined(
      separator: "; ")
    var new = Shown(
      number: 0, content: wording.content(message), reactions: reactions, delivery: message.delivery)
    // Ticks of own messages that the server has.
    if message.isOutgoing, message.delivery == .sent {
      new.isDelivered = message.serverSeq <= delivered
      new.isRead =
        shown[message.id]?.isRead == true
        || message.serverSeq <= read && !chat.readers(upTo: message.serverSeq).isEmpty
    }
    guard let old = shown[message.id] else {
      numbered.append(message.id)
      new.number = numbered.count
      shown[message.id] = new
      say("[\(new.number)] \(wording.line(message))")
      if !reactions.isEmpty { say("[\(new.number)] reactions: \(reactions)") }
      if case .failed(let code) = new.delivery { say("[\(new.number)] failed: \(code)") }
      return
    }
    new.number = old.number
    shown[message.id] = new
    let number = "[\(new.number)]"
    if new.content != old.content { say("\(number) is now: \(new.content)") }
    if new.reactions != old.reactions {
      say("\(number) reactions: \(reactions.isEmpty ? "none" : reactions)")
    }
    if new.delivery != old.delivery {
      switch new.delivery {
      case .pending: say("\(number) goes out")
      case .sent: say("\(number) sent")
      case .failed(let code): say("\(number) failed: \(code)")
      }
    }
    if new.isRead, !old.isRead {
      say("\(number) read by \(wording.names(chat.readers(upTo: message.serverSeq).map(\.userId)))")
    } else if new.isDelivered, !old.isDelivered {
      say("\(number) delivered")
    }
  }

  private func look(_ new: Facts) {
    defer { facts = new }
    guard let old = facts, old != new else { return }
    // What was not looked at while it was not open is no news.
    let isNew = old.trust.isEmpty
    if new.title != old.title { say("the title is \"\(safe(new.title))\"") }
    if new.members != old.members { say("members: \(wording.names(new.members))") }
    if new.role != old.role, let role = new.role { say("your role is \(role.rawValue)") }
    if new.state != old.state { say("this chat is \(new.state.rawValue)") }
    if new.typing != old.typing {
      say(new.typing.isEmpty ? "nobody types" : "\(wording.names(new.typing)) types")
    }
    for user in new.online where !old.online.contains(user) { say("\(wording.name(user)) is online") }
    for user in old.online where !new.online.contains(user) { say("\(wording.name(user)) is offline") }
    if new.trust != old.trust, !isNew { say("trust: \(new.trust)") }
    if new.timer != old.timer, !isNew { say("timer: \(new.timer)") }
    if new.consent != old.consent { say("consent: \(new.consent.rawValue)") }
  }

  /// The message that a word means: its number, `.` the newest, `mine` or `theirs` the newest of these, `=text` the
  /// newest that holds the text.
  func message(_ word: String) throws -> ChatMessage {
    let bubbles = chat.messages.filter { if case .system = $0.kind { false } else { true } }
    let found: ChatMessage? =
      switch word {
      case ".": bubbles.last
      case "mine": bubbles.last { $0.isOutgoing }
      case "theirs": bubbles.last { !$0.isOutgoing }
      default:
        if word.hasPrefix("=") {
          bubbles.last { wording.content($0).contains(word.dropFirst()) }
        } else if let number = Int(word), numbered.indices.contains(number - 1) {
          bubbles.last { $0.id == numbered[number - 1] }
        } else {
          nil
        }
      }
    guard let found else {
      throw Misuse("no message '\(safe(word))' here; a message is its number, or . mine theirs =text")
    }
    return found
  }

  /// The number of a message that was shown.
  func number(of id: String) -> Int? { shown[id]?.number }
}
