import Glibc
import PalbeCommandLine
import PalbeEventLoop
import PalbeSFUServer
import PalbeUnits

let program = Program(
  name: "palbe-sfu", version: Release.version,
  summary: "forwards end-to-end encrypted calls without seeing or hearing them",
  commands: [ServeOptions.command])

/// Writes a line at once, also into a pipe.
func put(_ line: String, to descriptor: Int32) {
  let bytes = Array((line + "\n").utf8)
  _ = write(descriptor, bytes, bytes.count)
}

func fail(_ reason: String) -> Never {
  put("palbe-sfu: \(reason)", to: STDERR_FILENO)
  exit(2)
}

func serve(_ options: ServeOptions) {
  let log = options.configuration.log
  // Before the first thread, which inherits the mask.
  let signals: SignalWatch
  do throws(SystemError) { signals = try SignalWatch() } catch { fail("cannot start: \(error)") }
  SignalWatch.ignoreBrokenPipes()
  _ = try? Host.raiseOpenFileLimit()
  for name in options.weakKeys {
    log.write(.warning, "weak API key: its secret has fewer than 32 characters", [("name", name)])
  }
  let server: SFUServer
  do throws(SFUServerError) { server = try SFUServer(options.configuration) } catch {
    fail(error.description)
  }
  let media = server.mediaAddresses.first.map(\.description) ?? ""
  put(
    "palbe-sfu \(Release.version) listening: signaling \(server.signalingAddress), media \(media)",
    to: STDOUT_FILENO)
  let signal = signals.wait()
  log.write(.info, "stopping", [("signal", "\(signal)")])
  server.stop()
}

do throws(ArgumentError) {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): put(text, to: STDOUT_FILENO)
  case .run(_, let arguments): serve(try ServeOptions(arguments))
  }
} catch {
  fail(error.description)
}
