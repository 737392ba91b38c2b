public import PalbeCommandLine

/// All keys of one program, and by which names it takes them.
///
///     static let schema = SettingsSchema(program: "palbe-server", keys: [port, data])
///     let values = try SettingValues(schema, options: arguments, environment: environment, read: readFile)
public struct SettingsSchema: Sendable {
  /// What is said about a key of another program's file.
  public enum ForeignKey: Sendable {
    /// Nothing here does it: a warning, and on.
    case ignored(String)
    /// Going on without it would surprise.
    case refused(String)
  }

  /// "palbe-server".
  public let program: String
  /// Every key once, in the order in which they are shown.
  public let keys: [any AnySetting]
  /// Keys that mean nothing here, by path; a section stands for all in it.
  public var foreignKeys: [String: ForeignKey] = [:]
  /// Variables with the program's prefix that are no keys.
  public var otherVariables: [String] = []
  /// A variable of another program, by the key for which it stands.
  public var foreignVariables: [String: String] = [:]
  /// The variable that holds a whole file.
  public var documentVariable: String?

  /// The keys of a program.
  public init(program: String, keys: [any AnySetting]) {
    self.program = program
    self.keys = keys
  }

  /// "PALBE_SERVER_".
  public var variablePrefix: String {
    program.uppercased().map { $0 == "-" ? "_" : String($0) }.joined() + "_"
  }

  /// "PALBE_SERVER_TLS_CERT_FILE".
  public func variable(of setting: any AnySetting) -> String {
    variablePrefix + setting.name.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
  }

  /// The variable that names the file.
  public var configVariable: String { variablePrefix + "CONFIG" }

  /// The option that names the file.
  public var configOption: Option {
    .value("--config", "FILE", "configuration file in YAML; \(configVariable) too")
  }

  /// The options of a command that takes a configuration.
  public var options: [Option] { [configOption] + keys.map(\.commandOption) }
}
