import PalbeChatCore
import PalbeUnits

extension ChatHistory {
  private static let emoji = ["👍", "🎉", "👨‍👩‍👧‍👦", "❤️", "🇩🇪"]

  private func pick<Element>(_ elements: [Element], _ number: Int) -> Element? {
    elements.isEmpty ? nil : elements[number % elements.count]
  }

  private func chat(_ phone: Phone, _ number: Int) -> ChatID? { pick(phone.engine?.allChats ?? [], number) }

  /// Carries a step out; false when there is nothing for it.
  mutating func live(_ step: ChatStep) -> Bool {
    guard let phone = pick(world.phones, step.phone) else { return false }
    if step.action.fault != nil { return suffer(step, phone) }
    guard phone.isRunning else {
      // Whom a process ended under opens the app again.
      world.start(phone)
      return false
    }
    switch step.action {
    case .direct, .group: return begin(step, phone)
    case .add, .remove, .role, .leave, .reset, .read, .consent, .scope, .typing, .rename, .timer:
      return change(step, phone)
    case .device, .revoke: return changeDevices(step, phone)
    default: return say(step, phone)
    }
  }

  // MARK: Saying

  private mutating func say(_ step: ChatStep, _ phone: Phone) -> Bool {
    guard let chat = chat(phone, step.first) else { return false }
    let rows = world.rows(phone, chat).filter { $0.kind.isBubble && !$0.isDeleted }
    switch step.action {
    case .replay: return world.replayLast(of: phone)
    case .say: return send(.text(TextBody(nextText())), phone, chat)
    case .mention:
      let text = nextText()
      // Behind characters of several code units, and one with several of those.
      let name = "@👩🏽‍🚀\(step.second)"
      let mention = Mention(
        start: text.utf16.count + "👨‍👩‍👧‍👦🇩🇪 ".utf16.count, length: name.utf16.count,
        user: users[step.second % users.count])
      return send(.text(TextBody("\(text)👨‍👩‍👧‍👦🇩🇪 \(name)", mentions: [mention])), phone, chat)
    case .expiring:
      let expiry = Expiry(seconds: UInt32(1 + step.second % 20), start: step.second % 2 == 0 ? .send : .read)
      return send(.text(TextBody(nextText())), phone, chat, expiry)
    case .file:
      let caption = nextText()
      note("\(phone.name) sends file \(caption) to \(chat)")
      let result = try? world.sendFile(
        caption, from: phone, to: chat, kind: AttachmentKind.allCases[step.second % 4],
        taking: step.second / 4 % 2_000, failures: step.first / 7 % 3 == 0 ? 1 : 0)
      for envelope in phone.unconfirmed(chat) { world.noteSaid(envelope, phone, chat) }
      return result != nil
    case .custom:
      return send(.custom(type: "org.example.poll", payload: [UInt8](nextText().utf8)), phone, chat)
    case .refused:
      guard send(.text(TextBody(nextText())), phone, chat), let id = phone.unconfirmed(chat).last?.id else {
        return false
      }
      // Unless it is with the server already.
      if !world.ledger.isTaken(id) { world.refused.insert(id) }
      return true
    case .reply:
      guard let row = pick(rows, step.second),
        let quote = try? world.use(
          phone,
          { (engine, now) throws(EngineError) -> ReplyReference? in
            let transcript = try engine.transcript(of: chat, at: now)
            return try? transcript.quote(of: row.id)
          })
      else { return false }
      return send(.text(TextBody(nextText(), reply: quote)), phone, chat)
    case .react, .unreact:
      guard let row = pick(rows, step.second) else { return false }
      let emoji = Self.emoji[step.second / 7 % Self.emoji.count]
      return send(
        .reaction(target: row.id, emoji: emoji, isRemoved: step.action == .unreact), phone, chat)
    case .edit, .delete, .meddle:
      let isMeddling = step.action == .meddle
      guard let row = pick(rows.filter { ($0.sender?.user == phone.user) != isMeddling }, step.second) else {
        return false
      }
      if step.action == .delete || isMeddling && step.second % 2 == 0 {
        return send(.delete(target: row.id), phone, chat)
      }
      return send(.edit(target: row.id, TextBody(nextText())), phone, chat)
    case .hide:
      guard let row = pick(rows, step.second) else { return false }
      note("\(phone.name) hides \(row.text ?? "-")")
      _ = try? world.use(phone) { (engine, now) throws(EngineError) in
        try engine.hide(row.id, in: chat, at: now)
      }
      if !phone.isShown(row.id, in: chat) { phone.hidden.insert(row.id) }
      return true
    case .retry, .cancel: return change(failed: step, phone, chat)
    default: return false
    }
  }

  private mutating func send(
    _ content: Content, _ phone: Phone, _ chat: ChatID, _ expiry: Expiry? = nil
  ) -> Bool {
    note("\(phone.name) sends \(String(describing: content).prefix(120)) to \(chat)")
    let result = try? world.use(phone) { (engine, now) throws(EngineError) in
      let summary = try engine.transcript(of: chat, at: now)
      return try engine.send(content, to: chat, expiry: summary.expiry(explicit: expiry), at: now)
    }
    // Also where the process ended behind it.
    for envelope in phone.unconfirmed(chat) { world.noteSaid(envelope, phone, chat) }
    return result != nil
  }

  private mutating func change(failed step: ChatStep, _ phone: Phone, _ chat: ChatID) -> Bool {
    let failed = world.rows(phone, chat).filter { if case .failed = $0.delivery { true } else { false } }
    guard let row = pick(failed, step.second) else { return false }
    note("\(phone.name) \(step.action) \(row.text ?? "-")")
    if step.action == .retry {
      world.refused.remove(row.id)
      _ = try? world.use(phone) { (engine, now) throws(EngineError) in
        try engine.retry(row.id, in: chat, at: now)
      }
    } else {
      _ = try? world.use(phone) { (engine, now) throws(EngineError) in
        try engine.cancel(row.id, in: chat, at: now)
      }
      if !phone.unconfirmed(chat).contains(where: { $0.id == row.id }) { world.ledger.cancels(row.id) }
    }
    return true
  }

  // MARK: Chats

  private mutating func begin(_ step: ChatStep, _ phone: Phone) -> Bool {
    let chat: ChatID?
    if step.action == .direct {
      chat = try? world.directChat(phone, with: users[step.first % users.count])
    } else {
      let others = users.indices.filter { step.second >> $0 & 1 == 1 }.map { users[$0] }
      chat = try? world.groupChat(phone, others, title: "g\(step.first)")
    }
    guard let chat else { return false }
    note("\(phone.name) begins \(chat)")
    return send(.text(TextBody(nextText())), phone, chat)
  }

  private mutating func change(_ step: ChatStep, _ phone: Phone) -> Bool {
    guard let chat = chat(phone, step.first) else { return false }
    let user = users[step.second % users.count]
    let command: EngineCommand
    switch step.action {
    case .add: command = .addMember(chat, user)
    case .remove: command = .removeMember(chat, user)
    case .role: command = .setRole(chat, user, ChatRole(rawValue: UInt8(1 + step.second / 5 % 3)) ?? .member)
    case .leave: command = .leave(chat)
    case .reset: command = .reset(chat)
    case .scope: command = .setNotifyScope(chat, step.second % 2 == 0 ? .all : .none)
    case .read:
      guard let seq = pick(world.rows(phone, chat).compactMap(\.seq), step.second) else { return false }
      command = .markRead(chat, upTo: seq)
    case .rename: return send(.control(.renamed("n\(step.second)")), phone, chat)
    case .timer:
      let expiry = Expiry(seconds: UInt32(5 + step.second % 20), start: step.second % 2 == 0 ? .send : .read)
      return send(.control(.timer(step.second % 3 == 0 ? nil : expiry)), phone, chat)
    case .consent:
      _ = try? world.use(phone) { (engine, now) throws(EngineError) in
        try engine.setConsent(step.second % 2 == 0 ? .allowed : .denied, for: chat, at: now)
      }
      return true
    default:
      world.setTyping(step.second % 2 == 0, phone, chat)
      return true
    }
    note("\(phone.name) \(command)")
    world.command(phone, command)
    return true
  }

  private mutating func changeDevices(_ step: ChatStep, _ phone: Phone) -> Bool {
    let own = world.phones.filter { $0.user == phone.user && !$0.isRevoked }
    if step.action == .device {
      guard own.count < 3, world.phones.count < 9 else { return false }
      note("another device of \(phone.name)'s user")
      addPhone(of: phone.user)
      return true
    }
    guard let other = pick(own.filter { $0 !== phone }, step.second), other.device != nil, !phone.isRevoked,
      world.isEnrolled(phone)
    else { return false }
    note("\(phone.name) revokes \(other.name)")
    guard (try? world.revoke(other, by: phone)) != nil else { return false }
    other.isRevoked = true
    return true
  }

  // MARK: What goes wrong

  private mutating func suffer(_ step: ChatStep, _ phone: Phone) -> Bool {
    note("\(phone.name) \(step.action) \(step.first) \(step.second)")
    switch step.action {
    case .reach: world.setReachable(phone, !phone.isReachable)
    case .split:
      for (place, phone) in world.phones.enumerated() where step.first >> place & 1 == 1 && phone.isReachable
      {
        world.setReachable(phone, false)
      }
    case .unite: for phone in world.phones where !phone.isReachable { world.setReachable(phone, true) }
    case .socket: world.dropSocket(phone)
    case .outage: world.outage = world.now.instant + .milliseconds(step.second)
    case .restart:
      phone.crashes += 1
      world.restart(phone)
    case .kill:
      phone.crashes += 1
      world.kill(phone)
    case .die: phone.storage.arm(nil, moment(step), passes: step.second % 6)
    case .trap:
      let point = CrashPoint.drawn[step.first % CrashPoint.drawn.count]
      phone.storage.arm(point.kind, point.moment, passes: step.second % 2)
    case .clock: world.setClock(phone, ahead: .seconds([-86_400, -300, 0, 300, 86_400][step.second % 5]))
    default: return false
    }
    return true
  }

  private func moment(_ step: ChatStep) -> CrashingStorage.Moment { step.first % 2 == 0 ? .before : .after }
}
