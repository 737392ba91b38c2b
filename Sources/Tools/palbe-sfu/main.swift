import Glibc
import PalbeCommandLine
import PalbeUnits

var program = Program(
  name: "palbe-sfu", version: Release.version,
  summary: "forwards end-to-end encrypted calls without seeing or hearing them",
  commands: [ServeCommand.command, ConfigCommand.command] + OperatorCommands.all)
program.commands.append(program.completionCommand)

/// Ends the program with one line; by default for what was asked in a wrong way.
func fail(_ reason: String, code: Int32 = 2) -> Never {
  complain(reason)
  exit(code)
}

func complain(_ reason: String) { put(Program.complaint(by: "palbe-sfu", reason), to: STDERR_FILENO) }

do throws(ArgumentError) {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): put(text, to: STDOUT_FILENO)
  case .run(ServeCommand.command.name, let arguments): ServeCommand.run(arguments)
  case .run(ConfigCommand.command.name, let arguments): ConfigCommand.run(arguments)
  case .run(program.completionCommand.name, let arguments):
    put(try program.completion(for: arguments.operands[0]), to: STDOUT_FILENO)
  case .run(let name, let arguments): OperatorCommands.run(name, arguments)
  }
} catch {
  fail(error.description)
}
