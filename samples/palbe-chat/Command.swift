/// What can be typed, as values. A line without a slash is a text for the open chat.
enum Command {
  case help(String?), whoAmI, contact(String, String?), signUp(String), signIn(String), signOut, quit
  case chats, open(String), direct(String), group(String, [String]), close, members, status
  case say(String), expiring(Int, ExpiryWord, String), reply(String, String)
  case image(String), file(String), voice(String, Int), video(String, Int, String?)
  case custom(String, String, String)
  case react(String, String), unreact(String, String), edit(String, String)
  case deleteForEveryone(String), hide(String), retry(String), cancel(String)
  case rename(String), add(String), remove(String), role(String, String), leave, refound
  case mute(Bool), timer(Int?, ExpiryWord), consent(String)
  case safety(String?), verify(String?)
  case more(Int), download(String, String), markRead, readers(String), presence(String), unread
  case typing(Bool), preferences([String])

  enum ExpiryWord: String { case send, read }

  /// A line of help: what is typed, and what it does.
  static let table: [(usage: String, help: String)] = [
    ("/help [COMMAND]", "what can be typed"),
    ("/whoami", "who is signed in, and where the data is"),
    ("/signup EMAIL", "makes an account and signs in"),
    ("/signin EMAIL", "signs in"),
    ("/signout", "signs out; messages stay on this device"),
    ("/contact NAME [USER]", "writes down how a user is called; without an id, shows it"),
    ("/chats", "the list of chats"),
    ("/dm NAME", "opens the chat with one person"),
    ("/group TITLE NAME…", "begins a group; quotes hold a title of several words together"),
    ("/open CHAT", "opens a chat: its number in the list, its title, or grp_…"),
    ("/close", "closes the open chat"),
    ("TEXT", "sends it; @name of a member mentions them"),
    ("/say TEXT", "the same, for texts that begin with a slash"),
    ("/reply MESSAGE TEXT", "answers a message"),
    ("/expire SECONDS send|read TEXT", "a text that goes away after sending, or after it was read"),
    ("/image FILE", "sends a picture, with a thumbnail"),
    ("/video FILE MILLISECONDS [POSTER]", "sends a video; the poster is a picture file"),
    ("/voice FILE MILLISECONDS", "sends a voice message"),
    ("/file FILE", "sends a file"),
    ("/custom TYPE PAYLOAD FALLBACK", "sends what only this app knows, with a text for the others"),
    ("/get MESSAGE FILE", "fetches an attachment, checks it and writes it to a new file"),
    ("/react MESSAGE EMOJI", "reacts"),
    ("/unreact MESSAGE EMOJI", "takes a reaction back"),
    ("/edit MESSAGE TEXT", "changes an own text"),
    ("/delete MESSAGE", "deletes an own message for everyone"),
    ("/hide MESSAGE", "deletes a message on this device alone"),
    ("/retry MESSAGE", "tries a failed message again"),
    ("/cancel MESSAGE", "gives up a message that is not sent"),
    ("/more [COUNT]", "loads earlier messages"),
    ("/read", "marks the chat read"),
    ("/readers MESSAGE", "who has read it"),
    ("/unread", "how many the server counts unread"),
    ("/typing on|off", "shows others that you type; a terminal does it by itself"),
    ("/presence NAME", "whether somebody is there"),
    ("/prefs [presence|receipts on|off]…", "what others see of you"),
    ("/members", "who is in the chat"),
    ("/rename TITLE", "names the group"),
    ("/add NAME", "adds somebody to the group"),
    ("/remove NAME", "removes somebody"),
    ("/role NAME owner|admin|member", "gives a role"),
    ("/leave", "leaves the chat"),
    ("/mute", "no pushes for this chat"),
    ("/unmute", "pushes again"),
    ("/timer SECONDS|off [send|read]", "new messages go away after this time"),
    ("/safety [NAME]", "the safety number to compare"),
    ("/verify [NAME]", "remembers that the numbers are the same; after /safety"),
    ("/consent allow|deny|unknown", "whether the one who wrote first may"),
    ("/refound", "founds a group anew whose members no longer agree"),
    ("/status", "shows the status line as a line"),
    ("/quit", "ends the program"),
  ]

  init(_ line: String) throws {
    guard line.hasPrefix("/") else {
      self = .say(line)
      return
    }
    var words = Words(line)
    let name = try words.next() ?? ""
    guard let usage = Self.table.first(where: { $0.usage.prefix { $0 != " " } == name })?.usage else {
      throw Misuse("unknown command '\(safe(name))'; /help lists them")
    }
    let wrong = Misuse("expected: \(usage)")
    func word() throws -> String {
      guard let word = try words.next() else { throw wrong }
      return word
    }
    func text() throws -> String {
      let text = words.remainder()
      guard !text.isEmpty else { throw wrong }
      return text
    }
    func number(_ range: ClosedRange<Int>) throws -> Int {
      guard let value = Int(try word()), range.contains(value) else { throw wrong }
      return value
    }
    func onOff() throws -> Bool {
      switch try word() {
      case "on": return true
      case "off": return false
      default: throw wrong
      }
    }
    switch name {
    case "/help": self = .help(try words.next())
    case "/whoami": self = .whoAmI
    case "/signup": self = .signUp(try word())
    case "/signin": self = .signIn(try word())
    case "/signout": self = .signOut
    case "/contact": self = .contact(try word(), try words.next())
    case "/chats": self = .chats
    case "/dm": self = .direct(try word())
    case "/group":
      let title = try word()
      var names: [String] = []
      while let name = try words.next() { names.append(name) }
      guard !names.isEmpty else { throw wrong }
      self = .group(title, names)
    case "/open": self = .open(try text())
    case "/close": self = .close
    case "/say": self = .say(try text())
    case "/reply": self = .reply(try word(), try text())
    case "/expire":
      let seconds = try number(1...31_536_000)
      guard let start = ExpiryWord(rawValue: try word()) else { throw wrong }
      self = .expiring(seconds, start, try text())
    case "/image": self = .image(try word())
    case "/video": self = .video(try word(), try number(0...86_400_000), try words.next())
    case "/voice": self = .voice(try word(), try number(0...86_400_000))
    case "/file": self = .file(try word())
    case "/custom": self = .custom(try word(), try word(), try text())
    case "/get": self = .download(try word(), try word())
    case "/react": self = .react(try word(), try word())
    case "/unreact": self = .unreact(try word(), try word())
    case "/edit": self = .edit(try word(), try text())
    case "/delete": self = .deleteForEveryone(try word())
    case "/hide": self = .hide(try word())
    case "/retry": self = .retry(try word())
    case "/cancel": self = .cancel(try word())
    case "/more":
      let count = try words.next()
      guard let value = count.map({ Int($0) }) ?? 50, (1...10_000).contains(value) else { throw wrong }
      self = .more(value)
    case "/read": self = .markRead
    case "/readers": self = .readers(try word())
    case "/unread": self = .unread
    case "/typing": self = .typing(try onOff())
    case "/presence": self = .presence(try word())
    case "/prefs":
      let rest = try Words(words.remainder()).all
      guard rest.count % 2 == 0,
        stride(from: 0, to: rest.count, by: 2).allSatisfy({
          ["presence", "receipts"].contains(rest[$0]) && ["on", "off"].contains(rest[$0 + 1])
        })
      else { throw wrong }
      self = .preferences(rest)
    case "/members": self = .members
    case "/rename": self = .rename(try text())
    case "/add": self = .add(try word())
    case "/remove": self = .remove(try word())
    case "/role":
      let (who, role) = (try word(), try word())
      guard ["owner", "admin", "member"].contains(role) else { throw wrong }
      self = .role(who, role)
    case "/leave": self = .leave
    case "/mute": self = .mute(true)
    case "/unmute": self = .mute(false)
    case "/timer":
      let time = try word()
      guard let start = ExpiryWord(rawValue: try words.next() ?? "send") else { throw wrong }
      if time == "off" {
        self = .timer(nil, start)
      } else {
        guard let seconds = Int(time), (1...31_536_000).contains(seconds) else { throw wrong }
        self = .timer(seconds, start)
      }
    case "/safety": self = .safety(try words.next())
    case "/verify": self = .verify(try words.next())
    case "/consent":
      let word = try word()
      guard ["allow", "deny", "unknown"].contains(word) else { throw wrong }
      self = .consent(word)
    case "/refound": self = .refound
    case "/status": self = .status
    default: self = .quit
    }
    if !words.remainder().isEmpty { throw wrong }
  }
}
