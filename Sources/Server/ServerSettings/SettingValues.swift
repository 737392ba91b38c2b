public import PalbeCommandLine
import PalbeYAML

/// Why a configuration is refused: one line for a person, never with a secret in it.
public struct SettingsError: Error, Equatable, Sendable, CustomStringConvertible {
  public var description: String
  /// An error.
  public init(_ description: String) { self.description = description }
}

/// The configuration in effect: for each key its value and who gave it.
///
///     let values = try SettingValues(schema, options: arguments, environment: environment, read: readFile)
///     let port = values[SFUKeys.port]
///
/// An option goes before a variable, that before the file, that before the default. A key is taken whole: lists of two sources
/// are never mixed.
public struct SettingValues: Sendable {
  /// Who gave a value.
  public enum Source: Equatable, Sendable, CustomStringConvertible {
    case standard
    /// It follows from another key's value.
    case consequence(of: String)
    case file(String, line: Int)
    case variable(String)
    case option(String)

    /// "default", "sfu.yaml:3", "PALBE_SFU_PORT", "--port".
    public var description: String {
      switch self {
      case .standard: "default"
      case .consequence(let name): "by \(name)"
      case .file(let path, let line): "\(path):\(line)"
      case .variable(let name), .option(let name): name
      }
    }
  }

  /// The keys there are.
  public let schema: SettingsSchema
  private var values: [String: (value: SettingValue, source: Source)] = [:]
  /// What was ignored, a line each.
  public private(set) var warnings: [String] = []

  /// Reads all sources.
  ///
  /// - Parameters:
  ///   - environment: all variables; of those that begin with the program's prefix an unknown one is refused.
  ///   - read: a file's bytes.
  public init(
    _ schema: SettingsSchema, options: ParsedArguments, environment: [String: String],
    read: (String) throws(SettingsError) -> [UInt8]
  ) throws(SettingsError) {
    self.schema = schema
    let path = options.string(schema.configOption.name) ?? environment[schema.configVariable]
    if let path, !path.isEmpty {
      try take(file: try read(path), named: path)
    } else if let name = schema.documentVariable, let text = environment[name], !text.isEmpty {
      try take(file: Array(text.utf8), named: name)
    }
    try take(environment: environment)
    for setting in schema.keys {
      let texts = options.strings(setting.option)
      guard !texts.isEmpty else { continue }
      do throws(SettingProblem) {
        values[setting.name] = (try setting.value(of: texts), .option(setting.option))
      } catch {
        throw SettingsError("option '\(setting.option)'\(Self.given(texts, setting)); \(error.reason)")
      }
    }
  }

  /// The value in effect.
  public subscript<Value>(_ setting: Setting<Value>) -> Value {
    values[setting.name]?.value.value as? Value ?? setting.defaultValue
  }

  /// Sets what follows from the value of another key, where nobody gave this one.
  public mutating func suppose<Value>(_ setting: Setting<Value>, _ value: Value, by cause: String) {
    guard source(of: setting) == .standard else { return }
    values[setting.name] = (setting.wrap(value), .consequence(of: cause))
  }

  /// Who gave it.
  public func source(of setting: any AnySetting) -> Source { values[setting.name]?.source ?? .standard }

  /// The value as YAML on one line, secrets left out.
  public func shown(_ setting: any AnySetting) -> String {
    (values[setting.name]?.value ?? setting.standard).shown
  }

  /// Keys that are different in `other`, in their order.
  public func changes(to other: SettingValues) -> [any AnySetting] {
    schema.keys.filter { given($0)?.value.identity != other.given($0)?.value.identity }
  }

  /// Without what follows from another key: that one tells.
  private func given(_ setting: any AnySetting) -> (value: SettingValue, source: Source)? {
    guard let entry = values[setting.name] else { return nil }
    if case .consequence = entry.source { return nil }
    return entry
  }

  /// As they count after a reload with `other`: what reloads is of `other`, the rest stays until a restart.
  public func reloaded(with other: SettingValues) -> SettingValues {
    var result = self
    for setting in schema.keys where setting.reloads {
      // What follows from a key that stays, stays.
      if let entry = other.given(setting) {
        result.values[setting.name] = entry
      } else if given(setting) != nil {
        result.values[setting.name] = nil
      }
    }
    result.warnings = other.warnings
    return result
  }

  // MARK: Variables

  private mutating func take(environment: [String: String]) throws(SettingsError) {
    let known = Dictionary(uniqueKeysWithValues: schema.keys.map { (schema.variable(of: $0), $0) })
    for name in environment.keys.sorted() where name.hasPrefix(schema.variablePrefix) {
      guard known[name] == nil, name != schema.configVariable, !schema.otherVariables.contains(name) else {
        continue
      }
      let nearest = Spelling.nearest(to: name, among: Array(known.keys).sorted() + [schema.configVariable])
      throw SettingsError(
        "unknown variable '\(name)'" + (nearest.map { "; did you mean '\($0)'?" } ?? ""))
    }
    for setting in schema.keys {
      var name = schema.variable(of: setting)
      if environment[name] == nil { name = schema.foreignVariables[setting.name] ?? name }
      guard let text = environment[name], !text.isEmpty else { continue }
      do throws(SettingProblem) {
        values[setting.name] = (try setting.value(of: [text]), .variable(name))
      } catch {
        throw SettingsError("variable \(name)\(Self.given([text], setting)); \(error.reason)")
      }
    }
  }

  private static func given(_ texts: [String], _ setting: any AnySetting) -> String {
    setting.isSecret ? " is malformed" : " is \(texts.map { "'\($0)'" }.joined(separator: ", "))"
  }

  // MARK: The file

  private mutating func take(file bytes: [UInt8], named path: String) throws(SettingsError) {
    let root: YAMLNode?
    do throws(YAMLError) { root = try YAMLNode(parsing: bytes) } catch {
      throw SettingsError("\(path): \(error)")
    }
    guard let root, !root.isNull else { return }
    try take(root, under: "", path: path)
  }

  private mutating func take(_ node: YAMLNode, under prefix: String, path: String) throws(SettingsError) {
    guard case .mapping(let entries) = node.content else {
      let what = prefix.isEmpty ? "the file" : "'\(prefix.dropLast())'"
      throw SettingsError("\(path): \(node.position): \(what) is \(node.kindName); expected a mapping")
    }
    for entry in entries { try take(entry, under: prefix, path: path) }
  }

  private mutating func take(
    _ entry: YAMLNode.Entry, under prefix: String, path: String
  ) throws(SettingsError) {
    let name = prefix + entry.key
    let place = "\(path): \(entry.keyPosition)"
    // A value that is also a section, such as LiveKit's pli_throttle, is the value's affair.
    if let setting = schema.keys.first(where: { $0.name == name || $0.aliases.contains(name) }) {
      guard !entry.value.isNull else { return }
      guard values[setting.name] == nil else {
        throw SettingsError("\(place): '\(setting.name)' is set twice, under two names")
      }
      do throws(SettingProblem) {
        values[setting.name] = (
          try setting.value(of: entry.value), .file(path, line: entry.keyPosition.line)
        )
      } catch {
        let given =
          setting.isSecret ? "is malformed" : entry.value.text.map { "is '\($0)'" } ?? "is malformed"
        throw SettingsError(
          "\(path): \(error.position ?? entry.value.position): '\(name)' \(given); \(error.reason)")
      }
      return
    }
    if schema.keys.contains(where: { $0.name.hasPrefix(name + ".") }) {
      guard !entry.value.isNull else { return }
      return try take(entry.value, under: name + ".", path: path)
    }
    switch schema.foreignKeys[name] {
    case .ignored(let reason):
      guard !Self.isOff(entry.value) else { return }
      warnings.append("\(place): '\(name)' is ignored: \(reason)")
    case .refused(let reason):
      guard !Self.isOff(entry.value) else { return }
      throw SettingsError("\(place): '\(name)' is not supported: \(reason)")
    case nil: throw SettingsError("\(place): unknown key '\(name)'\(suggestion(for: name))")
    }
  }

  /// Nothing is asked for: false, nothing, an empty list, or a section with `enabled: false`.
  private static func isOff(_ node: YAMLNode) -> Bool {
    switch node.content {
    case .scalar(let text, _): node.isNull || ["false", "no", "off", "0", ""].contains(text.lowercased())
    case .sequence(let items): items.isEmpty
    case .mapping(let entries):
      entries.isEmpty || entries.contains { $0.key == "enabled" && isOff($0.value) }
    }
  }

  private func suggestion(for name: String) -> String {
    let names = schema.keys.flatMap { [$0.name] + $0.aliases }
    let last = name.split(separator: ".").last.map(String.init) ?? name
    let sameLast = names.first { $0.hasSuffix("." + last) || $0 == last }
    guard let meant = sameLast ?? Spelling.nearest(to: name, among: names) else { return "" }
    return "; did you mean '\(meant)'?"
  }
}
