import PalbeCommandLine
import PalbeSFUServer
import PalbeUnits

/// The options of `palbe-sfu serve`.
struct ServeOptions {
  /// LiveKit's well-known key for development.
  static let developmentKey = (name: "devkey", secret: "secret")
  /// HS256 keys are at least as long as the hash (RFC 7518 §3.2).
  static let secretByteCount = 32

  var configuration: SFUServer.Configuration
  /// Names of keys whose secret is easily guessed.
  var weakKeys: [String] = []

  static let command = Command(
    name: "serve",
    summary: "runs the SFU until it is interrupted",
    options: [
      .value("--port", "N", "TCP port for signaling; 0 takes any free one", default: "7880"),
      .value(
        "--udp-port", "N", "UDP port of the first worker, the others follow; 0 takes any", default: "7882"),
      .value(
        "--key", APIKey.placeholder, "API key that signs access tokens; 32 characters or more of secret",
        repeatable: true),
      .flag("--dev", "the key devkey:secret, on 127.0.0.1: for trying things out"),
      .value("--host", "ADDRESS", "address to listen on (default 0.0.0.0, with --dev 127.0.0.1)"),
      .value("--node-ip", "ADDRESS", "address that clients send media to (default: this machine's own)"),
      .value("--workers", "N", "threads that forward media (default: one per processor)"),
      .value("--log-level", "LEVEL", "debug, info or warning", default: "info"),
      .value("--audit-log", "FILE", "debugging aid: writes every RTP packet received, as the SFU sees it"),
    ],
    examples: [
      "palbe-sfu serve --dev",
      "palbe-sfu serve --key app:Zx3yV8qL2mN6pR9tW4uK7bE1cH5gJ0dF --node-ip 203.0.113.7",
      "palbe-sfu serve --dev --port 0 --udp-port 0 --workers 1 --audit-log seen.bin",
    ])

  init(_ arguments: ParsedArguments) throws(ArgumentError) {
    let isDevelopment = arguments.has("--dev")
    var keys: [String: String] = [:]
    for text in arguments.strings("--key") {
      let key = try APIKey(parsing: text, of: "--key")
      guard keys.updateValue(key.secret, forKey: key.name) == nil else {
        throw ArgumentError("option '--key' names '\(key.name)' twice")
      }
      if key.secret.utf8.count < Self.secretByteCount { weakKeys.append(key.name) }
    }
    if isDevelopment {
      guard keys.updateValue(Self.developmentKey.secret, forKey: Self.developmentKey.name) == nil else {
        throw ArgumentError("option '--key' names '\(Self.developmentKey.name)', which --dev defines")
      }
    }
    guard !keys.isEmpty else {
      throw ArgumentError("no API key: give --key NAME:SECRET, or --dev to try it out")
    }
    configuration = SFUServer.Configuration(keys: keys)
    if let host = try Self.address("--host", arguments) {
      configuration.host = host
    } else if isDevelopment {
      configuration.host = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
    }
    configuration.nodeAddress = try Self.address("--node-ip", arguments)
    configuration.port = UInt16(try arguments.integer("--port", in: 0...65_535) ?? 7_880)
    configuration.udpPort = UInt16(try arguments.integer("--udp-port", in: 0...65_535) ?? 7_882)
    if let count = try arguments.integer("--workers", in: 1...256) { configuration.workerCount = count }
    let level = arguments.string("--log-level") ?? "info"
    guard let level = ServerLog.Level(name: level) else {
      throw ArgumentError("option '--log-level' is '\(level)'; expected debug, info or warning")
    }
    configuration.log = ServerLog(level: level)
    configuration.auditLogPath = arguments.string("--audit-log")
  }

  private static func address(
    _ name: String, _ arguments: ParsedArguments
  ) throws(ArgumentError) -> SocketAddress? {
    guard let text = arguments.string(name) else { return nil }
    guard let address = SocketAddress(host: text, port: 0) else {
      throw ArgumentError("option '\(name)' is '\(text)'; expected an IPv4 or IPv6 address")
    }
    return address
  }
}
