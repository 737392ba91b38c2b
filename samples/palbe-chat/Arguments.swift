import Foundation

/// A misuse: one line for a person.
struct Misuse: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// What the command line says.
struct Arguments {
  var server: String?
  var data = FileManager.default.homeDirectoryForCurrentUser.path + "/.local/share/palbe-chat"
  var email: String?
  var passwordFile: String?
  /// Makes the account where there is none.
  var signsUp = false
  var contacts: String?
  var name: String?
  var script: String?
  var isQuiet = false
  /// Whoever writes first waits for /consent.
  var asksConsent = false
  /// A pane of the split view.
  var isPane = false
  var isSideBySide = false
  var isHelp = false

  static let usage = """
    palbe-chat: an end-to-end encrypted chat in a terminal

    usage: palbe-chat [options]                  talk; /help lists the commands
           palbe-chat --script FILE [options]    do what the file says; exit 0 when all of it held
           palbe-chat side-by-side --server URL  two people in one terminal

      --server URL          the server, such as http://127.0.0.1:8080; kept in the data folder
      --data DIR            keys and messages of this device (default: ~/.local/share/palbe-chat)
      --email ADDRESS       signs in as this person
      --password-file FILE  the password; without it, it is asked for
      --sign-up             makes the account where there is none
      --name NAME           what the contacts file calls this person (default: the address up to its @)
      --contacts FILE       names of people, one "usr_… name" a line (default: contacts in the data folder)
      --ask-consent         who writes first counts for nothing until /consent allow
      --script FILE         commands from a file, see docs/chat.md
      --quiet               a script shows only what fails
      --help                this text

    """

  init(_ words: [String]) throws {
    var rest = words[...]
    while let word = rest.popFirst() {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      func value() throws -> String {
        guard let value = parts.count == 2 ? parts[1] : rest.popFirst(), !value.isEmpty else {
          throw Misuse("option '\(parts[0])' needs a value; see --help")
        }
        return value
      }
      func flag() throws -> Bool {
        guard parts.count == 1 else { throw Misuse("option '\(parts[0])' takes no value") }
        return true
      }
      switch parts[0] {
      case "--server": server = try value()
      case "--data": data = try value()
      case "--email": email = try value()
      case "--password-file": passwordFile = try value()
      case "--contacts": contacts = try value()
      case "--name": name = try value()
      case "--script": script = try value()
      case "--sign-up": signsUp = try flag()
      case "--quiet": isQuiet = try flag()
      case "--ask-consent": asksConsent = try flag()
      case "--pane": isPane = try flag()
      case "--help", "-h", "help": isHelp = true
      case "side-by-side": isSideBySide = true
      default:
        throw Misuse(
          word.hasPrefix("-")
            ? "unknown option '\(safe(word))'; see --help" : "unexpected '\(safe(word))'; see --help")
      }
    }
    if isSideBySide, server == nil { throw Misuse("side-by-side needs --server URL") }
    if let name, !Contacts.isName(name) { throw Misuse("a name is one word of letters, digits, . _ and -") }
  }

  /// The name under which others find this person.
  var ownName: String? {
    if let name { return name }
    guard let part = email?.split(separator: "@").first.map(String.init), Contacts.isName(part) else {
      return nil
    }
    return part
  }

  /// The password of the file, without the line feed at its end.
  func password() throws -> String? {
    guard let passwordFile else { return nil }
    guard let data = FileManager.default.contents(atPath: passwordFile), data.count <= 4096,
      let text = String(data: data, encoding: .utf8)
    else { throw Misuse("cannot read the password in '\(safe(passwordFile))'") }
    let password = text.hasSuffix("\n") ? String(text.dropLast()) : text
    guard !password.isEmpty else { throw Misuse("'\(safe(passwordFile))' is empty") }
    return password
  }

  /// Writes where the server is to the file that `pb` reads, and names the file to it. This is what an app has among its
  /// resources, and why there is no call for it.
  func configure() throws {
    let folder = URL(fileURLWithPath: data)
    let file = folder.appendingPathComponent("Palbase-Info.plist")
    if let server {
      guard let url = URL(string: server), let scheme = url.scheme, ["http", "https"].contains(scheme),
        url.host != nil
      else { throw Misuse("'\(safe(server))' is no address of a server, such as http://127.0.0.1:8080") }
      do {
        try FileManager.default.createDirectory(
          at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let keys = ["ServerURL": server, "DataFolder": "store"]
        try PropertyListSerialization.data(fromPropertyList: keys, format: .xml, options: 0)
          .write(to: file, options: .atomic)
      } catch { throw Misuse("cannot write '\(safe(file.path))': \(error.localizedDescription)") }
    } else if !FileManager.default.fileExists(atPath: file.path) {
      throw Misuse("no server yet; give --server URL")
    }
    setenv("PALBE_CONFIG", file.path, 1)
  }
}
