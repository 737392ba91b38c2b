/// An option of a command: `--name VALUE`, or a flag when it takes no value.
public struct Option: Sendable {
  /// With its dashes: `--port`.
  public var name: String
  /// What stands for the value in help, such as `N`; nil for a flag.
  public var placeholder: String?
  /// One line for help.
  public var help: String
  /// Used when the option is absent.
  public var defaultValue: String?
  /// True when it may be given more than once.
  public var isRepeatable: Bool
  /// A flag that also takes `=true` and `=false`.
  public var isSwitch = false

  /// An option with a value.
  public static func value(
    _ name: String, _ placeholder: String, _ help: String, default defaultValue: String? = nil,
    repeatable: Bool = false
  ) -> Option {
    Option(
      name: name, placeholder: placeholder, help: help, defaultValue: defaultValue, isRepeatable: repeatable)
  }

  /// What switches a switch off: `--no-port` of `--port`.
  public var negation: String { "--no-" + name.dropFirst(2) }

  /// An option without a value.
  public static func flag(_ name: String, _ help: String) -> Option {
    Option(name: name, placeholder: nil, help: help, defaultValue: nil, isRepeatable: false)
  }

  /// A flag that can be switched off too, where something else has switched it on: `--name=false` or `--no-name`.
  public static func toggle(_ name: String, _ help: String, default defaultValue: String? = nil) -> Option {
    var option = flag(name, help)
    option.isSwitch = true
    option.defaultValue = defaultValue
    return option
  }
}

/// A misuse of a command line; its description is the one line a person needs.
public struct ArgumentError: Error, Equatable, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}

/// A command of a tool, such as `palbe-sfu serve`.
public struct Command: Sendable {
  /// The word that selects it.
  public var name: String
  /// One line for help.
  public var summary: String
  /// What it must be given besides options, in order: `ROOM`, `IDENTITY`.
  public var operands: [String]
  public var options: [Option]
  /// Whole command lines that work, for help.
  public var examples: [String]

  public init(
    name: String, summary: String, operands: [String] = [], options: [Option], examples: [String]
  ) {
    self.name = name
    self.summary = summary
    self.operands = operands
    self.options = options
    self.examples = examples
  }

  /// Reads `--name VALUE`, `--name=VALUE` and the operands; everything else is refused. Behind `--` all is operands.
  public func parse(_ arguments: some Collection<String>) throws(ArgumentError) -> ParsedArguments {
    var values: [String: [String]] = [:]
    var given: [String] = []
    var rest = Array(arguments)[...]
    var takesOptions = true
    /// The switch that stands before.
    var last: Option?
    while let argument = rest.popFirst() {
      if takesOptions, argument == "--", !operands.isEmpty {
        takesOptions = false
        continue
      }
      guard takesOptions, argument.hasPrefix("--") else {
        if given.count < operands.count {
          given.append(argument)
          continue
        }
        throw ArgumentError("unexpected argument '\(argument)'" + hint(for: argument, after: last))
      }
      let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      var name = String(parts[0])
      let negated = options.first { $0.isSwitch && $0.negation == name }
      guard let option = negated ?? options.first(where: { $0.name == name }) else {
        throw ArgumentError("unknown option '\(name)'" + suggestion(for: name))
      }
      last = option.isSwitch ? option : nil
      if negated != nil {
        guard parts.count == 1 else { throw ArgumentError("option '\(name)' takes no value") }
        name = option.name
        guard values[name] == nil else { throw ArgumentError("option '\(name)' is given twice") }
        values[name] = ["false"]
        continue
      }
      if values[name] != nil, !option.isRepeatable { throw ArgumentError("option '\(name)' is given twice") }
      guard let placeholder = option.placeholder else {
        guard parts.count == 1 || option.isSwitch else {
          throw ArgumentError("option '\(name)' takes no value")
        }
        values[name] = [option.isSwitch ? parts.count == 2 ? String(parts[1]) : "true" : ""]
        continue
      }
      guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
        throw ArgumentError("option '\(name)' needs a value: \(name) \(placeholder)")
      }
      values[name, default: []].append(value)
    }
    guard given.count == operands.count else {
      throw ArgumentError("expected \(operands[given.count...].joined(separator: " ")); see --help")
    }
    return ParsedArguments(command: self, values: values, operands: given)
  }

  /// A switch takes its value with `=` only.
  private func hint(for argument: String, after option: Option?) -> String {
    guard let option, ["true", "false"].contains(argument.lowercased()) else {
      return "; options start with --"
    }
    return "; write '\(option.name)=\(argument.lowercased())'"
      + (argument.lowercased() == "false" ? " or '\(option.negation)'" : "")
  }

  private func suggestion(for name: String) -> String {
    guard let nearest = Spelling.nearest(to: name, among: options.map(\.name)) else { return "; see --help" }
    return "; did you mean '\(nearest)'?"
  }
}

/// What somebody may have meant.
public enum Spelling {
  /// The word that differs by the fewest letters, by at most three; nil when none is near.
  public static func nearest(to word: String, among words: some Sequence<String>) -> String? {
    // Long words are no slips of the finger.
    guard word.utf8.count <= 100 else { return nil }
    let nearest = words.map { ($0, editDistance($0, word)) }.min { $0.1 < $1.1 }
    guard let nearest, nearest.1 <= min(3, max(1, word.count / 2)) else { return nil }
    return nearest.0
  }
}

/// How many letters two words differ by (Levenshtein).
func editDistance(_ left: String, _ right: String) -> Int {
  let right = Array(right)
  var row = Array(0...right.count)
  for (i, letter) in left.enumerated() {
    var diagonal = row[0]
    row[0] = i + 1
    for j in right.indices {
      let cost = letter == right[j] ? diagonal : diagonal + 1
      diagonal = row[j + 1]
      row[j + 1] = min(cost, diagonal + 1, row[j] + 1)
    }
  }
  return row[right.count]
}

/// The options of one call.
public struct ParsedArguments: Sendable {
  let command: Command
  let values: [String: [String]]
  /// As many as the command has.
  public let operands: [String]

  /// True when the option was given.
  public func has(_ name: String) -> Bool { values[name] != nil }

  /// The option's value or its default; nil when it has neither.
  public func string(_ name: String) -> String? {
    values[name]?.last ?? command.options.first { $0.name == name }?.defaultValue
  }

  /// Every value of a repeatable option.
  public func strings(_ name: String) -> [String] { values[name] ?? [] }

  /// The value of an option that must be there.
  public func required(_ name: String) throws(ArgumentError) -> String {
    guard let value = string(name) else { throw ArgumentError("option '\(name)' is missing; see --help") }
    return value
  }

  /// A whole number within `range`; nil when absent and without a default.
  public func integer(_ name: String, in range: ClosedRange<Int>) throws(ArgumentError) -> Int? {
    guard let text = string(name) else { return nil }
    guard let value = Int(text), range.contains(value) else {
      throw ArgumentError(
        "option '\(name)' is '\(text)'; expected a whole number from \(range.lowerBound) to \(range.upperBound)"
      )
    }
    return value
  }
}
