import PalbeBackendCore
import PalbeCommandLine
import PalbeServerObservation
import PalbeServerSettings
import PalbeUnits
import PalbeWebServer

/// The configuration of `palbe-server` in effect.
///
///     let settings = try ServerSettings(options: arguments, environment: variables, read: readFile)
///     let server = try BackendServer(settings.configuration)
package struct ServerSettings: Sendable {
  /// The keys.
  package static let schema = SettingsSchema(
    program: "palbe-server", keys: ServerKeys.all + AccountKeys.all)

  package private(set) var values: SettingValues
  private let accounts: AccountSettings

  /// Reads all sources, and looks at what belongs together.
  package init(
    options: ParsedArguments, environment: [String: String],
    read: (String) throws(SettingsError) -> [UInt8]
  ) throws(SettingsError) {
    values = try SettingValues(Self.schema, options: options, environment: environment, read: read)
    if values[ServerKeys.development] {
      values.suppose(ServerKeys.host, SocketAddress(host: "127.0.0.1", port: 0), by: "development")
      values.suppose(ServerKeys.data, "palbe-data", by: "development")
    }
    accounts = try AccountSettings(values, isDevelopment: values[ServerKeys.development])
    guard (self[ServerKeys.prometheusUsername] == nil) == (self[ServerKeys.prometheusPassword] == nil) else {
      throw SettingsError("'prometheus.username' and 'prometheus.password' go together")
    }
    let pushes = [
      self[ServerKeys.pushFile] != nil, self[ServerKeys.pushSocket] != nil,
      !self[ServerKeys.pushCommand].isEmpty,
    ]
    guard pushes.filter({ $0 }).count <= 1 else {
      throw SettingsError("of 'push.file', 'push.socket' and 'push.command' one can be given")
    }
    guard self[ServerKeys.certificateKeyFile] == nil || self[ServerKeys.certificateFile] != nil else {
      throw SettingsError("'tls.key_file' needs 'tls.cert_file'")
    }
  }

  /// As they count after a reload with `other`: what does not reload stays as it is until a restart.
  package func reloaded(with other: ServerSettings) -> ServerSettings {
    var result = self
    result.values = values.reloaded(with: other.values)
    return result
  }

  /// The value in effect.
  package subscript<Value>(_ setting: Setting<Value>) -> Value { values[setting] }

  /// The folder of everything that is kept; nil when nobody said.
  package var data: String? { self[ServerKeys.data] }

  /// What to run; nil when nobody said where the data is.
  package var configuration: BackendServer.Configuration? {
    guard let data else { return nil }
    var configuration = BackendServer.Configuration(data: data)
    configuration.host = host
    configuration.port = UInt16(self[ServerKeys.port])
    configuration.certificate = certificate
    configuration.loop.limits = adjustments.limits
    configuration.accounts = accounts
    configuration.web.connectionCount = self[ServerKeys.connections]
    configuration.web.perAddress = adjustments.perAddress
    configuration.web.requestTimeout = self[ServerKeys.headTime]
    configuration.web.bodyTimeout = self[ServerKeys.bodyTime]
    configuration.web.bodyRate = Int(self[ServerKeys.bodyRate])
    configuration.blobs.reservedByteCount = adjustments.reservedByteCount
    configuration.publicURL = self[ServerKeys.publicURL] ?? ""
    configuration.pushes = pushes
    configuration.metrics = self[ServerKeys.prometheusPort].map { (UInt16($0), adjustments.metricsPage) }
    configuration.log = log
    return configuration
  }

  /// Where to listen.
  package var host: String {
    self[ServerKeys.host]?.host ?? "::"
  }

  /// What can change while the server runs.
  package var adjustments: BackendServer.Adjustments {
    var adjustments = BackendServer.Adjustments()
    adjustments.limits = limits
    adjustments.perAddress.connectionCount = self[ServerKeys.addressConnections]
    adjustments.perAddress.connectionsPerSecond = self[ServerKeys.addressConnectionRate]
    adjustments.perAddress.connectionBurst = 10 * self[ServerKeys.addressConnectionRate]
    adjustments.perAddress.requestsPerSecond = self[ServerKeys.addressRate]
    adjustments.perAddress.requestBurst = 10 * self[ServerKeys.addressRate]
    adjustments.reservedByteCount = self[ServerKeys.reservedSpace]
    adjustments.metricsPage = MetricsPage(
      username: self[ServerKeys.prometheusUsername] ?? "", password: self[ServerKeys.prometheusPassword] ?? ""
    )
    return adjustments
  }

  private var limits: BackendLimits {
    var limits = BackendLimits()
    limits.messageByteCount = Int(self[ServerKeys.messageSize])
    limits.blobByteCount = self[ServerKeys.blobSize]
    limits.devicesPerGroup = self[ServerKeys.groupDevices]
    limits.devicesPerUser = self[ServerKeys.userDevices]
    limits.requestsPerSecond = self[ServerKeys.deviceRate]
    limits.requestBurst = 10 * self[ServerKeys.deviceRate]
    limits.retention = self[ServerKeys.retention]
    limits.blobRetention = self[ServerKeys.blobRetention]
    limits.uploadTime = self[ServerKeys.uploadTime]
    return limits
  }

  /// Where pushes go; nil drops them.
  package var pushes: PushDestination? {
    if let path = self[ServerKeys.pushFile] { return .file(path) }
    if let path = self[ServerKeys.pushSocket] { return .socket(path) }
    let words = self[ServerKeys.pushCommand]
    return words.isEmpty ? nil : .command(words)
  }

  package var certificate: CertificateFiles? {
    self[ServerKeys.certificateFile].map {
      CertificateFiles(certificate: $0, key: self[ServerKeys.certificateKeyFile] ?? $0)
    }
  }

  /// The level of the log.
  package var logLevel: ServerLog.Level { ServerLog.Level(name: self[ServerKeys.logLevel]) ?? .info }

  /// The log.
  package var log: ServerLog {
    ServerLog(level: logLevel, format: self[ServerKeys.logJSON] ? .json : .text)
  }
}
