import PalbeServerSettings
import PalbeUnits

/// Every key of `palbe-server`'s configuration, each once, in the order in which they are shown.
package enum ServerKeys {
  // MARK: Where

  package static let port = Setting(
    "port", "--port", .integer(0...65_535), default: 8_080,
    "TCP port for HTTP and WebSocket; 0 takes any free one")
  package static let host = Setting(
    "bind_address", "--host", .optional(.address), default: nil,
    words: "every address; with --dev 127.0.0.1", "address to listen on")
  package static let data = Setting(
    "data", "--data", .optional(.text("DIR", "a path")), default: nil, words: "none; with --dev ./palbe-data",
    "the folder with everything that is kept")
  package static let publicURL = Setting(
    "public_url", "--public-url", .optional(.webAddress), default: nil,
    words: "none",
    reloads: false, "what stands before the path in addresses of blobs; without it they are relative")
  package static let development = Setting(
    "development", "--dev", .boolean, default: false,
    "to try things out: on 127.0.0.1, data in ./palbe-data, the first sign-in makes the account")
  package static let certificateFile = Setting(
    "tls.cert_file", "--tls-cert", .optional(.text("FILE", "a path")), default: nil, words: "none",
    "certificate and chain in PEM; the port then speaks TLS only; a reload reads it again")
  package static let certificateKeyFile = Setting(
    "tls.key_file", "--tls-key", .optional(.text("FILE", "a path")), default: nil,
    words: "the file of the certificate", "the certificate's private key in PEM")

  // MARK: Limits

  package static let messageSize = Setting(
    "limit.message_size", "--max-message", .byteCount(1_024...(256 << 10)), default: 256 << 10, reloads: true,
    "bytes of an encrypted message")
  package static let blobSize = Setting(
    "limit.blob_size", "--max-blob", .byteCount(1_024...(1 << 40)), default: 2 << 30, reloads: true,
    "bytes of an attachment"
  )
  package static let groupDevices = Setting(
    "limit.devices_per_group", "--max-group-devices", .integer(2...10_000), default: 1_000, reloads: true,
    "devices in a group")
  package static let userDevices = Setting(
    "limit.devices_per_user", "--max-user-devices", .integer(1...1_000), default: 32, reloads: true,
    "devices of a user")
  package static let deviceRate = Setting(
    "limit.requests_per_device", "--device-rate", .integer(1...1_000_000), default: 200, reloads: true,
    "requests a second of one device in the long run; ten times as many at once")
  package static let addressRate = Setting(
    "limit.requests_per_address", "--address-rate", .integer(1...1_000_000), default: 200, reloads: true,
    "requests a second of one address in the long run; ten times as many at once; not of this machine's own")
  package static let addressConnections = Setting(
    "limit.connections_per_address", "--address-connections", .integer(1...1_000_000), default: 1_024,
    reloads: true,
    "connections of one address at once; not of this machine's own")
  package static let addressConnectionRate = Setting(
    "limit.connection_rate_per_address", "--address-connection-rate", .integer(1...1_000_000), default: 100,
    reloads: true,
    "new connections a second of one address in the long run; ten times as many at once; those above are closed; not of this machine's own"
  )
  package static let headTime = Setting(
    "limit.head_time", "--head-time", .duration(.seconds(2)...(.seconds(600))), default: .seconds(10),
    "a request's head must be there within this, and the next piece of its body, else 408")
  package static let bodyTime = Setting(
    "limit.body_time", "--body-time", .duration(.seconds(10)...(.seconds(3_600))), default: .seconds(120),
    "a request's body must be there within this, an attachment's excepted, else 408")
  package static let bodyRate = Setting(
    "limit.body_rate", "--body-rate", .byteCount(0...(1 << 30)), default: 1_024,
    "bytes a second of a body at least, else 408: over each limit.head_time, of an attachment over each 30 s; 0: any"
  )
  package static let connections = Setting(
    "limit.connections", "--max-connections", .integer(16...1_000_000), default: 65_000, "connections at once"
  )

  // MARK: What is kept

  package static let retention = Setting(
    "retention.messages", "--retention", .duration(.days(1)...(.days(3_650))), default: .days(30),
    reloads: true,
    "a message that a device has not fetched is dropped after this")
  package static let blobRetention = Setting(
    "retention.blobs", "--blob-retention", .duration(.days(1)...(.days(3_650))), default: .days(30),
    reloads: true,
    "an attachment is dropped after this")
  package static let uploadTime = Setting(
    "retention.uploads", "--upload-time", .duration(.seconds(60)...(.days(7))), default: .seconds(900),
    reloads: true,
    "an upload must be complete within this")
  package static let reservedSpace = Setting(
    "blobs.reserved_space", "--reserved-space", .byteCount(0...(1 << 50)), default: 256 << 20, reloads: true,
    "space on the disk that attachments leave for messages")

  // MARK: Pushes

  package static let pushFile = Setting(
    "push.file", "--push-file", .optional(.text("FILE", "a path")), default: nil, words: "none",
    "pushes are appended to this file, a line of JSON each")
  package static let pushSocket = Setting(
    "push.socket", "--push-socket", .optional(.text("PATH", "a path")), default: nil, words: "none",
    "pushes are written to this UNIX socket, a connection and a line of JSON each")
  package static let pushCommand = Setting(
    "push.command", "--push-command", .list("WORD", "a list of a program and its arguments"), default: [],
    words: "none", "is run for each push, a line of JSON on its standard input")

  // MARK: Operation

  package static let logLevel = Setting(
    "logging.level", "--log-level",
    .choice(["debug", "info", "warning"], aliases: ["warn": "warning", "error": "warning"]), default: "info",
    reloads: true, "how much is logged to standard error")
  package static let logJSON = Setting(
    "logging.json", "--log-json", .boolean, default: false, "log lines are JSON objects")
  package static let prometheusPort = Setting(
    "prometheus.port", "--prometheus-port", .optional(.integer(0...65_535)), default: nil, words: "none",
    "TCP port that tells Prometheus metrics under /metrics; 0 takes any free one")
  package static let prometheusUsername = Setting(
    "prometheus.username", "--prometheus-username", .optional(.text("NAME", "a name")), default: nil,
    words: "",
    reloads: true, "who may read metrics, with prometheus.password; else everybody")
  package static let prometheusPassword = Setting(
    "prometheus.password", "--prometheus-password",
    .optional(.text("PASSWORD", "a password", isSecret: true)), default: nil, words: "", reloads: true,
    isSecret: true, "the password of who may read metrics")
  package static let drainTimeout = Setting(
    "drain_timeout", "--drain-timeout", .duration(.zero...TimeDelta.seconds(3_600)), default: .seconds(10),
    reloads: true, "after SIGTERM what waits is answered for this long")

  /// All of them.
  package static let all: [any AnySetting] = [
    port, host, data, publicURL, development, certificateFile, certificateKeyFile, messageSize, blobSize,
    groupDevices, userDevices, deviceRate, addressRate, addressConnections, addressConnectionRate,
    headTime, bodyTime, bodyRate, connections, retention,
    blobRetention,
    uploadTime, reservedSpace, pushFile, pushSocket, pushCommand, logLevel, logJSON, prometheusPort,
    prometheusUsername, prometheusPassword, drainTimeout,
  ]
}
