import PalbeCommandLine
import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeSFUServer
import PalbeSFUSettings
import PalbeServerObservation
import PalbeServerSettings
import PalbeUnits

extension Settings {
  /// From the command line, this process's environment and files; ends the program where something is wrong.
  static func load(_ arguments: ParsedArguments) -> Settings {
    do throws(SettingsError) { return try read(arguments) } catch { fail(error.description) }
  }

  static func read(_ arguments: ParsedArguments) throws(SettingsError) -> Settings {
    try Settings(options: arguments, environment: SettingsFiles.environment()) {
      path, isPrivate throws(SettingsError) in try SettingsFiles.contents(of: path, isPrivate: isPrivate)
    }
  }

  /// HS256 keys are at least as long as the hash (RFC 7518 §3.2).
  private static let secretByteCount = 32

  /// Names of keys whose secret is easily guessed.
  var weakKeys: [String] {
    apiKeys.filter { $0 != Self.developmentKey && $0.secret.utf8.count < Self.secretByteCount }.map(\.name)
  }
}

extension SFUServer.Configuration {
  /// What the server needs of the settings.
  init(_ settings: Settings) {
    self.init(keys: Dictionary(uniqueKeysWithValues: settings.apiKeys.map { ($0.name, $0.secret) }))
    let addresses = settings[SFUKeys.bindAddresses].compactMap { SocketAddress(host: $0, port: 0) }
    if let first = addresses.first {
      host = first
      if addresses.count > 1 { bindAddresses = addresses }
    } else if settings[SFUKeys.development] {
      host = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
    }
    port = UInt16(settings[SFUKeys.port])
    let ports = settings[SFUKeys.udpPort]
    udpPort = UInt16(ports.lowerBound)
    workerCount = settings[SFUKeys.workers] ?? min(workerCount, ports.count > 1 ? ports.count : .max)
    let isTrial = settings[SFUKeys.development] || udpPort == 0
    let usualPort: UInt16? = settings.source(of: SFUKeys.tcpPort) == .standard && !isTrial ? 7_881 : nil
    tcpPort = settings[SFUKeys.tcpPort].map { UInt16($0) } ?? usualPort
    announcesOnlyTCP = settings[SFUKeys.forceTCP]
    // Somewhere media must go.
    if announcesOnlyTCP, tcpPort == nil { tcpPort = udpPort == 0 ? 0 : 7_881 }
    usesExternalAddress = settings[SFUKeys.useExternalIP]
    announcesInternalAddresses = settings[SFUKeys.advertiseInternalIP]
    stunServers = settings[SFUKeys.stunServers]
    nodeAddress = settings[SFUKeys.nodeIP]
    certificatePath = settings[SFUKeys.certificateFile]
    certificateKeyPath = settings[SFUKeys.certificateKeyFile]
    limits.connections = settings[SFUKeys.connections]
    limits.connectionsPerAddress = settings[SFUKeys.connectionsPerAddress]
    limits.newConnectionsPerAddress = settings[SFUKeys.connectionRate]
    limits.requestsPerAddress = settings[SFUKeys.requestRate]
    auditLogPath = settings[SFUKeys.auditLog]
    if let port = settings[SFUKeys.prometheusPort] {
      var metrics = SFUServer.MetricsConfiguration(port: UInt16(port))
      metrics.username = settings[SFUKeys.prometheusUsername] ?? ""
      metrics.password = settings[SFUKeys.prometheusPassword] ?? ""
      self.metrics = metrics
    }
    log = ServerLog(
      level: ServerLog.Level(name: settings[SFUKeys.logLevel]) ?? .info,
      format: settings[SFUKeys.logJSON] ? .json : .text)
    webhooks.urls = settings[SFUKeys.webhookURLs]
    webhooks.keyName = settings[SFUKeys.webhookKey]
    worker = SFUConfiguration(settings)
  }
}

extension SFUConfiguration {
  /// How a worker treats rooms and participants.
  init(_ settings: Settings) {
    self.init(candidates: [])
    createsRooms = settings[SFUKeys.autoCreate]
    emptyTimeout = settings[SFUKeys.emptyTimeout]
    departureTimeout = settings[SFUKeys.departureTimeout]
    let participants = settings[SFUKeys.maxParticipants]
    maxParticipantsPerRoom = participants == 0 ? 100_000 : participants
    allowsRemoteUnmute = settings[SFUKeys.remoteUnmute]
    requiresE2EE = settings[SFUKeys.requireE2EE]
    let codecs = settings[SFUKeys.enabledCodecs]
    if !codecs.isEmpty { enabledCodecs = Set(codecs) }
    maxRooms = settings[SFUKeys.maxRooms]
    maxTracksPerParticipant = settings[SFUKeys.maxTracks]
    participantRate = settings[SFUKeys.datagramRate]
    strangerRate = settings[SFUKeys.checkRate]
    signalRate = settings[SFUKeys.signalRate]
    controlsCongestion = settings[SFUKeys.congestionControl]
    usesAudioLevels = settings[SFUKeys.audioLevels]
    keyFrameRequestInterval = settings[SFUKeys.pliThrottle]
    let stun = settings[SFUKeys.stunServers].map { "stun:" + $0 }
    if !stun.isEmpty { iceServers.append(.with { $0.urls = stun }) }
    for server in settings[SFUKeys.turnServers] where server.secret.isEmpty {
      iceServers.append(
        .with {
          $0.urls = [server.url]
          $0.username = server.username
          $0.credential = server.credential
        })
    }
    turnServers = settings[SFUKeys.turnServers].filter { !$0.secret.isEmpty }.map {
      TURNServer(url: $0.url, secret: $0.secret, lifetime: $0.lifetime)
    }
  }
}
