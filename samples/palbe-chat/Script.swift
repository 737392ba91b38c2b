import Foundation

/// A script: commands as they are typed, and lines that wait for what is shown. docs/chat.md describes it.
///
///     meet ben 20                 waits until the contacts file has ben
///     /dm ben
///     hello, Ben                  sends a text
///     wait "ben: hi *" 20         waits until such a line is shown; * is anything
///     expect "read by ben"        such a line has been shown since the last command
///     ! /add cleo                 this command must fail
struct Script {
  enum Step: Equatable {
    case command(String)
    case failing(String)
    case wait(Pattern, seconds: Double)
    case expect(Pattern)
    case meet(String, seconds: Double)
    case pause(seconds: Double)
  }
  struct Line: Equatable {
    var number: Int
    var step: Step
  }
  private(set) var lines: [Line] = []

  init(_ text: String, name: String) throws {
    let rows = text.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, row) in rows.enumerated() {
      let line = row.trimmingCharacters(in: .whitespaces)
      if line.isEmpty || line.hasPrefix("#") { continue }
      do { lines.append(Line(number: index + 1, step: try Self.step(line))) } catch let error as Misuse {
        throw Misuse("\(safe(name)):\(index + 1): \(error)")
      }
    }
  }

  private static func step(_ line: String) throws -> Step {
    if line.hasPrefix("! ") {
      let command = line.dropFirst(2).trimmingCharacters(in: .whitespaces)
      _ = try Command(command)
      return .failing(command)
    }
    let word = String(line.prefix { $0 != " " })
    guard ["wait", "expect", "meet", "pause"].contains(word) else {
      _ = try Command(line)
      return .command(line)
    }
    var words = try Words(line).all
    words.removeFirst()
    func seconds() throws -> Double {
      let value = try? Double(words.removeLast(), format: .number.locale(Locale(identifier: "en_US_POSIX")))
      guard let value, (0...600).contains(value) else { throw Misuse("seconds are a number from 0 to 600") }
      return value
    }
    switch word {
    case "wait":
      let limit = words.count > 1 ? try seconds() : 10
      guard words.count == 1 else { throw Misuse("expected: wait PATTERN [SECONDS]") }
      return .wait(Pattern(words[0]), seconds: limit)
    case "expect":
      guard words.count == 1 else { throw Misuse("expected: expect PATTERN") }
      return .expect(Pattern(words[0]))
    case "meet":
      let limit = words.count > 1 ? try seconds() : 10
      guard words.count == 1 else { throw Misuse("expected: meet NAME [SECONDS]") }
      return .meet(words[0], seconds: limit)
    default:
      guard words.count == 1 else { throw Misuse("expected: pause SECONDS") }
      return .pause(seconds: try seconds())
    }
  }
}

/// A part of a line; `*` stands for anything.
struct Pattern: Equatable, CustomStringConvertible {
  let description: String
  init(_ text: String) { description = text }

  /// Whether the line has the pieces in their order.
  func matches(_ line: String) -> Bool {
    var rest = line[...]
    for piece in description.split(separator: "*") {
      guard let found = rest.range(of: piece) else { return false }
      rest = rest[found.upperBound...]
    }
    return true
  }
}

/// The words of a line; quotes hold blanks together.
struct Words {
  private var rest: Substring

  init(_ line: String) { rest = line[...] }

  var all: [String] {
    get throws {
      var copy = self
      var words: [String] = []
      while let word = try copy.next() { words.append(word) }
      return words
    }
  }

  /// The next word; nil at the end.
  mutating func next() throws -> String? {
    rest = rest.drop { $0 == " " }
    guard let first = rest.first else { return nil }
    guard first == "\"" else {
      let word = rest.prefix { $0 != " " }
      rest = rest[word.endIndex...]
      return String(word)
    }
    rest.removeFirst()
    guard let end = rest.firstIndex(of: "\"") else { throw Misuse("a quote does not end") }
    defer { rest = rest[rest.index(after: end)...] }
    return String(rest[..<end])
  }

  /// All that is left, as it is.
  mutating func remainder() -> String {
    defer { rest = "" }
    return rest.trimmingCharacters(in: .whitespaces)
  }
}
