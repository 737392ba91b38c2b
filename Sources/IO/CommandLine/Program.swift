import PalbeWire

/// A tool with commands: `palbe-sfu serve`, `palbe-call join`.
public struct Program: Sendable {
  public var name: String
  public var version: String
  /// One line for help.
  public var summary: String
  public var commands: [Command]

  public init(name: String, version: String, summary: String, commands: [Command]) {
    self.name = name
    self.version = version
    self.summary = summary
    self.commands = commands
  }

  /// What a command line asks for.
  public enum Request: Sendable {
    /// Print this and exit 0.
    case print(String)
    /// Run this command.
    case run(command: String, ParsedArguments)
  }

  /// Reads a command line without the tool's own name in front.
  ///
  /// - Throws: `ArgumentError` for a misuse: print it as one line to standard error and exit 2.
  public func request(_ arguments: some Collection<String>) throws(ArgumentError) -> Request {
    guard let first = arguments.first else {
      throw ArgumentError("expected a command: \(commandNames); see --help")
    }
    if first == "--help" || first == "-h" || first == "help" { return .print(help) }
    if first == "--version" { return .print("\(name) \(version)") }
    guard let command = commands.first(where: { $0.name == first }) else {
      throw ArgumentError("unknown command '\(first)'; expected \(commandNames); see --help")
    }
    let rest = arguments.dropFirst()
    if rest.contains("--help") || rest.contains("-h") { return .print(help(for: command)) }
    if rest.contains("--version") { return .print("\(name) \(version)") }
    return .run(command: command.name, try command.parse(rest))
  }

  /// What standard error is told when the program does not do what it was asked: one line, whatever was in an argument or in a file.
  public static func complaint(by name: String, _ reason: String) -> String {
    "\(name): \(printable(reason))"
  }

  private var commandNames: String { commands.map(\.name).joined(separator: ", ") }

  /// Help for the whole tool.
  public var help: String {
    var lines = ["\(name): \(summary)", "", "Commands:"]
    let width = commands.map(\.name.count).max() ?? 0
    for command in commands { lines.append("  \(pad(command.name, width))  \(command.summary)") }
    lines += ["", "Examples:"] + commands.flatMap(\.examples).map { "  " + $0 }
    lines += ["", "'\(name) COMMAND --help' tells a command's options; --version prints the version."]
    return lines.joined(separator: "\n")
  }

  /// Help for one command.
  public func help(for command: Command) -> String {
    let call = ([name, command.name] + command.operands).joined(separator: " ")
    var lines = ["\(call): \(command.summary)", "", "Options:"]
    let heads = command.options.map { $0.name + ($0.placeholder.map { " " + $0 } ?? "") }
    let width = (heads + ["--version"]).map(\.count).max() ?? 0
    for (head, option) in zip(heads, command.options) {
      let suffix = option.defaultValue.map { " (default \($0))" } ?? ""
      lines.append("  \(pad(head, width))  \(option.help)\(suffix)")
    }
    lines.append("  \(pad("--help", width))  this text")
    lines.append("  \(pad("--version", width))  the version")
    lines += ["", "Examples:"] + command.examples.map { "  " + $0 }
    return lines.joined(separator: "\n")
  }

  private func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
