import Glibc
import PalbeBackendServer
import PalbeCommandLine
import PalbeEventLoop
import PalbeUnits

/// `palbe-server serve`.
enum ServeCommand {
  static let command = Command(
    name: "serve",
    summary: "runs the delivery server until it is interrupted",
    options: [
      .value("--port", "N", "the port of HTTP and WebSocket; 0 takes a free one", default: "8080"),
      .value("--host", "ADDRESS", "the address to listen on; :: is all", default: "::"),
      .value("--data", "DIR", "the folder with everything that is kept"),
      .flag(
        "--dev",
        "to try it out: listens on 127.0.0.1, keeps its data in ./palbe-data, a first sign-in makes the account"
      ),
    ],
    examples: ["palbe-server serve --dev", "palbe-server serve --data /var/lib/palbe --port 8080"])

  static func run(_ arguments: ParsedArguments) throws(ArgumentError) {
    let isDev = arguments.has("--dev")
    guard let data = arguments.string("--data") ?? (isDev ? "palbe-data" : nil) else {
      throw ArgumentError("option '--data' is missing; --dev has a default")
    }
    var configuration = BackendServer.Configuration(data: data)
    configuration.host = isDev ? "127.0.0.1" : arguments.string("--host") ?? "::"
    configuration.port = UInt16(try arguments.integer("--port", in: 0...65_535) ?? 8_080)
    configuration.accounts.isDevelopment = isDev
    // Before the first thread, which inherits the mask.
    let signals: SignalWatch
    do throws(SystemError) { signals = try SignalWatch([.interrupt, .terminate]) } catch {
      fail("cannot start: \(error)")
    }
    SignalWatch.ignoreBrokenPipes()
    // What is kept is nobody else's to read.
    umask(0o077)
    _ = try? Host.raiseOpenFileLimit()
    let server: BackendServer
    do { server = try BackendServer(configuration) } catch { fail("\(error)") }
    put(
      "palbe-server \(Release.version) listening: http://\(url(configuration.host)):\(server.port)",
      to: STDOUT_FILENO)
    _ = signals.wait()
    server.stop()
  }

  private static func url(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
}
