public import PalbeCommandLine
public import PalbeYAML

/// A key of the configuration: its names, its kind and what it means, said once.
///
/// Everything else is made from it: reading a file, the command line's options, the environment's variables, `--help`, shell
/// completion, the `config` command and the table in the documentation.
public struct Setting<Value: Sendable & Equatable>: Sendable {
  /// Its path in the file: "rtc.udp_port".
  public let name: String
  /// Other paths for the same.
  public let aliases: [String]
  /// "--udp-port".
  public let option: String
  public let kind: SettingKind<Value>
  public let defaultValue: Value
  /// What stands for the default in documentation where it depends on the host, or is nothing.
  public let defaultWords: String?
  /// One line, lower case, without a full stop.
  public let help: String
  /// A change takes effect with a reload, without dropping anybody.
  public let reloads: Bool
  /// Never written anywhere.
  public let isSecret: Bool

  /// A key. `words` stand for the default in documentation; empty for none.
  public init(
    _ name: String, _ option: String, _ kind: SettingKind<Value>, default defaultValue: Value,
    words defaultWords: String? = nil, aliases: [String] = [], reloads: Bool = false, isSecret: Bool = false,
    _ help: String
  ) {
    self.name = name
    self.aliases = aliases
    self.option = option
    self.kind = kind
    self.defaultValue = defaultValue
    self.defaultWords = defaultWords
    self.help = help
    self.reloads = reloads
    self.isSecret = isSecret
  }
}

/// A `Setting` of any value.
public protocol AnySetting: Sendable {
  var name: String { get }
  var aliases: [String] { get }
  var option: String { get }
  var help: String { get }
  var reloads: Bool { get }
  var isSecret: Bool { get }
  /// What its value has to be, in words.
  var expectation: String { get }
  /// The default as YAML or in words; nil when there is none.
  var shownDefault: String? { get }
  /// The option on the command line.
  var commandOption: Option { get }
  /// The value when nobody gives one.
  var standard: SettingValue { get }
  /// The value in a file.
  func value(of node: YAMLNode) throws(SettingProblem) -> SettingValue
  /// The value in options or variables.
  func value(of texts: [String]) throws(SettingProblem) -> SettingValue
}

/// A value that its `Setting` knows the type of.
public struct SettingValue: Sendable {
  let value: any Sendable
  /// As YAML, secrets left out.
  let shown: String
  /// As YAML, to be compared only.
  let identity: String
}

extension Setting: AnySetting {
  public var expectation: String { kind.expectation }

  public var shownDefault: String? {
    defaultWords.map { $0.isEmpty ? nil : $0 } ?? kind.show(defaultValue, true)
  }

  public var commandOption: Option {
    let value = defaultWords == nil ? kind.show(defaultValue, true) : nil
    let help = help + (defaultWords.map { $0.isEmpty ? "" : " (default: \($0))" } ?? "")
    if kind.isSwitch {
      // One that is on by default is given to switch it off.
      let toggle = Option.toggle(option, help, default: value)
      return value == "true" ? .toggle(option, help + "; \(toggle.negation) for not", default: value) : toggle
    }
    return .value(option, kind.placeholder, help, default: value, repeatable: kind.isRepeatable)
  }

  /// The value in a file.
  public func value(of node: YAMLNode) throws(SettingProblem) -> SettingValue {
    wrap(try kind.read(node))
  }

  /// The value in options or variables.
  public func value(of texts: [String]) throws(SettingProblem) -> SettingValue {
    guard texts.count > 1 else { return try value(of: try kind.node(texts.first ?? "")) }
    var items: [YAMLNode] = []
    for text in texts { items += try kind.node(text).items }
    return try value(of: YAMLNode(.sequence(items), at: YAMLPosition(line: 1, column: 1)))
  }

  public var standard: SettingValue { wrap(defaultValue) }

  func wrap(_ value: Value) -> SettingValue {
    SettingValue(value: value, shown: kind.show(value, true), identity: kind.show(value, false))
  }
}
