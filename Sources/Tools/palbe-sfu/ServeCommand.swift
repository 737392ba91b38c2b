import Glibc
import PalbeCommandLine
import PalbeEventLoop
import PalbeSFUServer
import PalbeSFUSettings
import PalbeUnits

/// `palbe-sfu serve`.
enum ServeCommand {
  static let command = Command(
    name: "serve",
    summary: "runs the SFU until it is interrupted",
    options: Settings.options,
    examples: [
      "palbe-sfu serve --dev",
      "palbe-sfu serve --key app:Zx3yV8qL2mN6pR9tW4uK7bE1cH5gJ0dF --node-ip 203.0.113.7",
      "palbe-sfu serve --config /etc/palbe/sfu.yaml",
      "palbe-sfu serve --dev --port 0 --udp-port 0 --workers 1 --audit-log seen.bin",
    ])

  static func run(_ arguments: ParsedArguments) {
    let settings = SettingsFiles.load(arguments)
    guard !settings.apiKeys.isEmpty else {
      fail("no API key: give --key NAME:SECRET, keys in a file, or --dev to try it out")
    }
    let configuration = SFUServer.Configuration(settings)
    let log = configuration.log
    // Before the first thread, which inherits the mask.
    let signals: SignalWatch
    do throws(SystemError) { signals = try SignalWatch() } catch { fail("cannot start: \(error)") }
    SignalWatch.ignoreBrokenPipes()
    _ = try? Host.raiseOpenFileLimit()
    for warning in settings.warnings { log.write(.warning, "configuration", [("warning", warning)]) }
    for name in settings.weakKeys {
      log.write(.warning, "weak API key: its secret has fewer than 32 characters", [("name", name)])
    }
    let server: SFUServer
    do throws(SFUServerError) { server = try SFUServer(configuration) } catch { fail(error.description) }
    let media = server.mediaAddresses.first.map(\.description) ?? ""
    put(
      "palbe-sfu \(Release.version) listening: signaling \(server.signalingAddress), media \(media)",
      to: STDOUT_FILENO)
    let signal = signals.wait()
    log.write(.info, "stopping", [("signal", "\(signal)")])
    server.stop()
  }
}

/// `palbe-sfu config`.
enum ConfigCommand {
  static let command = Command(
    name: "config",
    summary: "prints the configuration that serve would run with, secrets left out; exit 2 where it is wrong",
    options: Settings.options,
    examples: [
      "palbe-sfu config --config /etc/palbe/sfu.yaml", "PALBE_SFU_PORT=8000 palbe-sfu config",
    ])

  static func run(_ arguments: ParsedArguments) {
    let settings = SettingsFiles.load(arguments)
    for warning in settings.warnings { put("palbe-sfu: \(warning)", to: STDERR_FILENO) }
    put(settings.document, to: STDOUT_FILENO)
  }
}
