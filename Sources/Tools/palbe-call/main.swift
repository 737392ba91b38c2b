import Foundation
import Glibc
import PalbeCommandLine
import PalbeEventLoop

/// Tells a misuse in one line.
func refuse(_ error: any Error) -> Never {
  try? FileHandle.standardError.write(
    contentsOf: Data((Program.complaint(by: program.name, "\(error)") + "\n").utf8))
  exit(2)
}

/// Runs a command and exits with its status.
///
/// The main thread waits meanwhile. An `await` at the top level would give it to Dispatch, which then keeps a thread that takes
/// every signal, and a SIGINT would end the program instead of the call.
func finish(_ command: @escaping @Sendable () async throws -> Int32) -> Never {
  Task.detached {
    do { exit(try await command()) } catch { refuse(error) }
  }
  while true { pause() }
}

// A standard stream that was closed would give its number to a socket, and our text would go there.
for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 { _ = open("/dev/null", O_RDWR) }

do {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): print(text)
  case .run("join", let arguments):
    // Before any other thread starts.
    let signals = try SignalWatch()
    SignalWatch.ignoreBrokenPipes()
    finish { try await join(arguments, signals) }
  case .run("demo", let arguments): finish { try await demo(arguments) }
  case .run("completion", let arguments): print(try program.completion(for: arguments.operands[0]))
  case .run(_, let arguments): exit(try token(arguments))
  }
} catch { refuse(error) }
