import Glibc
import PalbeBackendServer
import PalbeCommandLine
import PalbeEventLoop
import PalbeServerObservation
import PalbeServerSettings
import PalbeUnits
import PalbeWebServer

extension ServerSettings {
  /// From the command line, this process's environment and files; ends the program where something is wrong.
  static func load(_ arguments: ParsedArguments) -> ServerSettings {
    do throws(SettingsError) { return try read(arguments) } catch { fail(error.description) }
  }

  /// What to run; ends the program where nobody said where the data is.
  var needed: BackendServer.Configuration {
    guard let configuration else {
      fail("no folder for the data: give --data DIR, or --dev to try it out")
    }
    return configuration
  }

  static func read(_ arguments: ParsedArguments) throws(SettingsError) -> ServerSettings {
    try ServerSettings(options: arguments, environment: SettingsFiles.environment()) {
      path throws(SettingsError) in try SettingsFiles.contents(of: path, isPrivate: false)
    }
  }
}

/// `palbe-server serve`.
enum ServeCommand {
  static let command = Command(
    name: "serve",
    summary: "runs the delivery server until it is interrupted",
    options: ServerSettings.schema.options,
    examples: [
      "palbe-server serve --dev", "palbe-server serve --data /var/lib/palbe --port 8080",
      "palbe-server serve --config /etc/palbe/server.yaml",
    ])

  static func run(_ arguments: ParsedArguments) {
    let settings = ServerSettings.load(arguments)
    let configuration = settings.needed
    let log = configuration.log
    // Before the first thread, which inherits the mask.
    let signals: SignalWatch
    do throws(SystemError) { signals = try SignalWatch([.interrupt, .terminate, .hangUp]) } catch {
      fail("cannot start: \(error)")
    }
    SignalWatch.ignoreBrokenPipes()
    // A file that may not grow is a write that fails, and not the end.
    signal(SIGXFSZ, SIG_IGN)
    // What is kept is nobody else's to read.
    umask(0o077)
    _ = try? Host.raiseOpenFileLimit()
    for warning in settings.values.warnings { log.write(.warning, "configuration", [("warning", warning)]) }
    let server: BackendServer
    do { server = try BackendServer(configuration) } catch { fail("\(error)") }
    if let port = server.metricsPort { log.write(.info, "metrics", [("port", "\(port)")]) }
    let scheme = configuration.certificate == nil ? "http" : "https"
    put(
      "palbe-server \(Release.version) listening: \(scheme)://\(url(configuration.host)):\(server.port)",
      to: STDOUT_FILENO)
    var current = settings
    while true {
      let signal = signals.wait()
      guard signal == .hangUp else {
        drain(server, for: current[ServerKeys.drainTimeout], after: signal, signals, log)
        break
      }
      current = reload(arguments, from: current, into: server, log)
    }
    server.stop()
  }

  private static func url(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }

  /// Nothing new is taken, what waits is answered, sockets are asked to come again: until all is done, the time is over, or a
  /// second signal comes.
  private static func drain(
    _ server: BackendServer, for time: TimeDelta, after signal: Signal, _ signals: SignalWatch,
    _ log: ServerLog
  ) {
    server.drain()
    log.write(.info, "stopping", [("signal", "\(signal)"), ("open", "\(server.openCount)")])
    if signals.isHurried(within: time, every: .milliseconds(50), while: { server.openCount > 0 }) {
      log.write(.info, "stopping at once")
    }
  }

  /// Reads the configuration again. One that is wrong changes nothing. Returns what runs from now on: what the next one is compared with.
  private static func reload(
    _ arguments: ParsedArguments, from old: ServerSettings, into server: BackendServer, _ log: ServerLog
  ) -> ServerSettings {
    let new: ServerSettings
    do throws(SettingsError) { new = try ServerSettings.read(arguments) } catch {
      log.write(.warning, "configuration not reloaded", [("reason", error.description)])
      return old
    }
    let changes = old.values.changes(to: new.values)
    let waiting = changes.filter { !$0.reloads }.map(\.name)
    if !waiting.isEmpty {
      log.write(.warning, "changed keys need a restart", [("keys", waiting.joined(separator: ","))])
    }
    let running = old.reloaded(with: new)
    log.setLevel(running.logLevel)
    do throws(CertificateError) { try server.reload(running.adjustments) } catch {
      log.write(.warning, "certificate not reloaded", [("reason", error.description)])
    }
    log.write(
      .info, "configuration reloaded",
      [("keys", changes.filter(\.reloads).map(\.name).joined(separator: ","))])
    return running
  }
}

/// `palbe-server config`.
enum ConfigCommand {
  static let command = Command(
    name: "config",
    summary:
      "prints the configuration that serve would run with, secrets left out; exit 2 where serve would refuse it",
    options: ServerSettings.schema.options + [
      .flag("--table", "prints the table of all keys instead, in Markdown")
    ],
    examples: [
      "palbe-server config --config /etc/palbe/server.yaml",
      "PALBE_SERVER_PORT=8000 palbe-server config --dev",
    ])

  static func run(_ arguments: ParsedArguments) {
    if arguments.has("--table") { return put(ServerSettings.schema.table, to: STDOUT_FILENO) }
    let settings = ServerSettings.load(arguments)
    for warning in settings.values.warnings { complain(warning) }
    put(settings.values.document, to: STDOUT_FILENO)
    // Shown all the same: it may tell why.
    do { try settings.needed.check() } catch { fail("\(error)") }
  }
}
