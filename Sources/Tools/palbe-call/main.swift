import Foundation
import PalbeCommandLine
import PalbeEventLoop

do {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): print(text)
  case .run(let command, let arguments):
    switch command {
    case "join":
      // Before any other thread starts.
      let signals = try SignalWatch()
      SignalWatch.ignoreBrokenPipes()
      exit(try await join(arguments, signals))
    case "demo": exit(try await demo(arguments))
    case "token": exit(try token(arguments))
    default: throw ArgumentError("unknown command '\(command)'")
    }
  }
} catch {
  FileHandle.standardError.write(Data("palbe-call: \(error)\n".utf8))
  exit(2)
}
