import Foundation
import PalbeMessaging

extension Session {
  /// Does what was typed. Throws what a person did wrong, and what `pb` says.
  func run(_ command: Command) async throws {
    switch command {
    case .help, .whoAmI, .contact, .chats, .status, .members, .readers, .presence: try look(command)
    case .signUp(let email): try await signIn(email, signsUp: true)
    case .signIn(let email): try await signIn(email, signsUp: false)
    case .signOut:
      leave()
      try await pb.auth.signOut()
      show("signed out")
    case .quit: break
    case .open(let word): enter(try chat(word))
    case .direct(let name): enter(await pb.messaging.directChat(with: try user(name)))
    case .group(let title, let names):
      enter(await pb.messaging.groupChat(title: title, members: try names.map { try user($0) }))
    case .close: closeChat()
    case .say, .expiring, .reply, .image, .file, .voice, .video, .custom: try await send(command)
    case .react, .unreact, .edit, .deleteForEveryone, .hide, .retry, .cancel: try await change(command)
    case .more(let count): show("\(try await opened().chat.loadEarlier(limit: count)) earlier messages")
    case .download(let word, let path): try await download(try opened().message(word), to: path)
    case .markRead:
      let chat = try opened().chat
      if let last = chat.messages.last { try await chat.markRead(upTo: last) }
    case .unread: show("unread: \(try await opened().chat.refreshUnread())")
    case .typing(let isOn): try opened().chat.setTyping(isOn)
    case .preferences(let words): try await preferences(words)
    default: try await manage(command)
    }
  }

  private func signIn(_ email: String, signsUp: Bool) async throws {
    let password = try await password(of: email)
    leave()
    if signsUp {
      try await pb.auth.signUp(email: email, password: password)
    } else {
      try await pb.auth.signIn(email: email, password: password)
    }
    try await enter()
  }

  private func chat(_ word: String) throws -> Chat {
    if let number = Int(word), listed.indices.contains(number - 1) { return listed[number - 1] }
    guard let chat = pb.messaging.chats.all.first(where: { $0.id == word || $0.title == word }) else {
      throw Misuse("no chat '\(safe(word))'; /chats lists them")
    }
    return chat
  }

  // MARK: Looking

  private func look(_ command: Command) throws {
    switch command {
    case .help(let word):
      let wanted = word.map { $0.hasPrefix("/") ? $0 : "/" + $0 }
      for (usage, help) in Command.table where wanted == nil || usage.prefix(while: { $0 != " " }) == wanted!
      {
        show("  \(usage.padding(toLength: max(36, usage.count), withPad: " ", startingAt: 0)) \(help)")
      }
    case .whoAmI: show("\(wording.me.isEmpty ? "nobody" : wording.me), data in \(safe(arguments.data))")
    case .contact(let name, nil): show("\(safe(name)): \(try user(name))")
    case .contact(let name, let user?):
      try contacts.add(user, name: name)
      MessagingSettings.current.profiles = contacts
    case .chats:
      listed = pb.messaging.chats.all
      if listed.isEmpty { show("no chats yet; /dm NAME begins one") }
      for (index, chat) in listed.enumerated() {
        let last = chat.lastMessage.map { ", \(wording.line($0))" } ?? ""
        let unread = chat.unreadCount > 0 ? ", \(chat.unreadCount) unread" : ""
        show("\(index + 1). \(safe(chat.title))\(unread)\(chat.isMuted ? ", muted" : "")\(last)")
      }
    case .status: show("status: \(statusLine)")
    case .members:
      for member in try opened().chat.members {
        show("\(wording.name(member.userId)), \(member.role.rawValue), \(safe(member.userId))")
      }
    case .readers(let word):
      let open = try opened()
      show(
        "read by \(wording.names(open.chat.readers(upTo: try open.message(word).serverSeq).map(\.userId)))")
    case .presence(let name):
      let user = try user(name)
      let presence = try opened().chat.presence(of: user)
      let seen = presence?.lastSeen.map { ", last seen \(Wording.time($0))" } ?? ""
      show("\(wording.name(user)) is \(presence?.isOnline == true ? "online" : "offline")\(seen)")
    default: break
    }
  }

  // MARK: Sending

  private func send(_ command: Command) async throws {
    let chat = try opened().chat
    chat.setTyping(false)
    switch command {
    case .say(let text): try await chat.send(text: text, mentions: mentions(in: text, of: chat))
    case .expiring(let seconds, let start, let text):
      try await chat.send(text: text, expiresIn: seconds, start: start == .send ? .send : .read)
    case .reply(let word, let text):
      try await chat.send(text: text, replyingTo: try opened().message(word))
    case .image(let path):
      try await chat.send(image: try file(path), filename: name(path), mimeType: mimeType(path))
    case .file(let path):
      try await chat.send(file: try file(path), filename: name(path), mimeType: mimeType(path))
    case .voice(let path, let time): try await chat.send(voice: try file(path), durationMs: time)
    case .video(let path, let time, let poster):
      try await chat.send(
        video: try file(path), filename: name(path), mimeType: mimeType(path), durationMs: time,
        poster: try poster.map { try file($0) })
    case .custom(let type, let payload, let fallback):
      try await chat.send(custom: type, payload: Data(payload.utf8), fallback: fallback)
    default: break
    }
  }

  /// `@name` of each member, as ranges of UTF-16 units: that is how they travel.
  private func mentions(in text: String, of chat: Chat) -> [MentionRange] {
    var ranges: [MentionRange] = []
    var start = text.startIndex
    while let at = text[start...].firstIndex(of: "@") {
      let rest = text[text.index(after: at)...]
      let name = rest.prefix { $0.isLetter || $0.isNumber || "._-".contains($0) }
      start = name.endIndex
      guard let user = contacts.user(String(name)), chat.members.contains(where: { $0.userId == user }) else {
        continue
      }
      ranges.append(
        MentionRange(
          start: text.utf16.distance(from: text.startIndex, to: at),
          length: text.utf16.distance(from: at, to: name.endIndex), mentionedUserId: user))
    }
    return ranges
  }

  private func file(_ path: String) throws -> Data {
    do { return try Data(contentsOf: URL(fileURLWithPath: path), options: .mappedIfSafe) } catch {
      throw Misuse("cannot read '\(safe(path))'")
    }
  }

  private func name(_ path: String) -> String { URL(fileURLWithPath: path).lastPathComponent }

  private func mimeType(_ path: String) -> String {
    switch URL(fileURLWithPath: path).pathExtension.lowercased() {
    case "jpg", "jpeg": "image/jpeg"
    case "png": "image/png"
    case "gif": "image/gif"
    case "ppm": "image/x-portable-pixmap"
    case "mp4", "m4v": "video/mp4"
    case "webm": "video/webm"
    case "m4a": "audio/m4a"
    case "wav": "audio/wav"
    case "pdf": "application/pdf"
    case "txt": "text/plain"
    default: "application/octet-stream"
    }
  }

  // MARK: Changing

  private func change(_ command: Command) async throws {
    let open = try opened()
    let chat = open.chat
    switch command {
    case .react(let word, let emoji): try await chat.react(try open.message(word), emoji: emoji)
    case .unreact(let word, let emoji): try await chat.unreact(try open.message(word), emoji: emoji)
    case .edit(let word, let text):
      let message = try open.message(word)
      guard message.isOutgoing, message.kind == .text else { throw Misuse("only own texts can be edited") }
      try await chat.edit(message, newText: text)
    case .deleteForEveryone(let word):
      let message = try open.message(word)
      guard message.isOutgoing else { throw Misuse("only own messages can be deleted for everyone; /hide") }
      try await chat.deleteForEveryone(message)
    case .hide(let word): chat.deleteForMe(try open.message(word))
    case .retry(let word): try await chat.retry(try open.message(word))
    case .cancel(let word): try await chat.cancel(try open.message(word))
    default: break
    }
  }

  /// Writes an attachment to a new file, piece by piece as it is decrypted.
  private func download(_ message: ChatMessage, to path: String) async throws {
    guard let attachment = message.attachment else { throw Misuse("there is no attachment") }
    guard !FileManager.default.fileExists(atPath: path) else {
      throw Misuse("'\(safe(path))' is there already")
    }
    let part = path + ".part"
    guard FileManager.default.createFile(atPath: part, contents: nil, attributes: [.posixPermissions: 0o600]),
      let handle = FileHandle(forWritingAtPath: part)
    else { throw Misuse("cannot write '\(safe(path))'") }
    defer { try? FileManager.default.removeItem(atPath: part) }
    var count = 0
    try await transfer("get \(safe(attachment.filename))") { report in
      for try await piece in attachment.fetchBlobStream(progress: report) {
        try handle.write(contentsOf: piece)
        count += piece.count
      }
    }
    try handle.close()
    try FileManager.default.moveItem(atPath: part, toPath: path)
    show("\(safe(path)): \(count) bytes, checked")
  }

  private func preferences(_ words: [String]) async throws {
    var presence: Bool?
    var receipts: Bool?
    for index in stride(from: 0, to: words.count, by: 2) {
      if words[index] == "presence" {
        presence = words[index + 1] == "on"
      } else {
        receipts = words[index + 1] == "on"
      }
    }
    let now =
      words.isEmpty
      ? try await pb.messaging.commsPrefs()
      : try await pb.messaging.setCommsPrefs(sharePresence: presence, shareReceipts: receipts)
    show("presence \(now.sharePresence ? "on" : "off"), receipts \(now.shareReceipts ? "on" : "off")")
  }

  // MARK: The chat itself

  private func manage(_ command: Command) async throws {
    let chat = try opened().chat
    switch command {
    case .rename(let title): try await chat.rename(title)
    case .add(let name): try await chat.addMember(userId: try user(name))
    case .remove(let name): try await chat.removeMember(userId: try user(name))
    case .role(let name, let role):
      try await chat.setRole(ChatRole(rawValue: role) ?? .member, for: try user(name))
    case .leave: try await chat.leave()
    case .refound: try await chat.refound()
    case .mute(let isOn): try await chat.setNotifyScope(isOn ? NotifyScope.none : .all)
    case .timer(let seconds, let start):
      try await chat.setDisappearing(ttlSeconds: seconds, start: start == .send ? .send : .read)
    case .consent(let word):
      try await chat.setConsent(word == "allow" ? .allowed : word == "deny" ? .denied : .unknown)
    case .safety(let name):
      let (user, result) = try await safetyNumber(name, of: chat)
      compared[user] = result.peerDeviceSetHash
      show("safety number with \(wording.name(user)), to be compared:")
      let groups = SafetyNumber.groups(of: result.safetyNumber)
      show("  " + groups.prefix(6).joined(separator: " "))
      show("  " + groups.dropFirst(6).joined(separator: " "))
    case .verify(let name):
      let (user, _) = try await safetyNumber(name, of: chat)
      guard let hash = compared[user] else { throw Misuse("compare first: /safety \(safe(name ?? ""))") }
      try await chat.verify(user, deviceSetHash: hash)
    default: break
    }
  }

  private func safetyNumber(_ name: String?, of chat: Chat) async throws -> (String, SafetyNumberResult) {
    if let name {
      let user = try user(name)
      return (user, try await chat.safetyNumber(with: user))
    }
    let result = try await chat.safetyNumber()
    return (chat.members.first { $0.userId != wording.me }?.userId ?? "", result)
  }
}
