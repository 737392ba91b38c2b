public import PalbeCommandLine
public import PalbeServerSettings
public import PalbeUnits
import PalbeYAML

/// The SFU's configuration in effect: for each key its value and who gave it.
///
///     let settings = try Settings(options: arguments, environment: environment, read: readFile)
///     let port = settings[SFUKeys.port]
///
/// An option goes before a variable, that before the file, that before the default. A key is taken whole: lists of two sources
/// are never mixed.
public struct Settings: Sendable {
  /// The keys, with LiveKit's names for the same.
  public static let schema: SettingsSchema = {
    var schema = SettingsSchema(program: "palbe-sfu", keys: SFUKeys.all)
    schema.foreignKeys = ForeignKeys.answers
    schema.documentVariable = "LIVEKIT_CONFIG"
    schema.foreignVariables = [SFUKeys.keys.name: "LIVEKIT_KEYS"]
    // Variables of the operator's commands.
    schema.otherVariables = ["PALBE_SFU_URL", "PALBE_SFU_API_KEY", "PALBE_SFU_API_SECRET"]
    return schema
  }()

  private var values: SettingValues
  private var keysOfFile: [APIKey]

  /// Reads all sources.
  ///
  /// - Parameters:
  ///   - environment: all variables; of those that begin with `PALBE_SFU_` an unknown one is refused.
  ///   - read: a file's bytes; `true` for one that nobody else may read.
  public init(
    options: ParsedArguments, environment: [String: String],
    read: (String, Bool) throws(SettingsError) -> [UInt8]
  ) throws(SettingsError) {
    values = try SettingValues(Self.schema, options: options, environment: environment) {
      path throws(SettingsError) in try read(path, false)
    }
    if values[SFUKeys.development] {
      values.suppose(SFUKeys.bindAddresses, ["127.0.0.1"], by: "development")
      values.suppose(SFUKeys.drainTimeout, .zero, by: "development")
    }
    if let path = values[SFUKeys.keyFile] {
      keysOfFile = try Self.keys(in: try read(path, true), named: path)
    } else {
      keysOfFile = []
    }
    try checkTogether()
  }

  /// The value in effect.
  public subscript<Value>(_ setting: Setting<Value>) -> Value { values[setting] }

  /// Who gave it.
  public func source(of setting: any AnySetting) -> SettingValues.Source { values.source(of: setting) }

  /// The value as YAML on one line, secrets left out.
  func shown(_ setting: any AnySetting) -> String { values.shown(setting) }

  /// What was ignored, a line each.
  public var warnings: [String] { values.warnings }

  /// The configuration in effect as a YAML file, each key with who gave it; secrets are left out.
  public var document: String { values.document }

  /// Keys that are different in `other`, in their order.
  public func changes(to other: Settings) -> [any AnySetting] { values.changes(to: other.values) }

  /// As they count after a reload with `other`: what does not reload stays as it is until a restart.
  public func reloaded(with other: Settings) throws(SettingsError) -> Settings {
    var result = self
    result.values = values.reloaded(with: other.values)
    result.keysOfFile = other.keysOfFile
    try result.checkTogether()
    return result
  }

  private static func keys(in bytes: [UInt8], named path: String) throws(SettingsError) -> [APIKey] {
    let root: YAMLNode?
    do throws(YAMLError) { root = try YAMLNode(parsing: bytes) } catch {
      throw SettingsError("\(path): \(error)")
    }
    guard let root else { return [] }
    do throws(SettingProblem) { return try SFUKeys.keys.kind.read(root) } catch {
      throw SettingsError("\(path): \(error.position ?? root.position): \(error.reason)")
    }
  }

  /// The key that `development` gives.
  public static let developmentKey = APIKey(name: "devkey", secret: "secret")

  /// All API keys: those of the configuration, of the key file, and of `development`.
  public var apiKeys: [APIKey] {
    self[SFUKeys.keys] + keysOfFile + (self[SFUKeys.development] ? [Self.developmentKey] : [])
  }

  /// How long calls go on after SIGTERM: who tries things out does not want to wait.
  public var drainTime: TimeDelta { self[SFUKeys.drainTimeout] }

  private func checkTogether() throws(SettingsError) {
    var names: Set<String> = []
    for key in apiKeys where !names.insert(key.name).inserted {
      throw SettingsError("the key '\(key.name)' is there twice")
    }
    guard (self[SFUKeys.prometheusUsername] == nil) == (self[SFUKeys.prometheusPassword] == nil) else {
      throw SettingsError("'prometheus.username' and 'prometheus.password' go together")
    }
    guard self[SFUKeys.certificateKeyFile] == nil || self[SFUKeys.certificateFile] != nil else {
      throw SettingsError("'tls.key_file' needs 'tls.cert_file'")
    }
    let ports = self[SFUKeys.udpPort]
    if let workers = self[SFUKeys.workers], ports.count > 1, workers > ports.count {
      throw SettingsError("\(workers) workers need as many UDP ports; 'rtc.udp_port' has \(ports.count)")
    }
  }
}
