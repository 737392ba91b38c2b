import Glibc
import PalbeCommandLine
import PalbeUnits

var program = Program(
  name: "palbe-server", version: Release.version,
  summary: "orders, queues and delivers end-to-end encrypted messages without seeing them",
  commands: [ServeCommand.command, ConfigCommand.command, DataCommands.backup, DataCommands.check])
program.commands.append(program.completionCommand)

/// Ends the program with one line; by default for what was asked in a wrong way.
func fail(_ reason: String, code: Int32 = 2) -> Never {
  complain(reason)
  exit(code)
}

func complain(_ reason: String) { put(Program.complaint(by: "palbe-server", reason), to: STDERR_FILENO) }

do throws(ArgumentError) {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): put(text, to: STDOUT_FILENO)
  case .run(ServeCommand.command.name, let arguments): ServeCommand.run(arguments)
  case .run(ConfigCommand.command.name, let arguments): ConfigCommand.run(arguments)
  case .run(DataCommands.backup.name, let arguments): DataCommands.runBackup(arguments)
  case .run(DataCommands.check.name, let arguments): DataCommands.runCheck(arguments)
  case .run(_, let arguments):
    put(try program.completion(for: arguments.operands[0]), to: STDOUT_FILENO)
  }
} catch {
  fail(error.description)
}
