import PalbeChatCore
import PalbeUnits

/// What a transcript must show, worked out anew from everything that ever happened to it: arrays, no records,
/// nothing kept up to date. Written from the requirements, not from the code that it judges.
package struct TranscriptModel {
  package enum Input {
    case received(Incoming)
    case made(Envelope, ChatTime)
    case confirmed(ClientMessageID, seq: Int64, ChatTime)
    case failed(ClientMessageID)
    case retried(ClientMessageID)
    case cancelled(ClientMessageID)
    case hidden(ClientMessageID)
    case read(Int64, ChatTime)
    case swept(ChatTime)
    case system(SystemEvent, seq: Int64)
  }

  package struct Shown: Equatable {
    package var text: String?
    package var mentions: [Mention] = []
    package var isEdited = false
    package var isDeleted = false
    package var reactions: [String: Set<UserID>] = [:]
    package var seq: Int64?
    package var isFailed = false
    package var isSystem = false
    package var quote: String?
    package var expiresAt: WallTime?

    /// What a row shows of it. Only texts have one here: what is under a file, and what stands for an application's own
    /// content, is not looked at.
    package init(_ row: Row) {
      if row.kind == .text { (text, mentions) = (row.text, row.mentions) }
      (isEdited, isDeleted, seq, expiresAt) = (row.isEdited, row.isDeleted, row.seq, row.expiresAt)
      for tally in row.reactions { reactions[tally.emoji] = Set(tally.users) }
      if case .failed = row.delivery { isFailed = true }
      if case .system = row.kind { isSystem = true }
      quote = row.reply.map { $0.quoteText ?? "" }
    }

    init(seq: Int64?, isFailed: Bool, isSystem: Bool, expiresAt: WallTime?) {
      (self.seq, self.isFailed, self.isSystem, self.expiresAt) = (seq, isFailed, isSystem, expiresAt)
    }
  }

  private struct Message {
    var envelope: Envelope?
    var id: ClientMessageID?
    var sender: UserID
    var seq: Int64?
    var part = 0
    var due: (wall: WallTime, instant: Instant)?
    var isFailed = false
    var isHidden = false
    var event: SystemEvent?
    /// When it was made, among one's own.
    var order = 0
  }

  private struct Action {
    var content: Content
    var user: UserID
    var seq: Int64
  }

  let me: UserID
  let cap: Int

  package private(set) var rows: [Shown] = []
  package private(set) var unread = 0
  package private(set) var preview: String?

  package init(_ log: [Input], me: UserID, cap: Int) {
    (self.me, self.cap) = (me, cap)
    var messages: [Message] = []
    var actions: [Action] = []
    var unsent: [(envelope: Envelope, isFailed: Bool)] = []
    var gone: Set<ClientMessageID> = []
    var trimmed: (seq: Int64, part: Int) = (-1, 0)
    var readUpTo: Int64 = 0
    var order = 0

    func index(_ id: ClientMessageID) -> Int? { messages.firstIndex { $0.id == id } }
    func isKnown(_ id: ClientMessageID) -> Bool {
      index(id) != nil || gone.contains(id) || unsent.contains { $0.envelope.id == id }
    }
    func trim() {
      while messages.count(where: { $0.seq != nil }) > cap {
        let oldest = messages.indices.filter { messages[$0].seq != nil }.min {
          (messages[$0].seq!, messages[$0].part) < (messages[$1].seq!, messages[$1].part)
        }!
        let place = (messages[oldest].seq!, messages[oldest].part)
        if place > trimmed { trimmed = place }
        messages.remove(at: oldest)
      }
    }
    func isAction(_ content: Content) -> Bool {
      switch content {
      case .reaction, .edit, .delete: true
      default: false
      }
    }
    func due(
      _ envelope: Envelope, from sender: UserID, seq: Int64, serverAt: WallTime, _ now: ChatTime
    ) -> (wall: WallTime, instant: Instant)? {
      guard let expiry = envelope.expiry else { return nil }
      var left = Int64(expiry.seconds) * 1_000_000
      switch expiry.start {
      case .read:
        guard sender == me || seq <= readUpTo else { return nil }
      case .send:
        let start = min(max(envelope.sentAt, serverAt - .seconds(300)), serverAt)
        left -= max(now.wall.microseconds - start.microseconds, serverAt.microseconds - start.microseconds)
      }
      let delta = TimeDelta.microseconds(Int(max(0, left)))
      return (now.wall + delta, now.instant + delta)
    }
    func isOver(_ due: (wall: WallTime, instant: Instant)?, _ now: ChatTime) -> Bool {
      due.map { now.wall >= $0.wall || now.instant >= $0.instant } ?? false
    }
    func land(
      _ envelope: Envelope, from sender: UserID, seq: Int64, serverAt: WallTime, isHidden: Bool,
      _ now: ChatTime
    ) {
      if isAction(envelope.content) {
        actions.append(Action(content: envelope.content, user: sender, seq: seq))
        return
      }
      guard (seq, 0) > trimmed else { return }
      let due = due(envelope, from: sender, seq: seq, serverAt: serverAt, now)
      if isHidden || isOver(due, now) {
        gone.insert(envelope.id)
        return
      }
      messages.append(Message(envelope: envelope, id: envelope.id, sender: sender, seq: seq, due: due))
    }
    func confirm(_ id: ClientMessageID, seq: Int64, serverAt: WallTime, _ now: ChatTime) {
      if let place = unsent.firstIndex(where: { $0.envelope.id == id }) {
        let envelope = unsent.remove(at: place).envelope
        actions.append(Action(content: envelope.content, user: me, seq: seq))
      } else if let place = messages.firstIndex(where: { $0.id == id && $0.seq == nil }) {
        let message = messages.remove(at: place)
        land(
          message.envelope!, from: me, seq: seq, serverAt: serverAt, isHidden: message.isHidden, now)
      }
    }

    for input in log {
      switch input {
      case .received(let incoming):
        let id = incoming.envelope.id
        if let index = index(id), messages[index].seq == nil {
          guard incoming.sender.user == me else { continue }
          confirm(id, seq: incoming.seq, serverAt: incoming.serverAt, incoming.receivedAt)
        } else if unsent.contains(where: { $0.envelope.id == id }) {
          guard incoming.sender.user == me else { continue }
          confirm(id, seq: incoming.seq, serverAt: incoming.serverAt, incoming.receivedAt)
        } else if isAction(incoming.envelope.content) || !isKnown(id) {
          land(
            incoming.envelope, from: incoming.sender.user, seq: incoming.seq, serverAt: incoming.serverAt,
            isHidden: false, incoming.receivedAt)
        }
      case .made(let envelope, _):
        guard !isKnown(envelope.id) else { continue }
        order += 1
        if isAction(envelope.content) {
          unsent.append((envelope, false))
        } else {
          messages.append(Message(envelope: envelope, id: envelope.id, sender: me, seq: nil, order: order))
        }
      case .confirmed(let id, let seq, let now): confirm(id, seq: seq, serverAt: now.wall, now)
      case .failed(let id), .retried(let id):
        var isFailed = false
        if case .failed = input { isFailed = true }
        if let place = unsent.firstIndex(where: { $0.envelope.id == id }) {
          unsent[place].isFailed = isFailed
        }
        if let index = index(id), messages[index].seq == nil { messages[index].isFailed = isFailed }
      case .cancelled(let id):
        unsent.removeAll { $0.envelope.id == id }
        messages.removeAll { $0.id == id && $0.seq == nil }
      case .hidden(let id):
        guard let index = index(id) else { continue }
        if messages[index].seq == nil {
          messages[index].isHidden = true
        } else {
          messages.remove(at: index)
          gone.insert(id)
        }
      case .read(let seq, let now):
        readUpTo = max(readUpTo, seq)
        for index in messages.indices {
          guard let at = messages[index].seq, at <= readUpTo, messages[index].due == nil,
            let expiry = messages[index].envelope?.expiry, expiry.start == .read
          else { continue }
          let delta = TimeDelta.seconds(Int(expiry.seconds))
          messages[index].due = (now.wall + delta, now.instant + delta)
        }
      case .swept(let now):
        for message in messages where isOver(message.due, now) {
          if let id = message.id { gone.insert(id) }
        }
        messages.removeAll { isOver($0.due, now) }
      case .system(let event, let seq):
        let others = messages.filter { $0.seq == seq && $0.event != nil }
        guard !others.contains(where: { $0.event == event }) else { continue }
        let part = (messages.filter { $0.seq == seq }.map(\.part).max() ?? 0) + 1
        guard (seq, part) > trimmed else { continue }
        messages.append(Message(sender: me, seq: seq, part: part, event: event))
      }
      trim()
    }

    // What is shown, from the words alone.
    let pendingActions = unsent.filter { !$0.isFailed }.map {
      Action(content: $0.envelope.content, user: me, seq: .max)
    }
    let settled = actions.sorted { $0.seq < $1.seq }
    func shown(_ message: Message) -> Shown {
      var shown = Shown(
        seq: message.seq, isFailed: message.isFailed, isSystem: message.event != nil,
        expiresAt: message.due?.wall)
      guard let envelope = message.envelope else { return shown }
      var isText = false
      if case .text(let body) = envelope.content {
        (shown.text, shown.mentions, isText) = (body.text, body.mentions, true)
      }
      // What others do to a message that the server has not confirmed to us waits until then.
      for word in (message.seq == nil ? [] : settled) + pendingActions {
        switch word.content {
        case .reaction(let target, let emoji, let isRemoved) where target == envelope.id:
          if isRemoved {
            shown.reactions[emoji]?.remove(word.user)
            if shown.reactions[emoji]?.isEmpty == true { shown.reactions[emoji] = nil }
          } else {
            shown.reactions[emoji, default: []].insert(word.user)
          }
        case .edit(let target, let new) where target == envelope.id && word.user == message.sender:
          if isText { (shown.text, shown.mentions, shown.isEdited) = (new.text, new.mentions, true) }
        case .delete(let target) where target == envelope.id && word.user == message.sender:
          shown.isDeleted = true
        default: break
        }
      }
      if shown.isDeleted {
        (shown.text, shown.mentions, shown.isEdited, shown.reactions) = (nil, [], false, [:])
      }
      return shown
    }
    // Of a file a quote has what is said under it.
    func words(_ message: Message) -> String {
      let it = shown(message)
      if case .attachment(let body) = message.envelope?.content, !it.isDeleted { return body.caption ?? "" }
      return it.text ?? ""
    }
    let confirmed = messages.filter { $0.seq != nil }.sorted { ($0.seq!, $0.part) < ($1.seq!, $1.part) }
    let visible = confirmed + messages.filter { $0.seq == nil && !$0.isHidden }.sorted { $0.order < $1.order }
    for message in visible {
      var row = shown(message)
      if !row.isDeleted, case .text(let body) = message.envelope?.content, let reply = body.reply {
        if let parent = visible.first(where: { $0.id == reply.parent }) {
          row.quote = words(parent)
        } else {
          let isGone = gone.contains(reply.parent) || messages.contains { $0.id == reply.parent }
          row.quote = isGone ? "" : (reply.quote.text ?? "")
        }
      }
      rows.append(row)
    }
    unread =
      confirmed.filter { message in
        message.event == nil && message.sender != me && message.seq! > readUpTo && !shown(message).isDeleted
      }.count
    let said = visible.filter { $0.event == nil }
    preview = said.last.map { shown($0).text ?? "" }
  }
}
