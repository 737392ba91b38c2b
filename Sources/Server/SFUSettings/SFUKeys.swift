public import PalbeCommandLine
public import PalbeServerSettings
public import PalbeUnits

/// Every key of `palbe-sfu`'s configuration, each once, in the order in which they are shown.
public enum SFUKeys {
  // MARK: Signaling

  public static let port = Setting(
    "port", "--port", .integer(0...65_535), default: 7_880,
    "TCP port for signaling; 0 takes any free one")
  public static let bindAddresses = Setting(
    "bind_addresses", "--host",
    .list("ADDRESS", "a list of IPv4 or IPv6 addresses") {
      $0.isEmpty || SocketAddress(host: $0, port: 0) != nil
    },
    default: [], words: "every IPv4 and IPv6 address; with --dev 127.0.0.1",
    "addresses to listen on; with several, media ports are open on every address and only these are announced"
  )
  public static let keys = Setting(
    "keys", "--key", .keys, default: [], words: "", reloads: true, isSecret: true,
    "API keys that sign access tokens; 32 characters or more of secret")
  public static let keyFile = Setting(
    "key_file", "--key-file", .optional(.text("FILE", "a path")), default: nil, words: "", reloads: true,
    "a file of more keys, NAME: SECRET a line, that nobody else may read")
  public static let development = Setting(
    "development", "--dev", .boolean, default: false,
    "the key devkey:secret, on 127.0.0.1: for trying things out")

  public static let certificateFile = Setting(
    "tls.cert_file", "--tls-cert", .optional(.text("FILE", "a path")), default: nil, words: "none",
    "the signaling port's certificate and chain in PEM; it then speaks TLS only; a reload reads it again")
  public static let certificateKeyFile = Setting(
    "tls.key_file", "--tls-key", .optional(.text("FILE", "a path")), default: nil,
    words: "the file of the certificate", "the certificate's private key in PEM")

  // MARK: Media

  public static let udpPort = Setting(
    "rtc.udp_port", "--udp-port", .ports, default: 7_882...7_882,
    "UDP port of the first worker, the others follow; a range bounds the workers; 0 takes any")
  public static let tcpPort = Setting(
    "rtc.tcp_port", "--tcp-port", .optional(.integer(0...65_535)), default: nil,
    words: "7881; none with --dev or where rtc.udp_port is 0",
    "TCP port for media of clients that cannot send UDP (ICE-TCP), the workers' in a row; 0 takes any")
  public static let forceTCP = Setting(
    "rtc.force_tcp", "--force-tcp", .boolean, default: false,
    "clients are told of the TCP ports alone, for networks that no UDP reaches")
  public static let useExternalIP = Setting(
    "rtc.use_external_ip", "--use-external-ip", .boolean, default: false,
    "announces the address that STUN servers see, where rtc.node_ip is not given")
  public static let advertiseInternalIP = Setting(
    "rtc.advertise_internal_ip", "--advertise-internal-ip", .boolean, default: false,
    "announces this machine's own addresses beside the external one")
  public static let nodeIP = Setting(
    "rtc.node_ip", "--node-ip", .optional(.reachableAddress), default: nil, words: "this machine's own",
    "address that clients send media to")
  public static let turnServers = Setting(
    "rtc.turn_servers", "--turn-server", .turnServers, default: [], words: "", reloads: true, isSecret: true,
    "TURN servers for clients; with 'secret' each client gets coturn credentials that expire")
  public static let stunServers = Setting(
    "rtc.stun_servers", "--stun-server", .stunServers, default: [], words: "", reloads: true,
    "STUN servers for clients, and for rtc.use_external_ip; that asks public ones where there are none")
  public static let pliThrottle = Setting(
    "rtc.pli_throttle", "--pli-throttle", .keyFrameInterval, default: .milliseconds(500), reloads: true,
    "least time between two key-frame requests to one track")
  public static let congestionControl = Setting(
    "rtc.congestion_control.enabled", "--congestion-control", .boolean, default: true, reloads: true,
    "a subscriber gets what its link carries; else all that it wants, at once")
  public static let workers = Setting(
    "workers", "--workers", .optional(.integer(1...256)), default: nil, words: "one per processor",
    "threads that forward media")
  public static let audioLevels = Setting(
    "audio.use_levels", "--audio-levels", .boolean, default: true, reloads: true,
    "who speaks is told by the levels that clients send in the clear")

  // MARK: Rooms

  public static let autoCreate = Setting(
    "room.auto_create", "--auto-create", .boolean, default: true, reloads: true,
    "the first who joins makes the room; else only RoomService does")
  public static let emptyTimeout = Setting(
    "room.empty_timeout", "--empty-timeout", .duration(.zero...TimeDelta.days(7)),
    default: .seconds(300),
    reloads: true, "a room that nobody has joined yet is dropped after this")
  public static let departureTimeout = Setting(
    "room.departure_timeout", "--departure-timeout", .duration(.zero...TimeDelta.days(7)),
    default: .seconds(20), reloads: true, "a room is dropped this long after its last participant left")
  public static let maxParticipants = Setting(
    "room.max_participants", "--max-participants", .integer(0...100_000), default: 1_000, reloads: true,
    "participants of a room; 0 is the most there may be, 100000")
  public static let remoteUnmute = Setting(
    "room.enable_remote_unmute", "--remote-unmute", .boolean, default: false, reloads: true,
    "an operator may unmute a track for its publisher")
  public static let enabledCodecs = Setting(
    "room.enabled_codecs", "--codec", .codecs, default: [],
    words: "opus, red, VP8, H264, VP9 and AV1", reloads: true,
    "the codecs that tracks may be published in, as MIME types such as video/vp8")
  public static let requireE2EE = Setting(
    "require_e2ee", "--require-e2ee", .boolean, default: false, reloads: true,
    "tracks that are not encrypted end to end are refused, in every room")

  // MARK: Limits

  public static let maxRooms = Setting(
    "limit.rooms", "--max-rooms", .integer(1...1_000_000), default: 10_000, reloads: true,
    "rooms of one worker")
  public static let maxTracks = Setting(
    "limit.tracks_per_participant", "--max-tracks", .integer(1...1_000), default: 32, reloads: true,
    "tracks that one participant may publish")

  public static let datagramRate = Setting(
    "limit.datagrams_per_participant", "--max-datagrams", .integer(100...1_000_000_000), default: 16_000,
    reloads: true,
    "datagrams a second that are taken from one participant; the rest is dropped unread")
  public static let checkRate = Setting(
    "limit.checks_per_address", "--max-checks", .integer(10...1_000_000), default: 500,
    "ICE checks a second that are looked at from one address without a participant")
  public static let connections = Setting(
    "limit.connections", "--max-connections", .integer(16...60_000), default: 16_384,
    "connections to the signaling port at once; a further one is closed unread")
  public static let connectionsPerAddress = Setting(
    "limit.connections_per_address", "--max-address-connections", .integer(1...60_000), default: 1_024,
    "connections at once from one address, to the signaling port and to each TCP port for media")
  public static let connectionRate = Setting(
    "limit.new_connections_per_address", "--max-new-connections", .integer(1...100_000), default: 100,
    "new connections a second from one address to the signaling port; ten times that in a burst")
  public static let requestRate = Setting(
    "limit.requests_per_address", "--max-requests", .integer(1...100_000), default: 200,
    "requests and joins a second from one address; ten times that in a burst, then status 429")
  public static let signalRate = Setting(
    "limit.signals_per_participant", "--max-signals", .integer(10...1_000_000), default: 100, reloads: true,
    "signal messages a second of one participant; who sends more must leave")

  // MARK: Operation

  public static let logLevel = Setting(
    "logging.level", "--log-level",
    .choice(["debug", "info", "warning"], aliases: ["warn": "warning", "error": "warning"]), default: "info",
    aliases: ["log_level"], reloads: true, "how much is logged to standard error")
  public static let logJSON = Setting(
    "logging.json", "--log-json", .boolean, default: false, "log lines are JSON objects")
  public static let prometheusPort = Setting(
    "prometheus.port", "--prometheus-port", .optional(.integer(0...65_535)), default: nil, words: "none",
    aliases: ["prometheus_port"],
    "TCP port that tells Prometheus metrics under /metrics; 0 takes any free one")
  public static let prometheusUsername = Setting(
    "prometheus.username", "--prometheus-username", .optional(.text("NAME", "a name")), default: nil,
    words: "", "who may read metrics, with prometheus.password; else everybody")
  public static let prometheusPassword = Setting(
    "prometheus.password", "--prometheus-password",
    .optional(.text("PASSWORD", "a password", isSecret: true)), default: nil, words: "", isSecret: true,
    "the password of who may read metrics")
  public static let auditLog = Setting(
    "audit_log", "--audit-log", .optional(.text("FILE", "a path")), default: nil, words: "",
    "debugging aid: writes every RTP packet received, as the SFU sees it")
  public static let webhookURLs = Setting(
    "webhook.urls", "--webhook",
    .list("URL", "a list of http or https addresses", check: WebAddress.isValid),
    default: [], words: "", reloads: true, "is told what happens in rooms by signed POST requests")
  public static let webhookKey = Setting(
    "webhook.api_key", "--webhook-key", .optional(.text("NAME", "the name of an API key")), default: nil,
    words: "the first by name", reloads: true, "the API key that signs webhooks")
  public static let drainTimeout = Setting(
    "drain_timeout", "--drain-timeout", .duration(.zero...TimeDelta.days(1)), default: .seconds(30),
    words: "30s; with --dev 0s", reloads: true,
    "after SIGTERM calls go on for this long; ends early with the last participant")

  /// All of them.
  public static let all: [any AnySetting] = [
    port, bindAddresses, keys, keyFile, development, certificateFile, certificateKeyFile, udpPort, tcpPort,
    forceTCP,
    useExternalIP,
    advertiseInternalIP, nodeIP,
    turnServers, stunServers, pliThrottle,
    congestionControl, workers,
    audioLevels, autoCreate, emptyTimeout, departureTimeout, maxParticipants, remoteUnmute,
    enabledCodecs, requireE2EE,
    maxRooms,
    maxTracks, datagramRate, checkRate, connections, connectionsPerAddress, connectionRate, requestRate,
    signalRate, logLevel, logJSON, prometheusPort, prometheusUsername,
    prometheusPassword, auditLog, webhookURLs, webhookKey, drainTimeout,
  ]
}
