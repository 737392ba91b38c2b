// A delivery server that is not as it must be, for tests that have to notice: it opens what its clients have sealed and lets it
// be seen in one place (`--leak`), or gives up on who is silent after a second or two (`--impatient`).
import Glibc
import PalbeBackendCore
import PalbeBackendServer
import PalbeCommandLine
import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import PalbeWebServer

let program = Program(
  name: "trial-server", version: Release.version,
  summary: "a delivery server with one fault, or without patience, for tests",
  commands: [
    Command(
      name: "serve", summary: "until it is interrupted; prints its port, then that of its metrics",
      options: [
        .value("--data", "DIR", "the folder with everything that is kept"),
        .value("--leak", "PLACE", "message, name, attachment, log or metrics: where content is seen"),
        .flag(
          "--impatient", "who is silent is let go after a second or two, what is over is deleted at once"),
        .value("--upload-time", "SECONDS", "an upload must be complete within this", default: "900"),
      ],
      examples: ["trial-server serve --data /tmp/data --leak log"])
  ])

func serve(_ arguments: ParsedArguments) throws {
  let signals = try SignalWatch()
  SignalWatch.ignoreBrokenPipes()
  var configuration = BackendServer.Configuration(data: try arguments.required("--data"))
  configuration.accounts.isDevelopment = true
  configuration.blobs.reservedByteCount = 0
  configuration.log = ServerLog(level: .debug)
  configuration.metrics = (0, MetricsPage())
  let uploadTime = try arguments.integer("--upload-time", in: 1...86_400) ?? 900
  configuration.loop.limits.uploadTime = .seconds(uploadTime)
  if arguments.has("--impatient") {
    configuration.loop.limits.sweepInterval = .seconds(1)
    configuration.web.requestTimeout = .seconds(2)
    configuration.web.idleTimeout = .seconds(2)
    configuration.web.streamTimeout = .seconds(2)
    configuration.web.pingInterval = .seconds(1)
    configuration.web.silenceTimeout = .seconds(3)
    configuration.realtime.slowByteCount = 256 << 10
  }
  let leak = try arguments.string("--leak").map { place in
    guard let place = Leak.Place(rawValue: place) else { throw ArgumentError("no such place: \(place)") }
    return Leak(place, folder: configuration.data, log: configuration.log)
  }
  let server = try BackendServer(configuration) { leak?.watch($0) }
  leak?.begin(server)
  put("trial-server listening: http://127.0.0.1:\(server.port)")
  put("metrics: http://127.0.0.1:\(server.metricsPort ?? 0)")
  _ = signals.wait()
  server.stop()
}

do {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): put(text)
  case .run(_, let arguments): try serve(arguments)
  }
} catch {
  put("trial-server: \(error)", to: STDERR_FILENO)
  exit(2)
}
