import Foundation
import PalbeMessaging
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Names of people: a file of `usr_… name` lines. The server knows no names; an app has them from wherever it knows people
/// and hands them to the SDK as a `ProfileDirectory`.
///
/// Several programs may share the file. Each line is appended in one write, and the last one of a user counts.
final class Contacts: ProfileDirectory {
  private struct State {
    var names: [String: String] = [:]
    var size = -1
  }
  private let path: String
  private let state = Mutex(State())

  init(path: String) { self.path = path }

  static func isName(_ text: String) -> Bool {
    (1...40).contains(text.count)
      && text.unicodeScalars.allSatisfy {
        CharacterSet.alphanumerics.contains($0) || "._-".unicodeScalars.contains($0)
      }
  }

  func displayName(of userId: String) -> String? { names()[userId] }

  /// The name, or the end of the id.
  func shown(_ user: String) -> String {
    user.isEmpty ? "somebody" : displayName(of: user) ?? "…" + safe(String(user.suffix(6)))
  }

  /// Whom a word means: a name, or an id as it is. Nil when nobody is called so.
  func user(_ word: String) -> String? {
    if word.hasPrefix("usr_") { return word }
    let wanted = word.hasPrefix("@") ? String(word.dropFirst()) : word
    return names().filter { $0.value == wanted }.map(\.key).max()
  }

  var all: [(user: String, name: String)] {
    names().map { (user: $0.key, name: $0.value) }.sorted { $0.name < $1.name }
  }

  func add(_ user: String, name: String) throws {
    guard user.hasPrefix("usr_"), !user.contains(" ") else { throw Misuse("a user is usr_…") }
    guard Self.isName(name) else { throw Misuse("a name is one word of letters, digits, . _ and -") }
    if displayName(of: user) == name { return }
    let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Misuse("cannot write '\(safe(path))'") }
    defer { close(descriptor) }
    let line = Array("\(user) \(name)\n".utf8)
    guard write(descriptor, line, line.count) == line.count else {
      throw Misuse("cannot write '\(safe(path))'")
    }
  }

  private func names() -> [String: String] {
    state.withLock { state in
      let attributes = try? FileManager.default.attributesOfItem(atPath: path)
      let size = attributes?[.size] as? Int ?? 0
      guard size != state.size, let data = FileManager.default.contents(atPath: path) else {
        return state.names
      }
      state.size = size
      for line in String(decoding: data, as: UTF8.self).split(separator: "\n") {
        let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
        guard parts.count == 2, parts[0].hasPrefix("usr_"), Self.isName(parts[1]) else { continue }
        state.names[parts[0]] = parts[1]
      }
      return state.names
    }
  }
}
