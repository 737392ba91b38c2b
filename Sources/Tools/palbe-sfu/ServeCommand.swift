import Glibc
import PalbeCommandLine
import PalbeEventLoop
import PalbeSFUServer
import PalbeSFUSettings
import PalbeServerObservation
import PalbeServerSettings
import PalbeUnits
import PalbeWebServer

/// `palbe-sfu serve`.
enum ServeCommand {
  static let command = Command(
    name: "serve",
    summary: "runs the SFU until it is interrupted",
    options: Settings.schema.options,
    examples: [
      "palbe-sfu serve --dev",
      "palbe-sfu serve --key app:Zx3yV8qL2mN6pR9tW4uK7bE1cH5gJ0dF --node-ip 203.0.113.7",
      "palbe-sfu serve --config /etc/palbe/sfu.yaml",
      "palbe-sfu serve --dev --port 0 --udp-port 0 --workers 1 --audit-log seen.bin",
    ])

  /// Ends the program without a key that could let anybody in.
  static func checkKeys(_ settings: Settings) {
    guard !settings.apiKeys.isEmpty else {
      fail("no API key: give --key NAME:SECRET, keys in a file, or --dev to try it out")
    }
  }

  static func run(_ arguments: ParsedArguments) {
    let settings = Settings.load(arguments)
    checkKeys(settings)
    let configuration = SFUServer.Configuration(settings)
    let log = configuration.log
    // Before the first thread, which inherits the mask.
    let signals: SignalWatch
    do throws(SystemError) { signals = try SignalWatch([.interrupt, .terminate, .hangUp]) } catch {
      fail("cannot start: \(error)")
    }
    SignalWatch.ignoreBrokenPipes()
    _ = try? Host.raiseOpenFileLimit()
    for warning in settings.warnings { log.write(.warning, "configuration", [("warning", warning)]) }
    for name in settings.weakKeys {
      log.write(.warning, "weak API key: its secret has fewer than 32 characters", [("name", name)])
    }
    let server: SFUServer
    do throws(SFUServerError) { server = try SFUServer(configuration) } catch { fail(error.description) }
    if let address = server.metricsAddress {
      log.write(.info, "metrics", [("address", address.description)])
    }
    let media = server.mediaAddresses.first.map(\.description) ?? ""
    put(
      "palbe-sfu \(Release.version) listening: signaling \(server.signalingAddress), media \(media)",
      to: STDOUT_FILENO)
    var current = settings
    while true {
      let signal = signals.wait()
      guard signal == .hangUp else {
        drain(server, for: current.drainTime, after: signal, signals, log)
        break
      }
      current = reload(arguments, from: current, into: server, log)
    }
    server.stop()
  }

  /// Lets calls go on for a while: until the last participant has left, the time is over, or a second signal comes.
  private static func drain(
    _ server: SFUServer, for time: TimeDelta, after signal: Signal, _ signals: SignalWatch, _ log: ServerLog
  ) {
    server.drain()
    let count = server.participantCount
    log.write(
      .info, "stopping",
      [
        ("signal", "\(signal)"), ("participants", "\(count)"),
        ("seconds", "\(time.wholeMilliseconds / 1_000)"),
      ])
    if signals.isHurried(within: time, every: .milliseconds(200), while: { server.participantCount > 0 }) {
      log.write(.info, "stopping at once")
    }
  }

  /// Reads the configuration again. One that is wrong changes nothing. Returns what runs from now on: what the next one is compared with.
  private static func reload(
    _ arguments: ParsedArguments, from old: Settings, into server: SFUServer, _ log: ServerLog
  ) -> Settings {
    let new: Settings
    let running: Settings
    do throws(SettingsError) {
      new = try Settings.read(arguments)
      guard !new.apiKeys.isEmpty else { throw SettingsError("no API key") }
      running = try old.reloaded(with: new)
    } catch {
      log.write(.warning, "configuration not reloaded", [("reason", error.description)])
      return old
    }
    do throws(SFUServerError) { try server.reload(SFUServer.Configuration(running)) } catch {
      log.write(.warning, "configuration not reloaded", [("reason", error.description)])
      return old
    }
    for warning in new.warnings { log.write(.warning, "configuration", [("warning", warning)]) }
    let changes = old.changes(to: new)
    let waiting = changes.filter { !$0.reloads }.map(\.name)
    if !waiting.isEmpty {
      log.write(.warning, "changed keys need a restart", [("keys", waiting.joined(separator: ","))])
    }
    do throws(SFUServerError) { try server.reloadCertificates() } catch {
      log.write(.warning, "certificate not reloaded", [("reason", error.description)])
    }
    log.write(
      .info, "configuration changed",
      [("keys", changes.filter(\.reloads).map(\.name).joined(separator: ","))])
    return running
  }
}

/// `palbe-sfu config`.
enum ConfigCommand {
  static let command = Command(
    name: "config",
    summary:
      "prints the configuration that serve would run with, secrets left out; exit 2 where serve would refuse it",
    options: Settings.schema.options + [
      .flag("--table", "prints the table of all keys instead, in Markdown")
    ],
    examples: [
      "palbe-sfu config --config /etc/palbe/sfu.yaml", "PALBE_SFU_PORT=8000 palbe-sfu config --dev",
    ])

  static func run(_ arguments: ParsedArguments) {
    if arguments.has("--table") { return put(Settings.schema.table, to: STDOUT_FILENO) }
    let settings = Settings.load(arguments)
    for warning in settings.warnings { complain(warning) }
    put(settings.document, to: STDOUT_FILENO)
    // Shown all the same: it may tell why.
    ServeCommand.checkKeys(settings)
    if let path = settings[SFUKeys.certificateFile] {
      let files = CertificateFiles(certificate: path, key: settings[SFUKeys.certificateKeyFile] ?? path)
      do throws(CertificateError) { try files.check() } catch { fail(error.description) }
    }
  }
}
